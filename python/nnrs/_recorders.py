"""Who is told what monitors write, beside their files: TensorBoard, MLflow. See `nnrs.monitor` and `nnrs.autolog`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Recorder:
    """Is told of each value or picture when a monitor writes it; a subclass overrides what it wants to know."""

    def series(self, name: str, index: Any, value: float) -> None:
        """A mean of a series."""

    def elapsed(self, name: str, index: Any, seconds: float) -> None:
        """Seconds since the value before."""

    def image(self, name: str, index: Any, path: str) -> None:
        """A picture that was written to `path`."""


everywhere: list[Recorder] = []
"""Recorders of all monitors."""


def of(monitor: object) -> Iterator[Recorder]:
    """The recorders of one monitor: itself, if it is one, and those of all."""
    if isinstance(monitor, Recorder):
        yield monitor
    yield from list(everywhere)
