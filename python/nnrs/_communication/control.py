"""Who is missing: what processes tell each other beside the collectives, and how one that fails ends all.

While a collective goes well nothing is sent. A process that has waited too long asks the others where they are; those
that wait as well answer at once, and the error names the others. A process that ends says so, a process that raises
ends all, and one that a launcher ends says in which collective it was.
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
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, ClassVar

import numpy as np

from .._errors import CommunicatorError
from .transport import Call

ASK, ANSWER, LEAVE = "ask", "answer", "leave"
GRACE = 1.0
"""Seconds for an answer, from one who waits too."""


class Control:
    """The messages of one process; `comm` is an MPI communicator of all processes for them alone."""

    latest: ClassVar[Call | None] = None
    """The collective that came last, of any communicator."""

    def __init__(self, mpi: Any, comm: Any, timeout: float) -> None:
        self._mpi, self._comm, self._timeout = mpi, comm, timeout
        self.rank, self.size = comm.rank, comm.size
        self._done: dict[str, int] = {}
        self._owed: dict[str, tuple[int, Callable[[], None]]] = {}
        self._answers: dict[int, str] = {}
        self._left: dict[int, dict[str, int]] = {}
        self._asked: float | None = None
        self._sends: list[Any] = []
        self._is_telling = False
        self._process = os.getpid()
        self.failed = False

    def begin_again(self, timeout: float) -> None:
        """Of what a communicator has done that is gone, nothing counts for the next one."""
        self._timeout = timeout
        self._done.clear()

    def together(self, mask: np.ndarray) -> Any:
        """Leave of a mask what is set on all processes, when the request that this gives is over."""
        return self._comm.Iallreduce(self._mpi.IN_PLACE, mask, self._mpi.BAND)

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

    def waiting(self, call: Call, seconds: float, members: Sequence[int]) -> None:
        """Look after a wait: answer the others; raise where one of `members` has left, or time is up."""
        Control.latest = call
        self._tell_of_signals()
        self._read(f"waits in {call}")
        gone = [r for r in members if r in self._left and self._left[r].get(call.group, 0) < call.number]
        if gone:
            self._fail(call, f"{ranks_text(gone)} ended without coming to it")
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
        """Take what has come; `position` is the answer to who asks."""
        while self._comm.Iprobe(self._mpi.ANY_SOURCE):
            status = self._mpi.Status()
            message = self._comm.Mprobe(self._mpi.ANY_SOURCE, status=status)
            data = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
            message.Recv([data, self._mpi.BYTE])
            said = json.loads(data.tobytes())
            self._take(status.Get_source(), said["kind"], said["what"], position)
        self._sends = [(request, data) for request, data in self._sends if not request.Test()]

    def _take(self, source: int, kind: str, what: Any, position: str) -> None:
        if kind == ASK:
            self._send(source, ANSWER, position)
        elif kind == ANSWER:
            self._answers[source] = what
        else:
            self._left[source] = what

    def _send(self, to: int, kind: str, what: Any) -> None:
        data = np.frombuffer(json.dumps({"kind": kind, "what": what}).encode(), np.uint8)
        self._sends.append((self._comm.Isend([data, self._mpi.BYTE], to), data))

    # --- the end ------------------------------------------------------------------------------------------------------

    def watch_the_end(self) -> None:
        """From now on this process tells the others how it ends."""
        atexit.register(self._leave)
        shown = sys.excepthook

        def ends_all(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            shown(kind, error, trace)
            if not self.is_here:
                return
            last = f"; its last collective was {Control.latest}" if Control.latest else ""
            self._say(f"ends all processes: {kind.__name__}{last}")
            self.abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

        sys.excepthook = ends_all

    def abort(self, status: int) -> None:
        """End all processes, this one too."""
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        self._comm.Abort(status)

    def _leave(self) -> None:
        """The last thing that a process does: all wait here until the last one has come, which MPI wants anyway."""
        if not self.is_here or self._mpi.Is_finalized():
            return
        if self.failed:
            self._say("ends all processes: its communicator has failed")
            self.abort(1)
        answers = {group: self._done.get(group, 0) for group in {*self._done, *self._owed}}
        for group, (count, _) in self._owed.items():
            answers[group] += count
        for r in range(self.size):
            if r != self.rank:
                self._send(r, LEAVE, answers)
        while len(self._left) < self.size - 1 or self._sends:
            for _, advance in list(self._owed.values()):
                with contextlib.suppress(Exception):
                    advance()
            self._read("has ended")
            time.sleep(0.002)

    def _say(self, text: str) -> None:
        with contextlib.suppress(Exception):
            os.write(2, f"nnrs: rank {self.rank} of {self.size} {text}\n".encode())

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


def ranks_text(ranks: Sequence[int]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(map(str, ranks))
