"""Arrays of `.npy` files, one after the other as caches have them: no pickles, no more memory than the file has."""

from __future__ import annotations

import io
import math
from typing import IO, Any

import numpy as np

from .._errors import FormatError, message


def read_array(function: str, f: IO[bytes]) -> np.ndarray:
    """The array that begins at the file's position, which moves behind it.

    Args:
        function: Name of the calling function, for errors.
        f: File open for binary reading; one that cannot seek is read whole.

    Raises:
        ValueError: If there is no array, a part of one, or one of Python objects.
    """
    f = f if f.seekable() else io.BytesIO(f.read())
    start = f.tell()
    room = f.seek(0, io.SEEK_END) - start
    f.seek(start)
    try:
        _check_header(f, room)
        f.seek(start)
        return np.lib.format.read_array(f, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # by what the bytes happen to be: ValueError, SyntaxError, MemoryError of the parser
        where = getattr(f, "name", None)
        name = f"{where!r}" if isinstance(where, str) else "the open file"
        hint = "the file may be cut short, or of another kind than its name says"
        raise FormatError(message(function, None, f"cannot read an array of {name}: {error}", hint=hint)) from error


def _check_header(f: Any, room: int) -> None:
    version = np.lib.format.read_magic(f)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format, expected (1, 0) or (2, 0)")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(f)
    if dtype.hasobject or dtype.kind not in "biufcSU":
        raise ValueError(f"elements are of type {dtype}, expected numbers or texts (a file of pickles runs its code)")
    if any(n < 0 for n in shape) or len(shape) > 32 or math.prod(shape) * dtype.itemsize > room:
        raise ValueError(f"it claims shape {shape} of {dtype}, but the file has {room} bytes for it")
