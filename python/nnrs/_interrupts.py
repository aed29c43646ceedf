"""Steps that Ctrl-C does not cut in two."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C during the block counts when it has ended. For what is short: names of files that change together.

    >>> try:
    ...     with uninterrupted():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("all of it")
    ... except KeyboardInterrupt:
    ...     print("then stopped")
    all of it
    then stopped
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield  # another thread gets no KeyboardInterrupt
        return
    came: list[Any] = []
    try:
        signal.signal(signal.SIGINT, lambda *what: came.append(what))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
