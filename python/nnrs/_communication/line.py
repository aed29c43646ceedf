"""The line in which a communicator's collectives stand: one runs at a time, in the order in which they were asked for.

That order is the same on each process, whatever the times are, so their messages meet. Each begins with a word on what
it is: processes that ask for different things, or for different shapes, get an error that says so, and no hang.
"""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from .._errors import ArgumentError, CommunicatorError, Error, message
from .reductions import Steps, until
from .transport import Call, Transport, block_cuts

# Lets others run and comes back at once; time.sleep(0) takes a tenth of a millisecond on some systems.
_give_way: Callable[[], None] = getattr(os, "sched_yield", lambda: time.sleep(0))
PATIENCE = 0.05
"""Seconds until a wait is looked after, and between two looks."""
TEXT = 512


class DisagreementError(ArgumentError):
    """Calls that differ between processes: all of them get it, and may go on."""


class Collective:
    """One that stands in the line: `steps` are its moves over `transport`."""

    def __init__(self, call: Call, transport: Transport, steps: Steps) -> None:
        self.call, self.transport, self.steps = call, transport, steps
        self.is_done = False


class Line:
    """Runs collectives one after another; any thread may move it on."""

    def __init__(self) -> None:
        self._waiting: deque[Collective] = deque()
        self._counts: dict[str, int] = {}
        self._lock = threading.RLock()
        self._failed: CommunicatorError | None = None
        self._stuck: list[Collective] = []

    def submit(self, name: str, group: str, transport: Transport, steps: Callable[[], Steps]) -> Collective:
        """Let a collective stand behind the others; its steps are made when its turn has come."""
        with self._lock:
            self._check()
            number = self._counts[group] = self._counts.get(group, 0) + 1
            made = Collective(Call(name, group, number), transport, _later(steps))
            self._waiting.append(made)
            return made

    def advance(self) -> None:
        """Do what can be done without waiting."""
        with self._lock:
            self._check()
            while self._waiting:
                first = self._waiting[0]
                if not self._step(first):
                    return
                first.is_done = True
                self._waiting.popleft()
                first.transport.finished(first.call)

    def wait(self, collective: Collective) -> None:
        """Return when it is over."""
        self.advance()
        start = looked = time.monotonic()
        while not collective.is_done:
            now = time.monotonic()
            if now - looked > PATIENCE:
                looked = now
                self._look(now - start)
            _give_way() if now - start < 2 else time.sleep(1e-4)
            self.advance()

    def _check(self) -> None:
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
        """Forget all that stands in the line: it followed from what has failed. Arrays on their way stay in memory."""
        self._stuck += self._waiting
        self._waiting.clear()
        if isinstance(error, DisagreementError):
            return  # on all processes alike
        kind = type(error).__name__
        failed = error if isinstance(error, CommunicatorError) else CommunicatorError(f"{first.call}: {kind}: {error}")
        self._failed = failed
        if isinstance(error, Exception) and not isinstance(error, Error):
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
    texts = np.zeros((t.size, TEXT), np.uint8)
    shown = np.frombuffer(text[:TEXT], np.uint8)
    texts[t.rank, : shown.size] = shown
    yield from until(t.all_gather(texts.reshape(-1), block_cuts(TEXT, t.size)))
    raise _disagreement(t, name, [bytes(row).rstrip(b"\0").decode(errors="replace") for row in texts], digests)


def _disagreement(t: Transport, name: str, texts: list[str], digests: np.ndarray) -> DisagreementError:
    other = next(i for i in range(t.size) if digests[i] != digests[t.rank])
    hint = (
        "each process of a group calls the same collectives in the same order, with arrays of the same shapes and types"
    )
    expected = f"the same call on all processes; rank {t.rank} of the group has {texts[t.rank]}"
    return DisagreementError(message(f"Communicator.{name}", None, expected, f"on rank {other} {texts[other]}", hint))
