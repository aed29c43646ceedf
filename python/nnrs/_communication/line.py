"""The line in which a communicator's collectives stand: one runs at a time, in the order in which they were asked for.

That order is the same on each process, whatever the times are, so their messages meet. A thread moves on those that are
left alone with their memory while the script computes (gradients of a backward run). Each begins with a word on what it
is: processes that ask for different things, or for different shapes, get an error that says so, and no hang.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from .._errors import ArgumentError, CommunicatorError, DeviceError, Error, message
from .reductions import Steps, thread, until
from .transport import Call, Transport, block_cuts

# Lets others run and comes back at once; time.sleep(0) takes a tenth of a millisecond on some systems.
_give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
PATIENCE = 0.05
"""Seconds until a wait is looked after, and between two looks."""
MOST_TEXT = 1 << 16
NOTHING_MORE = "nothing more: "
"""What a process says, with the reason, that has given up what the others are about to do."""
PAUSE, IDLE = 5e-4, 0.05
"""Seconds between two looks of the thread, and how long it stays when there is nothing to do."""


class DisagreementError(ArgumentError):
    """Calls that differ between processes: all of them get it, and may go on."""


class Ending:
    """What some collectives have in common that end together where processes disagree on one of them.

    The error is then that of who asks after one of them.
    """

    def __init__(self) -> None:
        self.error: DisagreementError | None = None


class Collective:
    """One that stands in the line: `steps` are its moves over `transport`; any thread may make those of a free one."""

    def __init__(self, call: Call, transport: Transport, steps: Steps, is_free: bool, ending: Ending | None) -> None:
        self.call, self.transport, self.steps, self.is_free, self.ending = call, transport, steps, is_free, ending
        self.is_done = False
        self.error: BaseException | None = None

    def ends_with(self, other: Collective) -> bool:
        """Whether a disagreement on that one ends this one."""
        return self is other or (self.ending is not None and self.ending is other.ending)


class Line:
    """Runs collectives one after another."""

    def __init__(self) -> None:
        self._waiting: deque[Collective] = deque()
        self._counts: dict[str, int] = {}
        self._lock = threading.RLock()
        self._failed: CommunicatorError | None = None
        self._stuck: list[Steps] = []
        self._mover: threading.Thread | None = None
        self._found: BaseException | None = None
        self._process = os.getpid()

    def submit(
        self,
        name: str,
        group: str,
        transport: Transport,
        steps: Callable[[], Steps],
        is_free: bool = False,
        ending: Ending | None = None,
    ) -> Collective:
        """Let a collective stand behind the others; its steps are made when its turn has come."""
        if transport.size > 1 and os.getpid() != self._process:  # the lock may be held by a thread that is not here
            why = "a fork of the process that made it cannot take part: its messages would be taken for that process's"
            raise CommunicatorError(f"{name} (group {group!r}): {why}")
        with self._lock:
            self._check()
            if ending is not None and ending.error is not None:
                raise ending.error
            # Its number follows when its turn has come: one that is dropped is none on any process.
            made = Collective(Call(name, group, 0), transport, _later(steps), is_free, ending)
            self._waiting.append(made)
            if is_free and transport.allows_threads and (self._mover is None or not self._mover.is_alive()):
                self._mover = threading.Thread(target=self._move, name="nnrs communicator", daemon=True)
                self._mover.start()
            return made

    def advance(self) -> None:
        """Do what can be done without waiting; nothing where the thread is at it."""
        if self._lock.acquire(blocking=False):
            try:
                self._check()
                self._go_on()
            finally:
                self._lock.release()

    def _go_on(self, only_free: bool = False) -> None:
        while self._waiting and (self._waiting[0].is_free or not only_free):
            first = self._waiting[0]
            if not first.call.number:
                count = self._counts[first.call.group] = self._counts.get(first.call.group, 0) + 1
                first.call = first.call._replace(number=count)
            try:
                if not self._step(first):
                    return
            except DisagreementError:
                if first.ending is None:
                    raise
                continue
            first.is_done = True
            self._waiting.popleft()
            first.transport.finished(first.call)

    def _move(self) -> None:
        """What the thread does; it ends when there has been nothing to do for a while."""
        thread.computes_beside = True
        last = time.monotonic()
        while threading.main_thread().is_alive():
            time.sleep(PAUSE)
            with self._lock:
                if self._waiting and self._waiting[0].is_free:
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
            _give_way() if now - start < 2 else time.sleep(1e-4)
            self.advance()

    def _check(self) -> None:
        found, self._found = self._found, None
        if found is not None:
            raise found
        if self._failed is not None:
            raise CommunicatorError(f"this communicator has ended: {self._failed}") from self._failed

    def _step(self, first: Collective) -> bool:
        """Whether the collective is over now."""
        try:
            next(first.steps)
        except StopIteration:
            return True
        except BaseException as error:
            self._drop(first, error)
            raise
        return False

    def _drop(self, first: Collective, error: BaseException) -> None:
        """Forget what followed from what has failed: all, where that was no mere disagreement."""
        is_disagreement = isinstance(error, DisagreementError)  # on all processes alike
        dropped = [each for each in self._waiting if not is_disagreement or each.ends_with(first)]
        for each in dropped:
            each.error = error
            self._waiting.remove(each)
        if isinstance(error, DisagreementError):
            if first.ending is not None:
                first.ending.error = error
            return
        self._stuck += [each.steps for each in dropped]  # arrays that are on their way have to stay in memory
        kind = type(error).__name__
        failed = error if isinstance(error, CommunicatorError) else CommunicatorError(f"{first.call}: {kind}: {error}")
        self._failed = failed
        first.transport.broken()
        if isinstance(error, DeviceError) or (isinstance(error, Exception) and not isinstance(error, Error)):
            raise failed from error

    def _look(self, seconds: float) -> None:
        with self._lock:
            if not self._waiting:
                return
            first = self._waiting[0]
            try:
                first.transport.waiting(first.call, seconds)
            except CommunicatorError as error:
                self._drop(first, error)
                raise


def _later(steps: Callable[[], Steps]) -> Iterator[None]:
    yield from steps()


def agreed(t: Transport, name: str, said: str, steps: Callable[[], Steps]) -> Steps:
    """The moves of a collective, behind the word with which it begins."""
    yield from agree(t, name, said)
    yield from steps()


def agree(t: Transport, name: str, said: str) -> Steps:
    """Goes on when all processes have come to this collective; an error where they do not all say the same of it."""
    if t.size == 1:
        return
    text = f"{name} of {said}".encode()
    digests = np.zeros(t.size, np.uint64)
    digests[t.rank] = zlib.crc32(text) << 32 | zlib.crc32(text[::-1])
    yield from until(t.all_gather(digests, block_cuts(1, t.size)))
    if (digests == digests[0]).all():
        return
    lengths = np.zeros(t.size, np.int64)
    lengths[t.rank] = min(len(text), MOST_TEXT)
    yield from until(t.all_gather(lengths, block_cuts(1, t.size)))
    texts = np.zeros((t.size, int(lengths.max())), np.uint8)
    texts[t.rank, : lengths[t.rank]] = np.frombuffer(text[:MOST_TEXT], np.uint8)
    yield from until(t.all_gather(texts.reshape(-1), block_cuts(texts.shape[1], t.size)))
    shown = [bytes(row).rstrip(b"\0").decode(errors="replace") for row in texts]
    for i, said in enumerate(shown):
        what, _, why = said.partition(f" of {NOTHING_MORE}")
        if i != t.rank and why and " " not in what:
            raise _given_up(name, i, why)
    other = next(i for i in range(t.size) if digests[i] != digests[t.rank])
    raise _disagreement(t, name, other, shown[t.rank], shown[other])


def _given_up(name: str, rank: int, why: str) -> DisagreementError:
    what = f"rank {rank} of the group has given its backward run up: {why}"
    hint = "gradients of this run are missing: leave the step out on all processes"
    return DisagreementError(message(f"Communicator.{name}", None, what, hint=hint))


def _disagreement(t: Transport, name: str, other: int, own: str, theirs: str) -> DisagreementError:
    own, theirs = _around_the_difference(own, theirs)
    hint = (
        "each process of a group calls the same collectives in the same order, with arrays of the same shapes and types"
    )
    expected = f"the same call on all processes; rank {t.rank} of the group has {own}"
    return DisagreementError(message(f"Communicator.{name}", None, expected, f"on rank {other} {theirs}", hint))


def _around_the_difference(*texts: str, before: int = 60, length: int = 240) -> list[str]:
    """Long texts cut to what is around their first difference."""
    same = next(
        (i for i, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1), min(map(len, texts))
    )
    start = max(same - before, 0) if max(map(len, texts)) > length else 0
    cut = [text[start : start + length] for text in texts]
    return [
        ("..." if start else "") + c + ("..." if start + length < len(text) else "")
        for c, text in zip(cut, texts, strict=True)
    ]
