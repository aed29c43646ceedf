"""The bytes of a path or an open file, and the ending of its name."""

from __future__ import annotations

import os

from .._errors import (
    ArgumentError,
    ArgumentTypeError,
    FileError,
    MissingFileError,
    describe,
    failures_as,
    message,
    reason,
)
from .._files import PathOrFile, is_path


def ending_of(path: PathOrFile) -> str:
    """The ending of the name, in small letters, as ".png"; "" for a file that has none."""
    name = os.fspath(path) if is_path(path) else getattr(path, "name", "")  # type: ignore[arg-type]
    return os.path.splitext(name)[1].lower() if isinstance(name, str) else ""


def read_bytes(function: str, path: PathOrFile) -> bytes:
    """All bytes of a path or open file; of a file from its start, if it can go there."""
    if not is_path(path):
        return _read_file(function, path)
    name = os.fspath(path)  # type: ignore[arg-type]

    def told(error: Exception) -> Exception:
        if isinstance(error, FileNotFoundError):
            hint = f"the current folder is {os.getcwd()}"
            return MissingFileError(message(function, "path", f"there is no file {name!r}", hint=hint))
        return FileError(message(function, "path", f"cannot read {name!r}: {reason(error, name)}"))

    with failures_as(told, (OSError, ValueError)), open(name, "rb") as f:
        return f.read()


def _read_file(function: str, file: object) -> bytes:
    if not hasattr(file, "read"):
        raise ArgumentTypeError(message(function, "path", "a path or an open binary file", describe(file)))
    if getattr(file, "seekable", bool)():
        file.seek(0)  # type: ignore[attr-defined]
    data = file.read()
    if not isinstance(data, bytes):
        raise ArgumentError(message(function, "path", "a file that is open in binary mode", describe(file)))
    return data
