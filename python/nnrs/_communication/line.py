"""The line in which a communicator's collectives stand: one runs at a time, in the order in which they were asked for.

That order is the same on each process, whatever the times are, so their messages meet. A thread moves on those that are
left alone with their memory while the script computes (gradients of a backward run). What a process says of a run that
it has given up keeps its place in its group alone: it does not know in which group the others come to it first. It
goes to all groups of the thread's communicators: which of them a run uses, in its hooks, none knows before.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from .._errors import CommunicatorError, DeviceError, Error
from .._interrupts import is_of_handler
from .agreement import DisagreementError, Notice, agree, notice_text
from .open_runs import OpenCallback, OpenRun, OpenRuns, RunCounts, name_communicator, runs_here
from .reductions import Steps, thread
from .transport import Alone, Call, Poll, Transport, checked_move

# Lets others run and comes back at once; time.sleep(0) takes a tenth of a millisecond on some systems.
_give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
PATIENCE = 0.05
"""Seconds until a wait is looked after, and between two looks."""
PAUSE, IDLE_PAUSE, IDLE = 5e-4, 5e-3, 0.05
"""Seconds between two looks of the thread, where nobody will wait, and how long it stays when all is done."""


class Collective:
    """One that stands in the line; any thread may make the moves of a free one.

    `runs` are those that went on when it was asked for, and `run` the one that it adds gradients up for.
    """

    def __init__(self, call: Call, transport: Transport, is_free: bool, runs: Sequence[OpenRun], run: OpenRun | None):
        self.call, self.transport, self.is_free, self.runs, self.run = call, transport, is_free, runs, run
        self.steps: Steps = iter(())
        self.move: Poll | None = None
        """What has begun and may not be over."""
        self.is_agreed = False
        """Whether all have come to it."""
        self.is_notice = False
        """Whether it says of a run that it has been given up."""
        self.is_left = False
        """Whether nobody waits for it here, but maybe elsewhere."""
        self.is_done = False
        self.error: BaseException | None = None

    def given_up(self) -> DisagreementError | None:
        """The error of a run that has ended since, and it with it."""
        return next((run.error for run in self.runs if run.error is not None), None)


class Line:
    """Runs collectives one after another."""

    def __init__(self) -> None:
        self.runs: OpenRuns = runs_here()
        self.groups: dict[str, Transport] = {}
        """Those with other processes that this one is in."""
        self.counts = RunCounts()
        """Of runs that are within no other one."""
        self._name = ""
        self.has_others = False
        """Whether there may be other processes, in its groups or in those of other communicators."""
        self._waiting: list[Collective] = []
        self._counts: dict[str, int] = {}
        self._agreed: dict[str, int] = {}
        self._lock = threading.RLock()
        self._failed: CommunicatorError | None = None
        self._stuck: list[Steps] = []
        self._mover: threading.Thread | None = None
        self._found: BaseException | None = None
        self._process = os.getpid()

    def add_group(self, group: str, transport: Transport | None) -> None:
        """A group has been made."""
        if transport is None or isinstance(transport, Alone):
            return
        if not self.has_others:
            self.has_others = True
            self._name = name_communicator(transport.size, transport.rank)  # the first group is that of all
            self.runs = runs_here()
            self.runs.add(self)
        if transport.size > 1:
            self.groups[group] = transport

    def name_of(self, line: Line, group: str) -> str:
        """What a communicator's group is called in a word of this one: the same on all processes."""
        return f"{'' if line is self else line._name}:{group}"

    def begin(self) -> OpenRuns:
        """Something is asked for: a thread that stands for a process does so until another one asks."""
        here = runs_here()
        if here is not self.runs and not any(c.line is self for c in list(self.runs.callbacks)):
            if self.has_others:
                self.runs.remove(self)
                here.add(self)
            self.runs = here
        return self.runs

    def place(self, group: str) -> int:
        """How many collectives of a group have been asked for: all processes of it have done those, or will."""
        with self._lock:
            waiting = sum(e.call.group == group and not (e.is_notice or e.is_agreed) for e in self._waiting)
            return self._agreed.get(group, 0) + waiting

    def submit(
        self,
        name: str,
        group: str,
        transport: Transport,
        said: str,
        steps: Callable[[], Steps],
        is_free: bool = False,
        run: OpenRun | None = None,
    ) -> Collective:
        """Let a collective stand behind the others; its steps are made when its turn has come, and all agree on it.

        `run`, where it adds gradients up for one.
        """
        self._check_process(transport, name, group)
        self.begin()
        with self._lock:
            self._check()
            # Its number follows when its turn has come: one that is dropped is none on any process.
            made = Collective(Call(name, group, 0), transport, is_free, self.runs.asked_within(), run)
            error = made.given_up()
            if error is not None:
                raise error
            made.steps = self._steps(made, said, steps)
            self._append(made)
            return made

    def fail(self, callback: OpenCallback, name: str, why: str) -> None:
        """A run with a callback has failed here."""
        try:
            self._give_up(callback.run, name, why)
        finally:
            self.runs.leave(callback)

    def _give_up(self, run: OpenRun, name: str, why: str) -> None:
        """End a run, when no array of its is on its way any more.

        The others are told in the place of their next collectives within it, so that they do not wait, nor take what
        comes for those; nobody waits until they have heard.
        """
        if os.getpid() != self._process:
            return
        with self._lock:
            last = next((each for each in reversed(self._waiting) if each.run is run), None)
        if last is not None:
            with suppress(DisagreementError):
                self.wait(last)
        if run.is_given_up:
            return
        run.is_given_up = True
        if run.around is not None and run.around.error is not None:
            return  # which ends too, and says so
        for line in self.runs.lines():
            for group, transport in list(line.groups.items()):
                if (line, group) not in run.settled:
                    text = notice_text(run.path(line, group), self.runs.groups(line), why)
                    with suppress(CommunicatorError):  # of one that has ended
                        line.say(name, group, transport, text)

    def say(self, name: str, group: str, transport: Transport, text: str) -> None:
        """Tell a group that a run has been given up."""
        with self._lock:
            self._check()
            made = Collective(Call(name, group, 0), transport, True, (), None)
            made.is_notice = made.is_left = True
            made.steps = self._steps(made, text, lambda: iter(()))
            self._append(made)
        self.advance()

    def _check_process(self, transport: Transport, name: str, group: str) -> None:
        """Raise in a fork of the process that made it."""
        if transport.size > 1 and os.getpid() != self._process:  # the lock may be held by a thread that is not here
            why = "a fork of the process that made it cannot take part: its messages would be taken for that process's"
            raise CommunicatorError(f"{name} (group {group!r}): {why}")

    def _steps(self, made: Collective, said: str, steps: Callable[[], Steps]) -> Steps:
        counts, group = dict(self.counts.of_groups), made.call.group

        def hear(notices: Sequence[Notice], counted: Sequence[Mapping[str, int]]) -> DisagreementError | None:
            self.runs.hear(self, group, made.call.name, notices, made.runs)
            if not made.is_notice:  # which others may meet that have not come as far
                for begun in (*(n.begun() for n in notices), *counted):
                    self._catch_up(begun)
            return made.given_up()

        def run() -> Steps:
            yield from agree(made.transport, made.call.name, said, counts, hear, lambda: self._count(made))
            if not made.is_notice:
                self._agreed[group], made.is_agreed = self._agreed.get(group, 0) + 1, True
            yield from steps()

        return run()

    def _catch_up(self, others: Mapping[str, int]) -> None:
        """Another process has begun so many runs, and comes to what this one comes to: some were never begun here."""
        own = self.counts.of_groups
        for group, number in others.items():
            own[group] = max(number, own.get(group, 0))

    def _append(self, made: Collective) -> None:
        self._waiting.append(made)
        if made.is_left:
            self._tell_of_those_left(made)
        self._move_beside(made)

    def _move_beside(self, made: Collective) -> None:
        if made.is_free and made.transport.allows_threads and (self._mover is None or not self._mover.is_alive()):
            self._mover = threading.Thread(target=self._move, name="nnrs communicator", daemon=True)
            self._mover.start()

    def _tell_of_those_left(self, made: Collective) -> None:
        group = made.call.group
        count = sum(each.is_left and each.call.group == group for each in self._waiting)
        made.transport.owes(group, count, self.advance)

    def advance(self) -> None:
        """Do what can be done without waiting; nothing where the thread is at it."""
        if self._lock.acquire(blocking=False):
            try:
                self._check()
                self._go_on()
            finally:
                self._lock.release()

    def _in_turn(self, only_free: bool = False) -> list[Collective]:
        """The first of all, and what was given up in groups where nothing stands before it."""
        found, groups, is_first = [], set(), True
        for each in self._waiting:
            if (each.is_notice or is_first) and each.call.group not in groups and (each.is_free or not only_free):
                found.append(each)
            groups.add(each.call.group)
            is_first = is_first and each.is_notice
        return found

    def _go_on(self, only_free: bool = False) -> None:
        for each in list(self._waiting):  # also before their turn, which may not come: another run has left something
            self._is_given_up(each)
        while any([self._is_over(each) for each in self._in_turn(only_free)]):
            pass

    def _is_over(self, first: Collective) -> bool:
        if first.error is not None:  # dropped with another one
            return True
        if self._is_given_up(first):
            return True
        if not first.call.number:
            self._count(first)
        try:
            if not self._step(first):
                return False
        except DisagreementError:
            if first.run is None and not first.is_left:
                raise
            return True
        first.is_done = True
        self._waiting.remove(first)
        first.transport.finished(first.call)
        if first.is_left:
            self._tell_of_those_left(first)
        return True

    def _is_given_up(self, each: Collective) -> bool:
        """Whether it has not begun, and its run has ended: it goes, too."""
        if each.call.number:
            return False
        if each.runs:
            try:
                self.runs.recall(self, each.call.group, each.runs)
            except CommunicatorError as unclear:
                self._drop(each, unclear)
                raise
        error = each.given_up()
        if error is not None:
            self._drop(each, error)
        return error is not None

    def _count(self, first: Collective) -> None:
        count = self._counts[first.call.group] = self._counts.get(first.call.group, 0) + 1
        first.call = first.call._replace(number=count)

    def _move(self) -> None:
        """What the thread does; it ends when there has been nothing to do for a while."""
        thread.computes_beside = True
        last, pause = time.monotonic(), PAUSE
        while threading.main_thread().is_alive():
            time.sleep(pause)
            with self._lock:
                # None of them is held while the thread sleeps: an error would keep the script's graph alive.
                kinds = {each.is_notice for each in self._in_turn(only_free=True)}
                pause = IDLE_PAUSE if kinds == {True} else PAUSE
                if kinds:
                    last = time.monotonic()
                    try:
                        self._go_on(only_free=True)
                    except BaseException as error:
                        self._found = error  # for who asks next
                elif time.monotonic() - last > IDLE:
                    self._mover = None
                    return

    def wait(self, collective: Collective) -> None:
        """Return when it is over."""
        try:
            self.advance()
            start = looked = time.monotonic()
            while not collective.is_done:
                if collective.error is not None:  # which another thread got
                    self._found = None
                    raise collective.error
                now = time.monotonic()
                if now - looked > PATIENCE:
                    looked = now
                    self._look(now - start)
                    self._help_others()
                _give_way() if now - start < 2 else time.sleep(1e-4)
                self.advance()
        except BaseException:
            self._leave(collective)
            raise

    def _help_others(self) -> None:
        """Move on what other communicators have on its way, which those may wait for that this one waits for."""
        for line in self.runs.lines():
            if line is not self:
                with suppress(Error):  # who waits for it gets it
                    line.advance()

    def _leave(self, collective: Collective) -> None:
        """Go on with one beside the script, where a signal's handler has ended the wait: the others wait for it."""
        with self._lock:
            if collective in self._waiting:
                collective.is_left = True
                collective.is_free = collective.is_free or collective.transport.is_interruptible
                self._tell_of_those_left(collective)
                self._move_beside(collective)

    def _check(self) -> None:
        found, self._found = self._found, None
        if found is not None:
            raise found
        if self._failed is not None:
            raise CommunicatorError(f"this communicator has ended: {self._failed}") from self._failed

    def _step(self, first: Collective) -> bool:
        """Whether the collective is over now."""
        try:
            while first.move is None or first.move():
                first.move = None
                first.move = checked_move(first.transport, next(first.steps))
        except StopIteration:
            return True
        except BaseException as error:
            if first.move is None or not (first.transport.is_interruptible and is_of_handler(error)):
                self._drop(first, error)
            raise
        return False

    def _drop(self, first: Collective, error: BaseException) -> None:
        """Forget what followed from what has failed: all, where that was no mere disagreement."""
        if isinstance(error, DisagreementError):  # on all processes alike
            if first.run is not None and first.run.error is None:
                first.run.error = error
                first.run.settled.add((self, first.call.group))
            first.error = error
            self._waiting.remove(first)
            return
        for each in self._waiting:
            each.error = error
        self._stuck += [each.steps for each in self._waiting]  # arrays that are on their way have to stay in memory
        self._waiting.clear()
        kind = type(error).__name__
        failed = error if isinstance(error, CommunicatorError) else CommunicatorError(f"{first.call}: {kind}: {error}")
        self._failed = failed
        first.transport.broken()
        is_others = isinstance(error, Error) and not isinstance(error, DeviceError)
        if not is_others and not is_of_handler(error):
            raise failed from error

    def _look(self, seconds: float) -> None:
        with self._lock:
            first = next((each for each in self._waiting if not each.is_notice), None)
            if first is None:
                return
            before = next(each for each in self._waiting if each.call.group == first.call.group)
            try:
                before.transport.waiting(before.call, seconds)
            except CommunicatorError as error:
                self._drop(before, error)
                raise
