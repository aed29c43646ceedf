"""Who is missing: what processes tell each other beside the collectives, and how one that fails ends all.

While a collective goes well nothing is sent. A process that has waited too long asks the others where they are; those
that wait as well, by any communicator, answer at once, and the error names the others. A process that ends says so, a
process that raises ends all, and one that a launcher ends says in which collective it was.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FrameType
from typing import Any, ClassVar

from .._errors import CommunicatorError
from .channel import Channel
from .transport import Call, Transport

ASK, ANSWER, LEAVE = "ask", "answer", "leave"
GRACE = 1.0
"""Seconds for an answer, from one who waits too."""
MOST_WHY = 300
"""How many letters of an error the other processes are told."""


_controls: weakref.WeakSet[Control] = weakref.WeakSet()
"""Those of all communicators: one that ends moves on what others owe, for whom somebody may wait first."""


class Control:
    """The words of one process; `channel` carries them, and nobody else's."""

    latest: ClassVar[Call | None] = None
    """The collective that came last, of any communicator."""

    def __init__(self, channel: Channel, timeout: float) -> None:
        self._channel, self._timeout = channel, timeout
        self.rank, self.size = channel.rank, channel.size
        self._done: dict[str, int] = {}
        self._owed: dict[str, tuple[int, Callable[[], None]]] = {}
        self._answers: dict[int, str] = {}
        self._left: dict[int, dict[str, int]] = {}
        self._asked: float | None = None
        self._is_telling = False
        self._reading = threading.Lock()
        self._process = os.getpid()
        self.failed = False
        self.is_leaving = False
        _controls.add(self)

    def begin_again(self, timeout: float) -> None:
        """Of what a communicator has done that is gone, nothing counts for the next one."""
        self._timeout = timeout
        self._done.clear()

    def finished(self, call: Call) -> None:
        """A collective is over."""
        self._done[call.group] = call.number
        Control.latest, self._asked = call, None
        if self._is_telling and threading.current_thread() is threading.main_thread():
            self._is_telling = False
            if signal.getsignal(signal.SIGTERM) == self._ended_by_signal:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)

    @property
    def is_here(self) -> bool:
        """Whether this is the process that made it, and no fork."""
        return os.getpid() == self._process

    def owes(self, group: str, count: int, advance: Callable[[], None]) -> None:
        """How many words of a group are on their way for which nobody waits here; `advance` moves them on."""
        self._owed[group] = (count, advance)
        if not count:
            del self._owed[group]

    def go_on(self) -> None:
        """Move on what others may wait for."""
        for _, advance in list(self._owed.values()):
            with contextlib.suppress(Exception):
                advance()

    def waiting(self, call: Call, seconds: float, members: Sequence[int]) -> None:
        """Look after a wait: answer the others; raise where one of `members` has left, or time is up."""
        Control.latest = call
        self._tell_of_signals()
        answer_all(f"waits in {call}")
        gone = [r for r in members if r in self._left and self._left[r].get(call.group, 0) < call.number]
        if gone:
            self._fail(call, f"{ranks_text(gone)} ended without coming to it")
        died = [r for r in members if r in self._died()]
        if died:
            self._fail(call, died_text(died))
        if self._channel.aborted:
            self._fail(call, aborted_text(self._channel.aborted))
        if seconds > self._timeout:
            self._ask(call, members)

    def _ask(self, call: Call, members: Sequence[int]) -> None:
        others = [r for r in members if r != self.rank]
        if self._asked is None:
            self._asked = time.monotonic()
            self._answers.clear()
            for r in others:
                self._send(r, ASK, {})
        if len(self._answers) < len(others) and time.monotonic() - self._asked < GRACE:
            return
        silent = [r for r in others if r not in self._answers]
        told = [f"rank {r} {text}" for r, text in sorted(self._answers.items()) if r in others]
        if silent:
            told.insert(0, f"{ranks_text(silent)} did not come to it and gave no answer (hangs, is busy, or is dead)")
        self._fail(call, f"not over after {self._timeout:g} s: " + "; ".join(told))

    def _fail(self, call: Call, why: str) -> None:
        self.failed = True
        raise CommunicatorError(f"rank {self.rank} in {call}: {why}")

    def _read(self, position: str) -> None:
        """Take what has come, unless another thread is at it; `position` is the answer to who asks."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            for source, word in self._channel.receive():
                said = json.loads(word)
                self._take(source, said["kind"], said["what"], position)
        finally:
            self._reading.release()

    def _take(self, source: int, kind: str, what: Any, position: str) -> None:
        if kind == ASK:
            self._send(source, ANSWER, position)
        elif kind == ANSWER:
            self._answers[source] = what
        else:
            self._left[source] = what

    def _send(self, to: int, kind: str, what: Any) -> None:
        self._channel.send(to, json.dumps({"kind": kind, "what": what}).encode())

    def _died(self) -> list[int]:
        """Those that are gone and have not said so."""
        return sorted(self._channel.lost - self._left.keys() - self._channel.aborted.keys())

    # --- the end ------------------------------------------------------------------------------------------------------

    def watch_the_end(self) -> None:
        """From now on this process tells the others how it ends."""
        if not _watched:
            atexit.register(_leave_all)
        _watched.append(self)
        shown = sys.excepthook

        def ends_all(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            shown(kind, error, trace)
            if not self.is_here:
                return
            last = f"; its last collective was {Control.latest}" if Control.latest else ""
            self._say(f"ends all processes: {kind.__name__}{last}")
            self.abort(130 if issubclass(kind, KeyboardInterrupt) else 1, f"{kind.__name__}: {error}")

        sys.excepthook = ends_all

    def abort(self, status: int, why: str = "it called abort()") -> None:
        """End all processes, this one too."""
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        self._channel.abort(status, why[:MOST_WHY])

    def begin_to_leave(self) -> None:
        """Tell the others that this process ends, and what it has done."""
        self.is_leaving = True
        answers = {group: self._done.get(group, 0) for group in {*self._done, *self._owed}}
        for group, (count, _) in self._owed.items():
            answers[group] += count
        for r in range(self.size):
            if r != self.rank:
                self._send(r, LEAVE, answers)

    @property
    def left(self) -> frozenset[int]:
        """Those that have said that they end."""
        return frozenset(self._left)

    def has_left(self) -> bool:
        """Whether all others have come to their ends, too; ends all processes where one of them has died."""
        self._read("has ended")
        if self._died():
            self.end_all(died_text(self._died()))
        if self._channel.aborted:
            self.end_all(aborted_text(self._channel.aborted))
        return len(self._left) == self.size - 1 and self._channel.is_sent()

    @property
    def is_over(self) -> bool:
        """Whether it has nobody to talk to any more."""
        return not self.is_here or self._channel.is_over

    def end_all(self, why: str) -> None:
        """End all processes, and say why."""
        self._say(f"ends all processes: {why}")
        self.abort(1, why)

    def _say(self, text: str) -> None:
        say(self.rank, self.size, text)

    def _tell_of_signals(self) -> None:
        """While it waits, a process that its launcher ends says where it was; a handler of the script's own stays."""
        if self._is_telling or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._ended_by_signal)
            self._is_telling = True

    def _ended_by_signal(self, number: int, frame: FrameType | None) -> None:
        self._say(f"is ended by {signal.Signals(number).name} while it waits in {Control.latest}")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


