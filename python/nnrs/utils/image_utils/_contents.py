"""What an image file is: its bytes, and the kind that its name or its first bytes say."""

from __future__ import annotations

import os

from ..._errors import ArgumentError, ArgumentTypeError, FileError, MissingFileError, describe, message
from ..._files import PathOrFile, is_path

_SIGNATURES = {
    b"BM": ".bmp",
    b"P5": ".pgm",
    b"P6": ".ppm",
    b"\xff\xd8\xff": ".jpg",
    b"\x89PNG\r\n\x1a\n": ".png",
    b"II*\0": ".tif",
    b"MM\0*": ".tif",
    b"GIF8": ".gif",
    b"\0\0\1\0": ".ico",
}


def extension_of(path: PathOrFile, data: bytes = b"") -> str:
    """The ending of the name, in small letters; without a name, the one that fits the bytes ("" for none)."""
    name = os.fspath(path) if is_path(path) else getattr(path, "name", "")  # type: ignore[arg-type]
    ending = os.path.splitext(name)[1].lower() if isinstance(name, str) else ""
    return ending or next((kind for head, kind in _SIGNATURES.items() if data.startswith(head)), "")


def read_bytes(function: str, path: PathOrFile) -> bytes:
    """All bytes of a path or open file."""
    if not is_path(path):
        return _read_file(function, path)
    name = os.fspath(path)  # type: ignore[arg-type]
    try:
        with open(name, "rb") as f:
            return f.read()
    except FileNotFoundError as error:
        hint = f"the current folder is {os.getcwd()}"
        raise MissingFileError(message(function, "path", f"there is no file {name!r}", hint=hint)) from error
    except (OSError, ValueError) as error:
        raise FileError(message(function, "path", f"cannot read {name!r}: {error}")) from error


def _read_file(function: str, file: object) -> bytes:
    if not hasattr(file, "read"):
        raise ArgumentTypeError(message(function, "path", "a path or an open binary file", describe(file)))
    if getattr(file, "seekable", bool)():
        file.seek(0)  # type: ignore[attr-defined]
    data = file.read()
    if not isinstance(data, bytes):
        raise ArgumentError(message(function, "path", "a file that is open in binary mode", describe(file)))
    return data
