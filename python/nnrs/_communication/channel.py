"""Words between any two processes, beside the collectives: what `control.py` needs of MPI or of sockets."""

from __future__ import annotations

import abc


class Channel(abc.ABC):
    """Carries words of one process to any other. They keep their order, and nobody waits for them."""

    rank: int
    size: int
    lost: set[int]
    """Ranks to which the connection has ended; MPI does not know."""
    aborted: dict[int, str]
    """Ranks that have ended all processes, and why; MPI ends this one too."""

    @property
    def is_over(self) -> bool:
        """Whether no words can be sent any more."""
        return False

    @abc.abstractmethod
    def send(self, to: int, word: bytes) -> None:
        """Put a word on its way."""

    @abc.abstractmethod
    def receive(self) -> list[tuple[int, bytes]]:
        """What has come, and from whom; it moves on what is on its way."""

    @abc.abstractmethod
    def is_sent(self) -> bool:
        """Whether all words have left this process."""

    @abc.abstractmethod
    def abort(self, status: int, why: str) -> None:
        """End all processes, this one too."""
