"""What comes between two steps: Ctrl-C, and exceptions of signals' handlers, which come out of whatever line runs."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
from collections.abc import Iterator
from types import CodeType
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


def is_of_handler(error: BaseException) -> bool:
    """Whether the handler of a signal has raised an error, of those that are set now."""
    if isinstance(error, KeyboardInterrupt):
        return True
    codes = {_code(signal.getsignal(number)) for number in signal.valid_signals()}
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code in codes:
            return True
        frame = frame.tb_next
    return False


def _code(handler: Any) -> CodeType | None:
    """What a handler runs, if that is Python's."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = handler if hasattr(handler, "__code__") or hasattr(handler, "__func__") else type(handler).__call__
    return getattr(getattr(function, "__func__", function), "__code__", None)
