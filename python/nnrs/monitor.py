"""Monitors: series of numbers, times and images, logged and written to files while a network trains.

>>> import tempfile, pathlib
>>> with tempfile.TemporaryDirectory() as folder:
...     loss = MonitorSeries("Training loss", Monitor(folder), interval=2, verbose=False)
...     for i in range(4):
...         loss.add(i, i / 2)
...     print(pathlib.Path(folder, "Training-loss.series.txt").read_text(), end="")
1 0.25
3 1.25
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from . import _recorders, _tensorboard
from ._core import NdArray, Variable
from ._errors import ArgumentTypeError, check_type, describe, message
from ._monitor_files import append, check_monitor_name, check_number, make_folder, new_file
from ._monitor_images import MonitorImage, MonitorImageTile, tile_images
from ._plots import plot_series, plot_time_elapsed
from .logger import logger

__all__ = [
    "Monitor",
    "MonitorImage",
    "MonitorImageTile",
    "MonitorSeries",
    "MonitorTensorBoard",
    "MonitorTimeElapsed",
    "plot_series",
    "plot_time_elapsed",
    "tile_images",
]


class Monitor:
    """The folder that monitors write to.

    Args:
        save_path: Path of the folder; it is made, with those above it, if it is not there.

    Raises:
        OSError: If it cannot be made.
    """

    def __init__(self, save_path: str | os.PathLike[str]) -> None:
        check_type("Monitor", "save_path", save_path, (str, os.PathLike), "a path")
        self._save_path = save_path
        make_folder("Monitor", save_path)

    @property
    def save_path(self) -> str | os.PathLike[str]:
        """The folder."""
        return self._save_path


class MonitorTensorBoard(Monitor, _recorders.Recorder):
    """A monitor's folder, with the same numbers and images for TensorBoard: `tensorboard --logdir` of the folder.

    Give it to monitors in a `Monitor`'s place. `close()` it in the end, or use it in a `with`; else the program's end
    does it.

    Args:
        save_path: Path of the folder; it is made, with those above it, if it is not there.

    Raises:
        OSError: If it cannot be made.
        ImportError: If tensorboardX is not installed (`pip install nnrs[tensorboard]`).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with MonitorTensorBoard(folder) as board:
    ...         MonitorSeries("loss", board, verbose=False).add(0, 0.5)
    ...     sorted(name.partition(".")[0] for name in os.listdir(folder))  # TensorBoard's events, loss.series.txt
    ['events', 'loss']
    """

    def __init__(self, save_path: str | os.PathLike[str]) -> None:
        super().__init__(save_path)
        self._events = _tensorboard.Events(save_path)

    def series(self, name: str, index: Any, value: float) -> None:
        self._events.scalar(name, index, value)

    def elapsed(self, name: str, index: Any, seconds: float) -> None:
        self._events.scalar(name, index, seconds)

    def image(self, name: str, index: Any, path: str) -> None:
        self._events.image(name, index, path)

    def close(self) -> None:
        """Write what is not written yet, and close the file; later values are in the monitors' own files alone."""
        self._events.close()

    def __enter__(self) -> MonitorTensorBoard:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class MonitorSeries:
    """Logs a series of numbers, and writes it to `<name>.series.txt` in the monitor's folder.

    Each line has an index and the mean of the values since the line before.

    Args:
        name: Name in the log and of the file, where a "-" is in each space's place.
        monitor: The folder; without one there is only the log.
        interval: Indices from one line to the next.
        verbose: Whether to log.

    A value that is a view, as `loss.d` is one, is read when its line is written: it is what the array has then. Give
    `loss.d.copy()` for a mean over the interval.

    >>> losses = MonitorSeries("loss", interval=10)
    >>> losses.add(0, 0.5)
    """

    def __init__(self, name: str, monitor: Any = None, interval: float = 1, verbose: bool = True) -> None:
        self.name = check_monitor_name("MonitorSeries", name)
        self.interval = check_number("MonitorSeries", "interval", interval)
        self.verbose = verbose
        self.sp = new_file("MonitorSeries", monitor, name, ".series.txt")
        self.flush_at: Any = -1
        self.buf: list[Any] = []
        self._monitor = monitor

    def add(self, index: Any, value: Any) -> None:
        """Add a value.

        Args:
            index: Number of the iteration.
            value: Number, or array of numbers, whose mean counts.

        Raises:
            TypeError: If one of them is no number.
            OSError: If the line cannot be written; the value is not added then.
        """
        since = check_number("MonitorSeries.add", "index", index) - self.flush_at
        values = [*self.buf, _value(value)]
        if since < self.interval:
            self.buf = values
            return
        mean = _mean(values)
        append(self.sp, f"{index} {mean:g}")
        self.flush_at, self.buf = index, []
        if self.verbose:
            logger.info("iter=%s {%s}=%s", index, self.name, float(mean))
        for recorder in _recorders.of(self._monitor):
            recorder.series(self.name, index, float(mean))


class MonitorTimeElapsed:
    """Logs times, and writes them to `<name>.timer.txt` in the monitor's folder.

    Each line has an index, the seconds and the number of indices since the line before, and the seconds since this
    object was made.

    Args:
        name: Name in the log and of the file, where a "-" is in each space's place.
        monitor: The folder; without one there is only the log.
        interval: Indices from one line to the next.
        verbose: Whether to log.

    >>> seconds = MonitorTimeElapsed("time", interval=10)
    >>> seconds.add(0)
    """

    def __init__(self, name: str, monitor: Any = None, interval: float = 100, verbose: bool = True) -> None:
        self.name = check_monitor_name("MonitorTimeElapsed", name)
        self.interval = check_number("MonitorTimeElapsed", "interval", interval)
        self.verbose = verbose
        self.sp = new_file("MonitorTimeElapsed", monitor, name, ".timer.txt")
        self.flush_at: Any = -1
        self.start = self.lap = time.time()
        self._monitor = monitor

    def add(self, index: Any) -> None:
        """Take the time, if the interval is over.

        Args:
            index: Number of the iteration.

        Raises:
            TypeError: If it is no number.
            OSError: If the line cannot be written.
        """
        steps = check_number("MonitorTimeElapsed.add", "index", index) - self.flush_at
        if steps < self.interval:
            return
        now = time.time()
        elapsed, total = now - self.lap, now - self.start
        append(self.sp, f"{index} {elapsed} {steps} {total}")
        self.flush_at, self.lap = index, now
        if self.verbose:
            logger.info("iter=%s {%s}=%s[sec/%siter] %s[sec]", index, self.name, elapsed, steps, total)
        for recorder in _recorders.of(self._monitor):
            recorder.elapsed(self.name, index, elapsed)


def _value(value: Any) -> Any:
    """A value of a series, as it is: a number or an array of numbers."""
    if isinstance(value, (Variable, NdArray)):
        return np.array(value.d if isinstance(value, Variable) else value.data)
    if np.asarray(value).dtype.kind not in "biuf":
        raise ArgumentTypeError(message("MonitorSeries.add", "value", "a number", describe(value)))
    return value


def _mean(values: list[Any]) -> Any:
    try:
        return np.mean(values)
    except ValueError:  # arrays of several shapes
        return np.mean([np.mean(v) for v in values])
