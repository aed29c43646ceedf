"""A thread that makes the next batch while the current one is used.

It is asked for one batch at a time, and works in the modes of the thread that asks. It is a daemon, and ends with its
owner. A program that ends waits for the batch that is being made, but not for ever: a thread that is cut off in another
library may leave a lock behind that the end of the interpreter needs (h5py's, for one).
A fork waits for a batch that is being made; the child starts a thread of its own when it asks for one.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from .. import _forks
from .._errors import ArgumentError, message
from .._modes import ThreadModes
from ._batches import Batch

_SECONDS_AT_EXIT = 10.0

_live: weakref.WeakSet[Prefetcher] = weakref.WeakSet()
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()  # also those whose owner is gone


class Prefetcher:
    """Runs `make` ahead of `take`.

    Args:
        make: Makes a batch. It must not refer to the owner, whose end ends the thread.
    """

    def __init__(self, make: Callable[[], Batch]) -> None:
        self._make = make
        self.lock = threading.RLock()  # held while a batch is made
        self._made: deque[tuple[Batch | None, BaseException | None]] = deque()
        self._asked = False
        self._start()
        _live.add(self)

    def _start(self) -> None:
        self._jobs: SimpleQueue[ThreadModes | None] = SimpleQueue()
        self._done: SimpleQueue[None] = SimpleQueue()
        work = (self._jobs, self._done, self._made, self.lock, self._make)
        self._thread = threading.Thread(target=_serve, args=work, name="nnrs-batches", daemon=True)
        self._thread.start()
        _threads.add(self._thread)
        self._process = os.getpid()  # last: what Ctrl-C cuts short is begun again
        self._stopped = False

    def request(self) -> None:
        """Have the next batch made, unless it is asked for already."""
        if self._stopped or self._process != os.getpid():  # a child, or the interpreter's end: there is no thread
            self._start()
            if self._asked and not self._made:
                self._jobs.put(ThreadModes())
        if not self._asked:
            self._asked = True
            self._jobs.put(ThreadModes())

    def is_current(self) -> bool:
        """Whether the caller is the thread itself: a source asks the iterator that reads it."""
        return self._thread is threading.current_thread()

    def settle(self) -> None:
        """Wait until the thread is idle.

        Raises:
            ValueError: If the thread itself would wait: a source asks the iterator that reads it.
        """
        if self.is_current():
            raise ArgumentError(
                message(
                    "next", None, "a call from outside the data source", "a data source that reads its own iterator"
                )
            )
        if self._asked:
            self.request()
            while not self._made:
                self._done.get()

    def take(self) -> Batch:
        """The next batch; what making it raised is raised here, and the next call tries again."""
        self.request()
        self.settle()
        self._asked = False
        batch, error = self._made.popleft()
        if batch is not None:
            return batch
        try:
            raise error or SystemError("no batch and no error")
        finally:
            del error  # its traceback refers to this frame

    def drop(self) -> None:
        """Forget the batch that was made ahead."""
        self.settle()
        self._made.clear()
        self._asked = False

    def give(self, batch: Batch) -> None:
        """Let this be the batch that is made ahead, after `drop`."""
        self._asked = True
        self._made.append((batch, None))

    def stop(self) -> None:
        """Let the thread end after the batch that it is at."""
        self._stopped = True
        if self._process == os.getpid():
            self._jobs.put(None)

    def join(self) -> None:
        """Wait for the thread's end."""
        if self._process == os.getpid() and not self.is_current():
            self._thread.join()


def _serve(
    jobs: SimpleQueue[ThreadModes | None],
    done: SimpleQueue[None],
    made: deque[tuple[Batch | None, BaseException | None]],
    lock: Any,
    make: Callable[[], Batch],
) -> None:
    while modes := jobs.get():
        modes.take_over()
        with lock:
            made.append(_outcome(make))
        done.put(None)


def _outcome(make: Callable[[], Batch]) -> tuple[Batch | None, BaseException | None]:
    try:
        return make(), None
    except BaseException as error:  # also what ends a thread: the caller waits for it
        return None, error


def _end() -> None:
    """Threads finish before the interpreter does."""
    for prefetcher in list(_live):
        prefetcher.stop()
    deadline = time.monotonic() + _SECONDS_AT_EXIT
    for thread in list(_threads):
        if thread is not threading.current_thread():
            thread.join(max(deadline - time.monotonic(), 0))


atexit.register(_end)
_forks.hold(lambda: [prefetcher.lock for prefetcher in list(_live)])
