"""The backward runs that go on, with callbacks that add gradients up over processes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .line import Collective, Ending
from .transport import Transport


class SharedRun(Ending):
    """What the callbacks of one communicator in one backward run share, in one group."""

    def __init__(self) -> None:
        super().__init__()
        self.is_given_up = False
        self.last: Collective | None = None
        """What was sent last in it."""


class OpenCallback:
    """A callback in a backward run that goes on."""

    def __init__(self, run: int, group: str, transport: Transport, shared: SharedRun, number: int) -> None:
        self.run, self.group, self.transport, self.shared = run, group, transport, shared
        self.number = number
        """No other open one of its group has it."""
        self.next_rank = math.inf
        """The rank of the function whose end its next pack waits for; that of all is infinite, of none minus that."""


class OpenRuns:
    """The runs of one communicator."""

    def __init__(self) -> None:
        self._callbacks: list[OpenCallback] = []

    def join(self, run: int, group: str, transport: Transport) -> OpenCallback:
        """A callback joins a run that begins.

        Runs begin and end like brackets, with their callbacks in one order, so all of the group give it one number.
        """
        there = [c for c in self._callbacks if c.group == group]
        shared = next((c.shared for c in there if c.run == run), SharedRun())
        number = min(set(range(len(there) + 1)) - {c.number for c in there})
        made = OpenCallback(run, group, transport, shared, number)
        self._callbacks.append(made)
        return made

    def leave(self, callback: OpenCallback) -> None:
        """A callback has come to the end of its run."""
        self._callbacks.remove(callback)

    def of(self, run: int) -> Sequence[OpenCallback]:
        """All callbacks in a run, in the order in which their next packs would go."""
        return sorted((c for c in self._callbacks if c.run == run), key=lambda c: -c.next_rank)
