"""What carries numbers between the processes of a group: five moves of flat arrays. It adds nothing up."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._errors import ArgumentTypeError, UnsupportedError, describe, message

Poll = Callable[[], bool]
"""Asked again and again until it says that a move is over; to ask is what moves it on. It may be asked once more."""


class Call(NamedTuple):
    """A collective that runs: which, in which group, and the how many-th one of that group."""

    name: str
    group: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} (call {self.number}, group {self.group!r})"


def done() -> bool:
    """The `Poll` of a move that is over."""
    return True


class Transport(abc.ABC):
    """Carries flat arrays between the processes of one group. Derive from it to bring a network of your own.

    Every process of the group makes the same moves in the same order, each with arrays of the same sizes. A move starts
    at once and gives a function without arguments that is True as soon as it is over (a transport that waits gives
    `done`); until then the arrays belong to the transport. Arrays are C-contiguous and of any type of NumPy's.
    `cuts` are positions: part i of a flat array is `array[cuts[i] : cuts[i + 1]]`. An error of a move ends the
    communicator.

    `Communicator(MyTransport())` has all members of NNabla's communicators over it.
    """

    name: str = "transport"
    rank: int = 0
    """This process's place in the group."""
    size: int = 1
    """How many processes the group has."""
    local_rank: int = 0
    """This process's place among those of the group on the same machine."""
    allows_threads: bool = False
    """Whether moves may be made, and asked after, by several threads (one at a time)."""
    is_interruptible: bool = False
    """Whether a move goes on after an exception of a signal's handler that came as it was asked whether it is over."""

    @abc.abstractmethod
    def all_to_all(self, send: np.ndarray, cuts: Sequence[int], received: np.ndarray) -> Poll:
        """Part i of `send` goes to rank i; row i of `received` (size, my part's length) is what rank i sends here."""

    @abc.abstractmethod
    def all_gather(self, buffer: np.ndarray, cuts: Sequence[int]) -> Poll:
        """Each process gives its own part of `buffer`, and all have all parts afterwards."""

    @abc.abstractmethod
    def gather(self, buffer: np.ndarray, cuts: Sequence[int], dst: int) -> Poll:
        """Each process gives its own part of `buffer`, and rank `dst` has all parts afterwards."""

    @abc.abstractmethod
    def bcast(self, buffer: np.ndarray, src: int) -> Poll:
        """What rank `src` has in `buffer` all have afterwards."""

    @abc.abstractmethod
    def subset(self, ranks: Sequence[int], name: str) -> Transport | None:
        """A transport for these ranks, which come in this order; None where this process is none of them.

        All processes of the group call it together.
        """

    def all_reduce(self, buffer: np.ndarray) -> Poll:
        """Adds up `buffer` over all processes in an order of the transport's own; only for `deterministic=False`."""
        raise UnsupportedError(message(type(self).__name__, None, "it has no sum of its own; use deterministic=True"))

    def waiting(self, call: Call, seconds: float) -> None:  # noqa: B027
        """Called some times a second while a collective is not over, with how long it has been so; may raise."""

    def finished(self, call: Call) -> None:  # noqa: B027
        """Called when a collective is over."""

    def owes(self, group: str, count: int, advance: Callable[[], None]) -> None:  # noqa: B027
        """Called when this changes: how many words are on their way for which nobody waits here.

        `advance` moves them on. Others may wait for them, so a process should not end before.
        """

    def broken(self) -> None:  # noqa: B027
        """Called when a collective has failed, and with it the communicator."""

    def abort(self) -> None:
        """End all processes, this one too."""
        raise SystemExit(1)


class Alone(Transport):
    """The transport of a process that has no others: nothing has to be carried."""

    name = "alone"

    def all_to_all(self, send: np.ndarray, cuts: Sequence[int], received: np.ndarray) -> Poll:
        received.reshape(-1)[:] = send
        return done

    def all_gather(self, buffer: np.ndarray, cuts: Sequence[int]) -> Poll:
        return done

    def gather(self, buffer: np.ndarray, cuts: Sequence[int], dst: int) -> Poll:
        return done

    def bcast(self, buffer: np.ndarray, src: int) -> Poll:
        return done

    def all_reduce(self, buffer: np.ndarray) -> Poll:
        return done

    def subset(self, ranks: Sequence[int], name: str) -> Transport | None:
        return Alone() if ranks else None


def checked_move(t: Transport, move: Any) -> Poll:
    """What a transport gave, which may be a user's; an error if it is no `Poll`: that would be taken for `done`."""
    if not callable(move):
        expected = "moves that give a function, which says whether they are over (`done` where they wait)"
        raise ArgumentTypeError(message(type(t).__name__, None, expected, describe(move)))
    return move  # type: ignore[no-any-return]


def even_cuts(count: int, parts: int) -> list[int]:
    """Positions that cut `count` numbers into parts whose lengths differ by one at most."""
    return [count * i // parts for i in range(parts + 1)]


def block_cuts(each: int, parts: int) -> list[int]:
    """Positions of `parts` blocks of `each` numbers."""
    return [each * i for i in range(parts + 1)]
