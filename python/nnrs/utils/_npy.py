"""Arrays of `.npy` files, one after the other as caches have them: no pickles, no more memory than the file has."""

from __future__ import annotations

import functools
import io
import math
from typing import IO, Any

import numpy as np

from .._errors import FormatError, failures_as, message

_MOST_HEADER = 10_000  # NumPy's own limit


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

    def told(error: Exception) -> FormatError:  # ValueError, SyntaxError, MemoryError of the parser
        where = getattr(f, "name", None)
        name = f"{where!r}" if isinstance(where, str) else "the open file"
        hint = "the file may be cut short, or of another kind than its name says"
        return FormatError(message(function, None, f"cannot read an array of {name}: {error}", hint=hint))

    header = _header(f)
    with failures_as(told):
        shape, by_columns, dtype = _form(header)
        if math.prod(shape) * dtype.itemsize > room:
            raise ValueError(f"it claims shape {shape} of {dtype}, but the file has {room} bytes for it")
        found = np.empty(shape[::-1] if by_columns else shape, dtype)
    got = f.readinto(found.reshape(-1).view(np.uint8)) if found.nbytes else 0  # type: ignore[attr-defined]
    if got != found.nbytes:
        raise told(ValueError(f"it claims shape {shape} of {dtype}, but the file ends after {got} bytes"))
    return found.transpose() if by_columns else found


def _header(f: Any) -> Any:
    """The bytes before the values, as far as they are there; a text of a file of texts."""
    head = f.read(10)
    if head[6:7] == b"\x02":
        head += f.read(2)
    length = int.from_bytes(head[8:], "little") if isinstance(head, bytes) else 0
    return head + f.read(min(length, _MOST_HEADER + 1))


@functools.lru_cache(64)
def _form(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and type. The files of a cache have mostly the same."""
    f = io.BytesIO(header)
    if len(header) > _MOST_HEADER:
        raise ValueError(f"its header has more than {_MOST_HEADER} bytes")
    version = np.lib.format.read_magic(f)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"version {version} of the format, expected (1, 0) or (2, 0)")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(f)
    if dtype.hasobject or dtype.kind not in "biufcSU":
        raise ValueError(f"elements are of type {dtype}, expected numbers or texts (a file of pickles runs its code)")
    if any(n < 0 for n in shape) or len(shape) > 32:
        raise ValueError(f"it claims shape {shape}")
    return shape, by_columns, dtype
