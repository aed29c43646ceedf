"""Signals that ask a program to end: noted, so that it can end where it likes."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from ._core import NdArray
from ._errors import ArgumentError, GraphError, describe, message


class StopSignals:
    """A context in which signals are noted; afterwards they do what they did before.

    Args:
        signals: By default `SIGTERM`.
        communicator: In a run of several processes what joins them. A signal may reach one rank alone, or each at
            another step; `asked` is the same on all.

    The context is entered in the main thread, where Python handles signals.

    >>> import os, signal
    >>> with StopSignals() as stop:
    ...     for step in range(100):
    ...         if step == 3:
    ...             os.kill(os.getpid(), signal.SIGTERM)  # a scheduler does it
    ...         if stop.asked():
    ...             break  # behind points.save(step)
    >>> step, stop.requested
    (3, True)
    """

    def __init__(self, *signals: int, communicator: Any = None) -> None:
        self._signals = signals or (signal.SIGTERM,)
        self._communicator = communicator
        self._former: list[tuple[int, Any]] = []
        self._requested = False

    @property
    def requested(self) -> bool:
        """Whether a signal has come to this process."""
        return self._requested

    def asked(self) -> bool:
        """Whether a signal has come to any process. All ranks call it at the same steps."""
        communicator = self._communicator
        if communicator is None or communicator.size == 1 or not hasattr(communicator, "all_reduce"):
            return self._requested
        told = NdArray.from_numpy_array([1.0 if self._requested else 0.0])
        communicator.all_reduce([told], division=False, inplace=True)
        return float(told.data[0]) > 0

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._requested = True

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is not threading.main_thread():
            hint = "enter the context there, and ask it anywhere"
            raise GraphError(message("stop_on", None, "signals are handled in the main thread", hint=hint))
        try:
            for number in self._signals:
                self._former.append((number, signal.signal(number, self._note)))
        except (OSError, ValueError, TypeError) as error:
            self._restore()
            expected = "signals that a program can handle"
            raise ArgumentError(message("stop_on", "signals", expected, describe(self._signals))) from error
        return self

    def __exit__(self, kind: type[BaseException] | None, value: Any, traceback: TracebackType | None) -> None:
        self._restore()

    def _restore(self) -> None:
        while self._former:
            number, former = self._former.pop()
            # None: a handler that is not Python's, which Python cannot put back.
            signal.signal(number, signal.SIG_DFL if former is None else former)
