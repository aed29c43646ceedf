"""The backward runs that go on, with callbacks that add gradients up over processes; all of one process.

Which run another process speaks of is found by counting: each has a number among those with callbacks of its group, and
one among all, and where it is within another run it is counted there. So what one process has never begun ends with
what is around it, and numbers do not drift apart.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .._core import NdArray
from .agreement import DisagreementError, Notice
from .transport import Transport

if TYPE_CHECKING:
    from .line import Collective, Line
    from .overlap import RunPlan


class RunNumber(NamedTuple):
    """The how many-th a run is of those around it, or how many there have been."""

    of_all: int
    of_groups: Mapping[str, int]
    """Of those that have callbacks of a group, for each group that the run has."""

    def is_that_of(self, other: RunNumber) -> bool:
        """Whether two processes mean one run; runs of all count where they have no group in common."""
        common = self.of_groups.keys() & other.of_groups.keys()
        if not common:
            return self.of_all == other.of_all
        return any(self.of_groups[g] == other.of_groups[g] for g in common)

    def is_after(self, counts: RunNumber) -> bool:
        """Whether so many have not begun yet."""
        common = self.of_groups.keys() & counts.of_groups.keys()
        if not common:
            return self.of_all > counts.of_all
        return any(self.of_groups[g] > counts.of_groups[g] for g in common)

    def or_more(self, other: RunNumber) -> RunNumber:
        """The larger ones."""
        groups = dict(self.of_groups)
        for g, number in other.of_groups.items():
            groups[g] = max(number, groups.get(g, 0))
        return RunNumber(max(self.of_all, other.of_all), groups)

    def with_one_more(self, group: str) -> RunNumber:
        """After one more run of a group."""
        return self._replace(of_groups={**self.of_groups, group: self.of_groups.get(group, 0) + 1})


_NONE = RunNumber(0, {})


class OpenRun:
    """A backward run that goes on.

    Where processes disagree on one collective of it, all of it ends, with one error.
    """

    def __init__(self, run: int, around: OpenRun | None, of_all: int) -> None:
        self.run, self.around = run, around
        self.number = RunNumber(of_all, {})
        self.within = _NONE
        """How many runs have begun within it."""
        self.plans: list[RunPlan] = []
        """Of its callbacks, in their order."""
        self.error: DisagreementError | None = None
        self.settled: set[str] = set()
        """Groups in which all know how it has ended."""
        self.is_given_up = False

    def path(self) -> list[RunNumber]:
        """Which run it is: the numbers of those around it, and its own."""
        return [*(self.around.path() if self.around else ()), self.number]


class OpenCallback:
    """A callback in a backward run that goes on; without a group where this process is not in that."""

    def __init__(self, run: OpenRun, group: str | None, number: int) -> None:
        self.run, self.group = run, group
        self.number = number
        """No other open one of its group has it."""
        self.arrays: set[NdArray] = set()
        """Gradients that have been sent, and whose sums are not yet where they belong."""
        self.puts: list[Callable[[], None]] = []
        """What brings them there."""
        self.last: Collective | None = None
        """What was sent last."""


class _Told(NamedTuple):
    """What another process has said, in a group, of a run that it has given up."""

    key: str
    path: list[RunNumber]
    error: DisagreementError

    def ends(self, run: OpenRun) -> bool:
        """Whether it means that run, which ends then."""
        own = run.path()
        is_meant = len(own) == len(self.path) and all(a.is_that_of(b) for a, b in zip(own, self.path, strict=True))
        if is_meant:
            run.error = run.error or self.error
            run.settled.add(self.key)
        return is_meant


class OpenRuns:
    """The runs of one process, and its communicators' lines, which are numbered as on all others."""

    def __init__(self) -> None:
        self.callbacks: list[OpenCallback] = []
        self.counts = _NONE
        """How many runs have begun that are within no other one."""
        self._early: list[_Told] = []
        """Of runs that have not begun here: words of several groups overtake each other."""
        self.lines: weakref.WeakSet[Line] = weakref.WeakSet()
        self._line_count = 0

    def add(self, line: Line) -> int:
        """A communicator finds other processes; gives its number."""
        self.lines.add(line)
        self._line_count += 1
        return self._line_count

    def open(self) -> tuple[OpenRun, ...]:
        """Those that go on."""
        return tuple(dict.fromkeys(c.run for c in list(self.callbacks)))

    def asked_within(self) -> tuple[OpenRun, ...]:
        """Those that go on as something is asked for."""
        found = self.open()
        for told in self._early:
            any(told.ends(run) for run in found)
        return found

    def join(self, run: int, group: str | None) -> OpenCallback:
        """A callback joins a run that begins. Runs begin and end like brackets, with their callbacks in one order."""
        joined = next((r for r in self.open() if r.run == run), None) or self._begin(run)
        if group is not None and group not in joined.number.of_groups:
            counts = self._counts(joined.around).with_one_more(group)
            self._count(joined.around, counts)
            joined.number = joined.number._replace(
                of_groups={**joined.number.of_groups, group: counts.of_groups[group]}
            )
        there = {c.number for c in self.callbacks if c.group == group}
        made = OpenCallback(joined, group, min(set(range(len(there) + 1)) - there))
        self.callbacks.append(made)
        return made

    def leave(self, callback: OpenCallback) -> None:
        """A callback has come to the end of its run."""
        self.callbacks.remove(callback)

    def groups(self, run: OpenRun) -> list[tuple[Line, str, Transport]]:
        """Where others may wait for this process within a run, and do not know how it has ended."""
        found = ((line, group, t) for line in list(self.lines) for group, t in line.groups.items())
        return [(line, group, t) for line, group, t in found if line.key(group) not in run.settled]

    def hear(self, key: str, error: Callable[[Notice], DisagreementError], notices: Sequence[Notice]) -> None:
        """Others have given runs up, which they say in a group."""
        for notice in notices:
            told = _Told(key, [RunNumber(*number) for number in notice.path], error(notice))
            if not any([told.ends(run) for run in self.open()]) and self._is_to_come(told.path):
                self._early.append(told)

    def catch_up(self, others: RunNumber) -> None:
        """Another process has begun so many, and comes to what this one comes to: some were never begun here."""
        self.counts = self.counts.or_more(others)

    def _is_to_come(self, path: Sequence[RunNumber]) -> bool:
        """Whether another process's run has yet to begin here."""
        around: OpenRun | None = None
        for number in path:
            if number.is_after(self._counts(around)):
                return True
            inside = (r for r in self.open() if r.around is around and r.number.is_that_of(number))
            around = next(inside, None)
            if around is None:
                return False
        return False

    def _begin(self, run: int) -> OpenRun:
        self._early = [told for told in self._early if self._is_to_come(told.path)]
        # A callback that only hands on what it is told of functions does not know its run, nor when that ends.
        around = next((r for r in reversed(self.open()) if r.run), None) if run else None
        counts = self._counts(around)
        counts = counts._replace(of_all=counts.of_all + 1)
        self._count(around, counts)
        return OpenRun(run, around, counts.of_all)

    def _counts(self, around: OpenRun | None) -> RunNumber:
        return self.counts if around is None else around.within

    def _count(self, around: OpenRun | None, counts: RunNumber) -> None:
        if around is None:
            self.counts = counts
        else:
            around.within = counts


class _Here(threading.local):
    def __init__(self) -> None:
        self.runs = OpenRuns()


_here = _Here()


def runs_here() -> OpenRuns:
    """Those of the communicators that this thread makes: threads may stand for processes, each with its own."""
    return _here.runs
