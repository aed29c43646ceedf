"""Curves of what monitors wrote: `plot_series` and `plot_time_elapsed` of `nnrs.monitor`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._errors import (
    ArgumentError,
    FileError,
    FormatError,
    MissingFileError,
    MissingPackageError,
    check_type,
    message,
    reason,
)

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SERIES, _TIMES = "MonitorSeries", "MonitorTimeElapsed"
_WIDTHS = {_SERIES: 2, _TIMES: 4}  # numbers in a line


def plot_series(filename: str | os.PathLike[str], plot_kwargs: Mapping[str, Any] | None = None) -> None:
    """Plot a series that `MonitorSeries` wrote, in the current axes of matplotlib.

    Args:
        filename: Path of a `.series.txt`.
        plot_kwargs: Arguments of `matplotlib.pyplot.plot`.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no such file.
        ImportError: If matplotlib is not installed (`pip install nnrs[viz]`).
    """
    _plot("plot_series", *columns("plot_series", filename, _SERIES, 1), plot_kwargs)


def plot_time_elapsed(
    filename: str | os.PathLike[str],
    elapsed: bool = False,
    unit: str = "s",
    plot_kwargs: Mapping[str, Any] | None = None,
) -> None:
    """Plot times that `MonitorTimeElapsed` wrote, in the current axes of matplotlib.

    Args:
        filename: Path of a `.timer.txt`.
        elapsed: Whether to plot the time since the start, and not that of each interval.
        unit: Unit of time: 's', 'm', 'h' or 'd'.
        plot_kwargs: Arguments of `matplotlib.pyplot.plot`.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is no such file, or `unit` is another one.
        ImportError: If matplotlib is not installed (`pip install nnrs[viz]`).
    """
    here = "plot_time_elapsed"
    if unit not in _UNITS:
        raise ArgumentError(message(here, "unit", "'s', 'm', 'h' or 'd'", repr(unit)))
    index, seconds = columns(here, filename, _TIMES, 3 if elapsed else 1)
    _plot(here, index, seconds / _UNITS[unit], plot_kwargs)


def columns(
    function: str, filename: str | os.PathLike[str], monitor: str, column: int
) -> tuple[np.ndarray, np.ndarray]:
    """The indices, and the numbers of a column, of the file of a monitor of that class."""
    check_type(function, "filename", filename, (str, os.PathLike), "a path")
    path = os.fspath(filename)
    rows = []
    try:
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                rows += _row(function, f"{path}:{number}", line, monitor, column)
    except FileNotFoundError as error:
        raise MissingFileError(f"{function}: there is no file {path!r}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{function}: {path!r} is no file of {monitor}: {error}") from error
    except OSError as error:
        raise FileError(f"{function}: cannot read {path!r}: {reason(error, path)}") from error
    table = np.array(rows, float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _row(function: str, where: str, line: str, monitor: str, column: int) -> list[tuple[float, float]]:
    """Index and number of a line; nothing of an empty one."""
    try:
        numbers = [float(part) for part in line.split()]
        if numbers and len(numbers) != _WIDTHS[monitor]:
            raise ValueError(f"{len(numbers)} numbers")
    except ValueError:
        expected = f"{_WIDTHS[monitor]} numbers, as {monitor} writes them"
        raise FormatError(f"{function}: {where}: expected {expected}, got {line.rstrip()!r:.60}") from None
    return [(numbers[0], numbers[column])] if numbers else []


def _plot(function: str, x: np.ndarray, y: np.ndarray, options: Mapping[str, Any] | None) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        hint = "pip install nnrs[viz]"
        raise MissingPackageError(message(function, None, "this needs the package matplotlib", hint=hint)) from error
    if len(x) and all(map(float.is_integer, x[np.isfinite(x)])) and math.isfinite(x.sum()):
        x = x.astype(np.int64)
    plt.plot(x, y, **(options or {}))
