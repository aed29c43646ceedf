"""Marks and ranges in the timelines of NVIDIA's profilers (NVTX).

They are shown by a profiler that watches the program. Without one, or without the library `libnvToolsExt`, they change
nothing, as is NVTX's way; no GPU is needed.

>>> range_push("epoch")
>>> mark_A("batch")
>>> range_pop()
"""

from __future__ import annotations

import ctypes
import ctypes.util
import zlib
from functools import cache
from typing import Any

from ..._errors import check_flag, check_type

_VERSION, _ARGB, _ASCII = 2, 1, 1


class _Attributes(ctypes.Structure):
    """What NVTX's functions with colours take."""

    _fields_ = [
        ("version", ctypes.c_uint16),
        ("size", ctypes.c_uint16),
        ("category", ctypes.c_uint32),
        ("color_type", ctypes.c_int32),
        ("color", ctypes.c_uint32),
        ("payload_type", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("payload", ctypes.c_uint64),
        ("message_type", ctypes.c_int32),
        ("message", ctypes.c_char_p),
    ]


@cache
def _library() -> Any:
    """NVTX's library, or None."""
    for name in ("libnvToolsExt.so.1", ctypes.util.find_library("nvToolsExt")):
        try:
            return ctypes.CDLL(name) if name else None
        except OSError:
            continue
    return None


def _text(function: str, msg: str) -> bytes:
    check_type(function, "msg", msg, str, "a str")
    return msg.encode()


def mark_A(msg: str) -> None:
    """Mark a moment.

    Args:
        msg: What it is called.

    Raises:
        TypeError: If it is no text.
    """
    text, library = _text("mark_A", msg), _library()
    if library is not None:
        library.nvtxMarkA(text)


def range_push(msg: str, coloring: bool = True) -> None:
    """Begin a range, within those that have begun and not ended in this thread.

    Args:
        msg: What it is called.
        coloring: Whether ranges get colours by their names.

    Raises:
        TypeError: If it is no text.
    """
    text, colored, library = _text("range_push", msg), check_flag("range_push", "coloring", coloring), _library()
    if library is None:
        return
    if not colored:
        library.nvtxRangePushA(text)
        return
    about = _Attributes(_VERSION, ctypes.sizeof(_Attributes), 0, _ARGB, 0xFF000000 | zlib.crc32(text) & 0xFFFFFF)
    about.message_type, about.message = _ASCII, text
    library.nvtxRangePushEx(ctypes.byref(about))


def range_pop() -> None:
    """End the range that has begun last."""
    library = _library()
    if library is not None:
        library.nvtxRangePop()
