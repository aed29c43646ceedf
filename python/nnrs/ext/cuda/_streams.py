"""Streams and events as NNabla's `nnabla_ext.cuda` has them, for programs that copy to a GPU beside nnrs.

nnrs has one queue of work for a GPU. An event of it that is waited for is all of it: the host waits.
"""

from __future__ import annotations

import time

from ... import _core
from ..._errors import ArgumentTypeError, check_integer, describe, message
from . import _driver


class Event:
    """A point in a GPU's work, for measuring times. Recording it waits for the GPU.

    Args:
        device_id: Number of the GPU.

    Raises:
        RuntimeError: If there is no GPU that can be used.
    """

    def __init__(self, device_id: str | int) -> None:
        self._device = _open("Event", device_id)
        self._time: float | None = None

    def record(self) -> None:
        """Take the time at which all work so far is done."""
        _core.cuda_synchronize(self._device)
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """Nothing is left to wait for: `record` has."""

    def elapsed(self, start_event: Event) -> float:
        """Milliseconds since another event.

        Args:
            start_event: The event, recorded before.

        Raises:
            TypeError: If it is none, or one of the two was not recorded.
        """
        if not isinstance(start_event, Event) or start_event._time is None or self._time is None:
            raise ArgumentTypeError(message("Event.elapsed", "start_event", "recorded events", describe(start_event)))
        return (self._time - start_event._time) * 1e3


class StreamEventHandler:
    """A stream of its own on a GPU, and what orders its work and that of nnrs.

    Args:
        device_id: Number of the GPU; -1: the first one.

    Attributes:
        value: The stream's handle, for libraries that take one.
        device_id: Number of the GPU.

    Raises:
        RuntimeError: If there is no GPU that can be used.
    """

    def __init__(self, device_id: int = -1) -> None:
        self.is_stream_destroy = True
        self.device_id = max(check_integer("StreamEventHandler", "device_id", device_id), 0)
        self.value = 0
        self.stream_create(self.device_id)

    def stream_create(self, device_id: int) -> None:
        """Make a new stream in the old one's place.

        Args:
            device_id: Number of the GPU.
        """
        if not self.is_stream_destroy:
            self.stream_destroy()
        self.device_id = _open("StreamEventHandler", device_id)
        self.value = _driver.make_stream(self.device_id)
        self.is_stream_destroy = False

    def stream_destroy(self) -> None:
        """Give the stream back."""
        if not self.is_stream_destroy:
            _driver.free_stream(self.device_id, self.value)
            self.is_stream_destroy = True

    def add_default_stream_event(self) -> None:
        """Note the work of nnrs so far, for `stream_wait_event` and `event_synchronize`, which wait for all of it."""

    def stream_wait_event(self) -> None:
        """Let the stream's later work come behind that of nnrs."""
        if not self.is_stream_destroy:
            _core.cuda_synchronize(self.device_id)

    def event_synchronize(self) -> None:
        """Wait until nnrs has done all its work."""
        _core.cuda_synchronize(self.device_id)

    def stream_synchronize(self) -> None:
        """Wait until the stream has done all its work."""
        if not self.is_stream_destroy:
            _driver.wait_for(self.device_id, self.value)

    def default_stream_synchronize(self) -> None:
        """Wait until nnrs has done all its work."""
        _core.cuda_synchronize(self.device_id)


def _open(function: str, device_id: str | int) -> int:
    """The number of a GPU that can be used."""
    number = int(device_id) if isinstance(device_id, str) and device_id.isdecimal() else device_id
    found = check_integer(function, "device_id", number, 0)
    _core.cuda_open(found)
    return found
