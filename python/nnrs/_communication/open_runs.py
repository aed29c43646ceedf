"""The backward runs that go on, with callbacks that add gradients up over processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .._core import NdArray
from .agreement import DisagreementError, Notice
from .transport import Transport

if TYPE_CHECKING:
    from .line import Collective


class OpenRun:
    """A backward run that goes on, with callbacks of one communicator.

    Where processes disagree on one collective of it, all of it ends, with one error.
    """

    def __init__(self, run: int) -> None:
        self.run = run
        self.numbers: dict[str, int] = {}
        """Of each group that has callbacks in it: the how many-th run of that group this is, the same on all."""
        self.error: DisagreementError | None = None
        self.settled: set[str] = set()
        """Groups in which all know how it has ended."""
        self.is_given_up = False


class OpenCallback:
    """A callback in a backward run that goes on."""

    def __init__(self, run: OpenRun, group: str, transport: Transport, number: int) -> None:
        self.run, self.group, self.transport = run, group, transport
        self.number = number
        """No other open one of its group has it."""
        self.arrays: set[NdArray] = set()
        """Gradients that have been sent, and whose sums are not yet where they belong."""
        self.puts: list[Callable[[], None]] = []
        """What brings them there."""
        self.last: Collective | None = None
        """What was sent last."""


class OpenRuns:
    """The runs of one communicator."""

    def __init__(self) -> None:
        self.callbacks: list[OpenCallback] = []
        self.beside: dict[str, Transport] = {}
        """Groups with collectives of other kinds within runs."""
        self._counts: dict[str, int] = {}

    def open(self) -> tuple[OpenRun, ...]:
        """Those that go on."""
        return tuple(dict.fromkeys(c.run for c in list(self.callbacks)))

    def join(self, run: int, group: str, transport: Transport) -> OpenCallback:
        """A callback joins a run that begins.

        Runs begin and end like brackets, with their callbacks in one order, so all of the group give them one number.
        """
        joined = next((r for r in self.open() if r.run == run), None) or OpenRun(run)
        if group not in joined.numbers:
            joined.numbers[group] = self._counts[group] = self._counts.get(group, 0) + 1
        there = {c.number for c in self.callbacks if c.group == group}
        made = OpenCallback(joined, group, transport, min(set(range(len(there) + 1)) - there))
        self.callbacks.append(made)
        return made

    def leave(self, callback: OpenCallback) -> None:
        """A callback has come to the end of its run."""
        self.callbacks.remove(callback)

    def groups(self, run: OpenRun) -> dict[str, Transport]:
        """Groups in which others may wait for this process within a run, and do not know how it has ended."""
        of = {c.group: c.transport for c in self.callbacks if c.run is run}
        return {g: t for g, t in {**of, **self.beside}.items() if t.size > 1 and g not in run.settled}

    def hear(self, group: str, name: str, notices: Sequence[Notice]) -> DisagreementError | None:
        """Others have given runs up, which they say in a group; gives the error for those that go on here."""
        error = None
        for notice in notices:
            for run in self.open():
                if any(run.numbers.get(g) == number for g, number in notice.runs.items()):
                    run.error = run.error or notice.error(name, group)
                    run.settled.add(group)
                    error = error or run.error
            for g, number in notice.runs.items():  # one that was begun nowhere else counts all the same
                self._counts[g] = max(self._counts.get(g, 0), number)
        return error
