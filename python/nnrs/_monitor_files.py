"""What monitors have in common: their names, their folder, lines that are added to a file in one go."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np

from ._errors import ArgumentTypeError, FileError, check_type, describe, failures_as, message, reason


def check_number(function: str, argument: str, value: Any) -> Any:
    """`value`, a real number of any type."""
    if isinstance(value, (bool, int, float)) or np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf":
        return value
    raise ArgumentTypeError(message(function, argument, "a number", describe(value)))


def check_monitor_name(function: str, name: Any) -> str:
    check_type(function, "name", name, str, "the monitor's name as a str")
    return str(name)


def file_name(name: str) -> str:
    return name.replace(" ", "-")


def folder_of(function: str, monitor: Any) -> str:
    try:
        return os.fspath(monitor.save_path)
    except (AttributeError, TypeError):
        raise ArgumentTypeError(message(function, "monitor", "a Monitor", describe(monitor))) from None


def make_folder(function: str, path: str | os.PathLike[str]) -> None:
    def told(error: Exception) -> Exception:
        is_file = isinstance(error, FileExistsError)
        why = "a file has that name" if is_file else getattr(error, "strerror", None) or error
        return FileError(f"{function}: cannot make the folder {os.fspath(path)!r}: {why}")

    with failures_as(told, (OSError, ValueError)):
        os.makedirs(path, exist_ok=True)


def new_file(function: str, monitor: Any, name: str, ending: str) -> str | None:
    """The path of a monitor's file, which is empty now; None without a folder."""
    if monitor is None:
        return None
    path = os.path.join(folder_of(function, monitor), file_name(name)) + ending
    make_folder(function, os.path.dirname(path))
    with _unwritable(f"{function}: ", path), open(path, "w"):
        return path


def _unwritable(function: str, path: str) -> contextlib.AbstractContextManager[None]:
    text = f"{function}cannot write {path!r}: "
    return failures_as(lambda error: FileError(text + reason(error, path)), (OSError, ValueError))


def append(path: str | None, line: str) -> None:
    """Add a line, in one go, and leave the file as it was where that fails."""
    if path is None:
        return
    with _unwritable("", path), open(path, "ab", buffering=0) as f:
        start = f.tell()
        text = f"{line}\n".encode()
        if f.write(text) != len(text):
            f.truncate(start)
            raise OSError("the disk is full")
