"""Small things that commands share."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np

from ..._errors import ArgumentError, ShapeError, message

_UNITS = {"k": 1024, "K": 1000, "m": 1024**2, "M": 1000**2, "g": 1024**3, "G": 1000**3}
_UNITS |= {"t": 1024**4, "T": 1000**4, "p": 1024**5, "P": 1000**5}


def is_float(x: str) -> bool:
    """Whether a text is a number."""
    try:
        float(x)
    except ValueError:
        return False
    return True


def str_to_num(str: str) -> int:
    """The number that a text says: `12`, `2e8` (2 to the power of 8), `4K` (4000), `4k` (4096), up to P and p; else -1.

    >>> str_to_num("1.5k"), str_to_num("2e10"), str_to_num("no")
    (1536, 1024, -1)
    """
    found = re.fullmatch(r"([1-9]\d*)|([1-9]\d*(?:\.\d+)?)(?:e(\d{1,4})|([KkMmGgTtPp]))", str)
    if found is None:
        return -1
    whole, number, power, unit = found.groups()
    if whole:
        return int(whole)
    try:
        return int(float(number) ** int(power)) if power else int(float(number) * _UNITS[unit])
    except OverflowError:
        return -1


def compute_full_path(root_path: str, file_path: str) -> str:
    """A file's path in a folder, with this system's separators.

    >>> compute_full_path("data", "a/./b.png").replace(os.path.sep, "/")
    'data/a/b.png'
    """
    path = re.sub(r"[\\/]", lambda _: os.path.sep, os.path.join(root_path, file_path))
    return path.replace(f"{os.path.sep}.{os.path.sep}", os.path.sep)


def let_data_to_variable(
    variable: Any, data: np.ndarray, ctx: Any = None, data_name: str | None = None, variable_name: str | None = None
) -> None:
    """Fill a variable of a network with data, which then gets no gradient.

    Args:
        variable: Variable.
        data: Its values, of the same shape or one that is broadcast to it.
        ctx: Ignored: data goes where it is used.
        data_name: Name of the data, for errors.
        variable_name: Name of the variable, for errors.

    Raises:
        ValueError: If the shapes do not fit.
    """
    if variable.shape != data.shape:
        try:
            data = np.broadcast_to(data, variable.shape)
        except ValueError:
            said = f"shape {variable.shape} of variable {variable_name!r} for data {data_name!r}"
            raise ShapeError(message("let_data_to_variable", None, said, data.shape)) from None
    variable.d = data
    variable.need_grad = False


def check_context(command: str, name: str | None) -> None:
    """Refuse a `--context` that is not 'cpu', or 'cudnn' or 'cuda' with ':' and a device's number."""
    kind, _, device = (name or "cpu").partition(":")
    if kind not in ("cpu", "cudnn", "cuda") or (device and not (device.isascii() and device.isdigit())):
        raise ArgumentError(message(command, "context", "cpu, cudnn or cudnn:DEVICE", repr(name)))
