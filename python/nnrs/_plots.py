"""Curves of what monitors wrote: `plot_series` and `plot_time_elapsed` of `nnrs.monitor`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._errors import ArgumentError, FileError, FormatError, MissingFileError, MissingPackageError, check_type, message

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


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
    _plot("plot_series", *columns("plot_series", filename, 1), plot_kwargs)


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
    index, total = columns(here, filename, 3)  # also where it is not plotted: a series has no such column
    seconds = total if elapsed else columns(here, filename, 1)[1]
    _plot(here, index, seconds / _UNITS[unit], plot_kwargs)


def columns(function: str, filename: str | os.PathLike[str], column: int) -> tuple[np.ndarray, np.ndarray]:
    """The indices, and the numbers of a column, of a file of lines of numbers."""
    check_type(function, "filename", filename, (str, os.PathLike), "a path")
    rows = []
    try:
        with open(filename, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                rows.append(_row(function, f"{os.fspath(filename)}:{number}", line, column))
    except FileNotFoundError as error:
        raise MissingFileError(f"{function}: there is no file {os.fspath(filename)!r}") from error
    except UnicodeDecodeError as error:
        raise FormatError(f"{function}: {os.fspath(filename)!r} is not a monitor's file: {error}") from error
    except OSError as error:
        raise FileError(f"{function}: cannot read {os.fspath(filename)!r}: {error}") from error
    table = np.array([row for row in rows if row], float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _row(function: str, where: str, line: str, column: int) -> tuple[float, float] | None:
    """Index and number of a line; None for an empty one."""
    parts = line.split()
    try:
        return (float(parts[0]), float(parts[column])) if parts else None
    except (ValueError, IndexError):
        raise FormatError(f"{function}: {where}: expected numbers as a monitor writes them, got {line!r:.60}") from None


def _plot(function: str, x: np.ndarray, y: np.ndarray, options: Mapping[str, Any] | None) -> None:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        hint = "pip install nnrs[viz]"
        raise MissingPackageError(message(function, None, "this needs the package matplotlib", hint=hint)) from error
    if len(x) and all(map(float.is_integer, x[np.isfinite(x)])) and math.isfinite(x.sum()):
        x = x.astype(np.int64)
    plt.plot(x, y, **(options or {}))
