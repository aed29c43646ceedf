"""The backward runs that go on, with callbacks that add gradients up over processes.

Which run another process speaks of is found by counting: a run has a number among those with callbacks of a group, of
any communicator, and where it is within another run it is counted there. So what one process has never begun ends with
what is around it, and numbers do not drift apart. Processes that have no such group in common know a run by where it
begins among the collectives of the group in which they speak, and by how many began there before.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .agreement import DisagreementError, Notice

if TYPE_CHECKING:
    from .line import Collective, Line
    from .overlap import RunPlan


class RunNumber(NamedTuple):
    """Which run is meant among those that begin within another one, or within none; in a word of a group."""

    place: int
    """How many collectives of that group come before it."""
    since: int
    """How many runs have begun behind these, before it."""
    of_all: int
    """How many runs have begun before it."""
    of_groups: Mapping[str, int]
    """For each group (as `Line.name_of` calls it) whose callbacks it has: the how many-th it is of those that have such
    ones."""

    def means(self, told: RunNumber, both: Container[str], is_met: bool) -> bool | None:
        """Whether another process's run is this one; None where what has met the word may belong to it, or not.

        Args:
            both: Groups that both processes are in, whose callbacks they have in the same runs.
            is_met: Whether a collective of the run has met the word: then its place counts, too.
        """
        common = self.of_groups.keys() & told.of_groups.keys()
        if common:
            return any(self.of_groups[g] == told.of_groups[g] for g in common)
        if not is_met or self.place != told.place or any(g in both for g in [*self.of_groups, *told.of_groups]):
            return False
        if self.since == told.since:
            return True
        # Where both had begun as many when they came to that place, an earlier one is over here.
        is_over = told.since < self.since and self.of_all - self.since == told.of_all - told.since
        return False if is_over else None


class RunCounts:
    """How many runs have begun within another one, or within none; of one communicator."""

    def __init__(self) -> None:
        self.of_all = 0
        self.of_groups: dict[str, int] = {}
        """With callbacks of each group."""
        self._behind: dict[str, tuple[int, int]] = {}

    def behind(self, group: str, place: int) -> int:
        """How many behind so many collectives of a group."""
        last, count = self._behind.get(group, (place, 0))
        return count if last == place else 0

    def begin(self, places: Mapping[str, int]) -> dict[str, tuple[int, int, int]]:
        """One more; gives for each group where it begins, and how many have begun there, and in all, before."""
        found = {group: (place, self.behind(group, place), self.of_all) for group, place in places.items()}
        self._behind = {group: (place, count + 1) for group, (place, count, _) in found.items()}
        self.of_all += 1
        return found


class OpenRun:
    """A backward run that goes on.

    Where processes disagree on one collective of it, all of it ends, with one error.
    """

    def __init__(self, run: int, around: OpenRun | None, thread: object) -> None:
        self.run, self.around = run, around
        self.thread = thread
        """Whose it is."""
        self._begun: dict[Line, dict[str, tuple[int, int, int]]] = {}
        self._numbers: dict[Line, dict[str, int]] = {}
        self._within: dict[Line, RunCounts] = {}
        self.plans: list[RunPlan] = []
        """Of its callbacks, in their order."""
        self.error: DisagreementError | None = None
        self.settled: set[tuple[Line, str]] = set()
        """Groups in which all know how it has ended."""
        self.is_given_up = False

    def begin(self, line: Line) -> None:
        """It begins, for a communicator of the process."""
        places = {group: line.place(group) for group in list(line.groups)}
        self._begun[line] = counts_of(self.around, line).begin(places)

    def count(self, line: Line, group: str) -> None:
        """It has callbacks of a group."""
        numbers = self._numbers.setdefault(line, {})
        if group not in numbers:
            of_groups = counts_of(self.around, line).of_groups
            numbers[group] = of_groups[group] = of_groups.get(group, 0) + 1

    def within(self, line: Line) -> RunCounts:
        """How many runs have begun within it."""
        return self._within.setdefault(line, RunCounts())

    def number(self, line: Line, group: str) -> RunNumber:
        """Which it is, in a word of that group."""
        numbers = [(of, list(all.items())) for of, all in list(self._numbers.items())]
        of_groups = {line.name_of(of, name): n for of, all in numbers for name, n in all}
        return RunNumber(*self._begun.get(line, {}).get(group, (0, 0, 0)), of_groups)

    def path(self, line: Line, group: str) -> list[RunNumber]:
        """The same, and before it those around it."""
        return [*(self.around.path(line, group) if self.around else ()), self.number(line, group)]


def counts_of(around: OpenRun | None, line: Line) -> RunCounts:
    """How many runs have begun within that one, or within none."""
    return around.within(line) if around else line.counts


class OpenCallback:
    """A callback in a backward run that goes on; without a group where this process is not in that."""

    def __init__(self, run: OpenRun, line: Line, group: str | None, number: int) -> None:
        self.run, self.line, self.group = run, line, group
        self.number = number
        """No other open one of its group has it."""
        self.memories: set[int] = set()
        """Those of gradients that have been sent, and whose sums are not yet where they belong."""
        self.puts: list[Callable[[], None]] = []
        """What brings them there."""
        self.last: Collective | None = None
        """What was sent last."""


class _Told:
    """What another process has said, in a group, of a run that it has given up."""

    def __init__(self, line: Line, group: str, notice: Notice, name: str) -> None:
        self.line, self.group, self._notice, self._name = line, group, notice, name
        self.path = [RunNumber(*number) for number in notice.path]
        self.both = set(line.runs.groups(line)) & set(notice.groups)

    def ends(self, run: OpenRun, is_met: bool) -> bool:
        """Whether it means that run, which ends then."""
        own = run.path(self.line, self.group)
        if len(own) != len(self.path):
            return False
        means = [a.means(b, self.both, is_met) for a, b in zip(own, self.path, strict=True)]
        if False in means:
            return False
        if None in means:
            raise self._notice.unclear(self._name, self.group)
        run.error = run.error or self._notice.error(self._name, self.group)
        run.settled.add((self.line, self.group))
        return True

    def ends_one(self, open_runs: Sequence[OpenRun], met: Container[OpenRun] = ()) -> bool:
        """Whether it means one of these; those that are met have a collective that has met the word."""
        return any([self.ends(run, run in met) for run in open_runs])

    def is_to_come(self, open_runs: Sequence[OpenRun]) -> bool:
        """Whether that run has yet to begin here, or a collective that belongs to it has yet to come."""
        around: OpenRun | None = None
        for number in self.path:
            inside = [r for r in open_runs if r.around is around]
            common = [g for g in number.of_groups if g in self.both]
            if not common:
                place, counts = self.line.place(self.group), counts_of(around, self.line)
                now = (place, counts.behind(self.group, place))
                return number[:2] >= (inside[0].number(self.line, self.group)[:2] if inside else now)
            begun = self.line.runs.counts(around, self.line)
            if any(number.of_groups[g] > begun.get(g, 0) for g in common):
                return True
            around = next((r for r in inside if r.number(self.line, self.group).means(number, self.both, False)), None)
            if around is None:
                return False
        return False


class OpenRuns:
    """The runs of a process, and its communicators; of one thread, where threads stand for processes."""

    def __init__(self) -> None:
        self.callbacks: list[OpenCallback] = []
        self._early: list[_Told] = []
        """Of runs that have not begun here: words of several groups overtake each other."""
        self._lines: weakref.WeakSet[Line] = weakref.WeakSet()

    def lines(self) -> list[Line]:
        return list(self._lines)

    def groups(self, line: Line) -> list[str]:
        """Those that the process is in, in a word of that communicator."""
        return [line.name_of(of, group) for of in self.lines() for group in list(of.groups)]

    def counts(self, around: OpenRun | None, line: Line) -> dict[str, int]:
        """Of each of these that has callbacks: how many such runs have begun within that one, or within none."""
        counts = [(of, list(counts_of(around, of).of_groups.items())) for of in self.lines()]
        return {line.name_of(of, group): n for of, all in counts for group, n in all}

    def add(self, line: Line) -> None:
        """There is another communicator."""
        self._lines.add(line)
        for run in self._open():
            run.begin(line)

    def remove(self, line: Line) -> None:
        """It is another thread's now."""
        self._lines.discard(line)

    def _open(self) -> list[OpenRun]:
        return list(dict.fromkeys(c.run for c in list(self.callbacks)))

    def open_here(self) -> list[OpenRun]:
        """Those of this thread that go on, the outermost first."""
        return [run for run in self._open() if run.thread is _here.thread]

    def asked_within(self) -> list[OpenRun]:
        """Those that go on as something is asked for."""
        found = self.open_here()
        for told in list(self._early):
            told.ends_one(found)
        return found

    def join(self, run: int, line: Line, group: str | None) -> OpenCallback:
        """A callback joins a run that begins. Runs begin and end like brackets, with their callbacks in one order."""
        joined = next((r for r in self.open_here() if r.run == run), None) or self._begin(run)
        if group is not None:
            joined.count(line, group)
        there = {c.number for c in list(self.callbacks) if (c.line, c.group) == (line, group)}
        made = OpenCallback(joined, line, group, min(set(range(len(there) + 1)) - there))
        self.callbacks.append(made)
        return made

    def beside(self, callback: OpenCallback) -> list[OpenCallback]:
        """The other ones of its thread."""
        return [c for c in list(self.callbacks) if c is not callback and c.run.thread is callback.run.thread]

    def leave(self, callback: OpenCallback) -> None:
        """A callback has come to the end of its run."""
        self.callbacks.remove(callback)

    def hear(self, line: Line, group: str, name: str, notices: Sequence[Notice], met: Sequence[OpenRun]) -> None:
        """Others have given runs up, which they say in a group, and a collective within these runs has met it."""
        for notice in notices:
            told = _Told(line, group, notice, name)
            if not told.ends_one(self._open(), met) and told.is_to_come(self._open()):
                self._early.append(told)

    def recall(self, line: Line, group: str, met: Sequence[OpenRun]) -> None:
        """What was told in a group too early meets a collective now."""
        for told in list(self._early):
            if (told.line, told.group) == (line, group):
                told.ends_one(met, met)

    def _begin(self, run: int) -> OpenRun:
        self._early = [told for told in self._early if told.is_to_come(self._open())]
        # A callback that only hands on what it is told of functions does not know its run, nor when that ends.
        around = next((r for r in reversed(self.open_here()) if r.run), None) if run else None
        made = OpenRun(run, around, _here.thread)
        for line in self.lines():
            made.begin(line)
        return made


class _Here(threading.local):
    def __init__(self) -> None:
        self.runs = OpenRuns()
        self.thread = object()
        """Stands for the thread: its number may be another one's afterwards."""


_here = _Here()
_process = OpenRuns()
_made: Counter[tuple[int, int]] = Counter()


def runs_here() -> OpenRuns:
    """Those of this process; of this thread, where communicators are of several ranks of worlds of one size."""
    sizes = [size for size, _ in list(_made)]
    return _process if len(sizes) == len(set(sizes)) else _here.runs


def name_communicator(size: int, rank: int) -> str:
    """What all ranks of a world call the communicator that is made now: the how many-th it is of that size."""
    _made[size, rank] += 1
    return f"{size}.{_made[size, rank]}"
