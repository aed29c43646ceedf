"""Work that several threads share, which Ctrl-C cannot leave hanging.

The pools of `concurrent.futures` take locks in Python code: a KeyboardInterrupt in there may leave one taken, and then
the threads wait for it, and who joins the threads waits for ever. Here both sides share queues alone, whose operations
are single steps, and nobody joins.

>>> with in_order(lambda n, check: n * n, range(4), 2) as found:
...     list(found)
[0, 1, 4, 9]
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

from .._modes import ThreadModes

T = TypeVar("T")
R = TypeVar("R")
Check = Callable[[], None]
"""Raises where the work is not wanted any more: to be called now and then."""


class _Abandoned(BaseException):
    """Ends the work of a thread."""


class _Workers:
    """Threads that do the work of a queue."""

    def __init__(self, work: Callable[[Any, Check], Any], items: Sequence[Any]) -> None:
        self._work = work
        self._items = items
        self._jobs: SimpleQueue[int] = SimpleQueue()
        self._done: SimpleQueue[tuple[int, Any, BaseException | None] | None] = SimpleQueue()
        self._modes = ThreadModes()
        self._started = 0
        self._stopped = False

    def start(self, threads: int) -> None:
        """Begin, with as many threads as there can be."""
        for number in range(len(self._items)):
            self._jobs.put(number)
        for _ in range(threads):
            thread = threading.Thread(target=self._serve, name="nnrs-worker", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads
                if not self._started:
                    raise
                break
            self._started += 1

    def results(self) -> Iterator[Any]:
        """What the work gives for each item, in their order; what it raises is raised at its place."""
        found: dict[int, tuple[Any, BaseException | None]] = {}
        for number in range(len(self._items)):
            while number not in found:
                done = self._done.get()
                if done is not None:
                    found[done[0]] = done[1:]
            result, error = found.pop(number)
            if error is not None:
                try:
                    raise error
                finally:
                    del error  # its traceback refers to this frame
            yield result

    def stop(self) -> None:
        """Let the threads end, and wait until those that were begun have."""
        self._stopped = True
        for _ in range(self._started):
            self._jobs.put(-1)
        while self._started:
            if self._done.get() is None:
                self._started -= 1

    def _check(self) -> None:
        if self._stopped:
            raise _Abandoned

    def _serve(self) -> None:
        try:
            self._modes.take_over()
            while not self._stopped and (number := self._jobs.get()) >= 0:
                self._done.put((number, *self._outcome(self._items[number])))
        finally:
            self._done.put(None)

    def _outcome(self, item: Any) -> tuple[Any, BaseException | None]:
        try:
            return self._work(item, self._check), None
        except BaseException as error:  # also what would end the thread: it is raised by who asks for the result
            return None, error


@contextlib.contextmanager
def in_order(work: Callable[[T, Check], R], items: Sequence[T], threads: int) -> Iterator[Iterator[R]]:
    """The results of `work(item, check)` for each item, in their order, made by some threads at once.

    Args:
        work: What it raises is raised in the place of its result. It calls `check()` now and then: that ends it where
            the block has ended early.
        items: What there is to be done.
        threads: How many are done at once; with 1 there is no other thread.
    """
    if threads <= 1 or len(items) <= 1:
        yield (work(item, _go_on) for item in items)
        return
    workers = _Workers(work, items)
    try:
        workers.start(min(threads, len(items)))
        yield workers.results()
    finally:
        workers.stop()


def _go_on() -> None:
    """Nothing ends work in the caller's own thread but what is raised there."""
