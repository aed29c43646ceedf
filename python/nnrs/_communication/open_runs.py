"""The backward runs that go on, with callbacks that add gradients up over processes; all of one process.

Which run another process speaks of is found by counting: each has a number among those with callbacks of its group, and
where it is within another run it is counted there. So what one process has never begun ends with what is around it, and
numbers do not drift apart. Processes that have no such group in common know a run by where it begins among the
collectives of the group in which they speak, and by how many began there before.
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
    """Which run is meant among those that begin within another one, or within none; in a word of a group."""

    place: int
    """How many collectives of that group come before it."""
    since: int
    """How many runs have begun behind these, before it."""
    of_groups: Mapping[str, int]
    """For each group whose callbacks it has: the how many-th it is of those that have such ones."""

    def means(self, told: RunNumber, both: Callable[[str], bool], is_met: bool) -> bool | None:
        """Whether another process's run is this one; None where what has met the word may belong to it, or not.

        Args:
            both: Whether both processes are in a group, and so have its callbacks in the same runs.
            is_met: Whether a collective of the run has met the word: then its place counts, too.
        """
        common = self.of_groups.keys() & told.of_groups.keys()
        if common:
            return any(self.of_groups[g] == told.of_groups[g] for g in common)
        if not is_met or self.place != told.place or any(map(both, [*self.of_groups, *told.of_groups])):
            return False
        return self.since == told.since or None


class RunCounts:
    """How many runs have begun within another one, or within none."""

    def __init__(self) -> None:
        self.of_groups: dict[str, int] = {}
        """With callbacks of each group."""
        self._behind: dict[str, tuple[int, int]] = {}

    def behind(self, key: str, place: int) -> int:
        """How many behind so many collectives of a group."""
        last, count = self._behind.get(key, (place, 0))
        return count if last == place else 0

    def begin(self, places: Mapping[str, int]) -> dict[str, tuple[int, int]]:
        """One more; gives for each group where it begins, and how many have begun there before."""
        found = {key: (place, self.behind(key, place)) for key, place in places.items()}
        self._behind = {key: (place, count + 1) for key, (place, count) in found.items()}
        return found


class OpenRun:
    """A backward run that goes on.

    Where processes disagree on one collective of it, all of it ends, with one error.
    """

    def __init__(self, run: int, around: OpenRun | None, places: Mapping[str, tuple[int, int]]) -> None:
        self.run, self.around, self._places = run, around, places
        self.numbers: dict[str, int] = {}
        """For each group whose callbacks it has: the how many-th it is of those that have such ones."""
        self.within = RunCounts()
        self.plans: list[RunPlan] = []
        """Of its callbacks, in their order."""
        self.error: DisagreementError | None = None
        self.settled: set[str] = set()
        """Groups in which all know how it has ended."""
        self.is_given_up = False

    def number(self, key: str) -> RunNumber:
        """Which it is, in a word of that group."""
        return RunNumber(*self._places.get(key, (0, 0)), self.numbers)

    def path(self, key: str) -> list[RunNumber]:
        """The same, and before it those around it."""
        return [*(self.around.path(key) if self.around else ()), self.number(key)]


class OpenCallback:
    """A callback in a backward run that goes on; without a group where this process is not in that."""

    def __init__(self, run: OpenRun, line: Line, group: str | None, number: int) -> None:
        self.run, self.line, self.group = run, line, group
        self.number = number
        """No other open one of its group has it."""
        self.arrays: set[NdArray] = set()
        """Gradients that have been sent, and whose sums are not yet where they belong."""
        self.puts: list[Callable[[], None]] = []
        """What brings them there."""
        self.last: Collective | None = None
        """What was sent last."""


class _Told:
    """What another process has said, in a group, of a run that it has given up."""

    def __init__(self, runs: OpenRuns, line: Line, group: str, notice: Notice, name: str) -> None:
        self.line, self.group, self.key, self._notice, self._name = line, group, line.key(group), notice, name
        self.path = [RunNumber(*number) for number in notice.path]
        self.both = runs.keys().intersection(notice.groups).__contains__

    def ends(self, run: OpenRun, is_met: bool) -> bool:
        """Whether it means that run, which ends then."""
        own = run.path(self.key)
        if len(own) != len(self.path):
            return False
        means = [a.means(b, self.both, is_met) for a, b in zip(own, self.path, strict=True)]
        if False in means:
            return False
        if None in means:
            raise self._notice.unclear(self._name, self.group)
        run.error = run.error or self._notice.error(self._name, self.group)
        run.settled.add(self.key)
        return True


class OpenRuns:
    """The runs of one process, and its communicators' lines, which are numbered as on all others."""

    def __init__(self) -> None:
        self.callbacks: list[OpenCallback] = []
        self.counts = RunCounts()
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
            any(told.ends(run, False) for run in found)
        return found

    def join(self, run: int, line: Line, group: str | None) -> OpenCallback:
        """A callback joins a run that begins. Runs begin and end like brackets, with their callbacks in one order."""
        joined = next((r for r in self.open() if r.run == run), None) or self._begin(run)
        if group is not None and group not in joined.numbers:
            of_groups = self._counts(joined.around).of_groups
            joined.numbers[group] = of_groups[group] = of_groups.get(group, 0) + 1
        there = {c.number for c in self.callbacks if c.group == group}
        made = OpenCallback(joined, line, group, min(set(range(len(there) + 1)) - there))
        self.callbacks.append(made)
        return made

    def leave(self, callback: OpenCallback) -> None:
        """A callback has come to the end of its run."""
        self.callbacks.remove(callback)

    def groups(self) -> list[tuple[Line, str, Transport]]:
        """All in which this process is with others."""
        return [(line, group, t) for line in list(self.lines) for group, t in list(line.groups.items())]

    def keys(self) -> set[str]:
        """What these are called."""
        return {line.key(group) for line, group, _ in self.groups()}

    def hear(self, line: Line, group: str, name: str, notices: Sequence[Notice], is_met: bool) -> None:
        """Others have given runs up, which they say in a group.

        Args:
            is_met: Whether what has met that is a collective of the script, and no such word.
        """
        for notice in notices:
            told = _Told(self, line, group, notice, name)
            if not any([told.ends(run, is_met) for run in self.open()]) and self._is_to_come(told):
                self._early.append(told)

    def recall(self, key: str) -> None:
        """What was told in a group too early meets a collective now."""
        for told in self._early:
            if told.key == key:
                any([told.ends(run, True) for run in self.open()])

    def catch_up(self, others: Mapping[str, int]) -> None:
        """Another process has begun so many, and comes to what this one comes to: some were never begun here."""
        own = self.counts.of_groups
        for group, number in others.items():
            own[group] = max(number, own.get(group, 0))

    def _counts(self, around: OpenRun | None) -> RunCounts:
        return around.within if around else self.counts

    def _is_to_come(self, told: _Told) -> bool:
        """Whether another process's run has yet to begin here, or a collective that belongs to it has yet to come."""
        around: OpenRun | None = None
        for number in told.path:
            counts, run = self._counts(around), next((r for r in self.open() if r.around is around), None)
            common = [g for g in number.of_groups if told.both(g)]
            if not common:
                place = told.line.place(told.group)
                own = run.number(told.key)[:2] if run else (place, counts.behind(told.key, place))
                return number[:2] >= own
            if any(number.of_groups[g] > counts.of_groups.get(g, 0) for g in common):
                return True
            if run is None or not run.number(told.key).means(number, told.both, False):
                return False
            around = run
        return False

    def _begin(self, run: int) -> OpenRun:
        self._early = [told for told in self._early if self._is_to_come(told)]
        # A callback that only hands on what it is told of functions does not know its run, nor when that ends.
        around = next((r for r in reversed(self.open()) if r.run), None) if run else None
        places = {line.key(group): line.place(group) for line, group, _ in self.groups()}
        return OpenRun(run, around, self._counts(around).begin(places))


class _Here(threading.local):
    def __init__(self) -> None:
        self.runs = OpenRuns()


_here = _Here()


def runs_here() -> OpenRuns:
    """Those of the communicators that this thread makes: threads may stand for processes, each with its own."""
    return _here.runs