_watched: list[Control] = []
"""Those that tell how this process ends."""


def answer_all(position: str) -> None:
    """While a process waits by one communicator, others may wait for it by another one."""
    for control in list(_controls):
        if not control.is_over:
            control._read(position)


class Ended:
    """Those that have ended while this process waits until all have come to `init`."""

    def __init__(self, controls: Iterable[Control]) -> None:
        self._controls = list(controls)
        self._since: float | None = None

    def text(self) -> str | None:
        """Who has ended, if that is why not all come: who had come before it ended is found within a moment."""
        answer_all("waits in Communicator.init")
        left = sorted(frozenset().union(*(control.left for control in self._controls)))
        if not left:
            return None
        self._since = time.monotonic() if self._since is None else self._since
        return f"{ranks_text(left)} ended without coming to it" if time.monotonic() > self._since + GRACE else None


def _leave_all() -> None:
    """The last thing that a process does: all wait here until the last one has come, which MPI wants anyway.

    By all communicators at once: others may wait by any of them.
    """
    leaving = [control for control in _watched if not control.is_over]
    for control in leaving:
        if control.failed:
            control.end_all("its communicator has failed")
    for control in leaving:
        control.begin_to_leave()
    while not all([control.has_left() for control in leaving]):
        for control in list(_controls):
            control.go_on()
        time.sleep(0.002)


class WatchedTransport(Transport):
    """One over whose processes a control watches."""

    def __init__(self, control: Control, members: Sequence[int]) -> None:
        self._control, self._members = control, list(members)

    def waiting(self, call: Call, seconds: float) -> None:
        self._control.waiting(call, seconds, self._members)

    def finished(self, call: Call) -> None:
        self._control.finished(call)

    def owes(self, group: str, count: int, advance: Callable[[], None]) -> None:
        self._control.owes(group, count, advance)

    def broken(self) -> None:
        self._control.failed = True

    def abort(self) -> None:
        self._control.abort(1)


def ranks_text(ranks: Sequence[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))


def died_text(ranks: Sequence[int]) -> str:
    return f"{ranks_text(ranks)} ended without a word (killed, or cut off)"


def aborted_text(aborted: Mapping[int, str]) -> str:
    """Who has ended all processes, and why."""
    rank, why = next(iter(aborted.items()))
    return f"rank {rank} ended all processes: {why}"


def say(rank: int, size: int, text: str) -> None:
    """Tell the user something about this process, also where Python has ended."""
    with contextlib.suppress(Exception):
        os.write(2, f"nnrs: rank {rank} of {size} {text}\n".encode())
