"""Sounds of `.wav` files as arrays of shape (samples,) or (samples, channels)."""

from __future__ import annotations

import struct
from typing import IO

import numpy as np

from .._errors import FormatError, message

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE


def read_wav(f: IO[bytes]) -> np.ndarray:
    """All samples: uint8, int16, int32 (of 24 bits too: in the upper ones), int64, float32 or float64.

    Raises:
        ValueError: If the file is of another kind, cut short, or compressed.
    """
    data = f.read()
    try:
        return _parse(memoryview(data))
    except (ValueError, struct.error) as error:
        raise FormatError(message("load_wav", "path", f"this is no sound that can be read: {error}")) from error


def _parse(data: memoryview) -> np.ndarray:
    order = {b"RIFF": "<", b"RIFX": ">"}.get(bytes(data[:4]))
    if order is None or bytes(data[8:12]) != b"WAVE":
        raise ValueError(f"it starts with {bytes(data[:12])!r}, not with RIFF and WAVE")
    form: tuple[int, int, int] | None = None
    at = 12
    while at + 8 <= len(data):
        kind = bytes(data[at : at + 4])
        (size,) = struct.unpack_from(order + "I", data, at + 4)
        body = data[at + 8 : at + 8 + size]
        if kind == b"fmt ":
            form = _form(body, order)
        elif kind == b"data":
            if form is None:
                raise ValueError("samples come before their format")
            return _samples(body, form, order)
        at += 8 + size + size % 2
    raise ValueError("it has no samples")


def _form(body: memoryview, order: str) -> tuple[int, int, int]:
    """Kind of numbers, channels, bits."""
    kind, channels, _, _, _, bits = struct.unpack_from(order + "HHIIHH", body)
    if kind == _EXTENSIBLE:
        (kind,) = struct.unpack_from(order + "H", body, 24)
    if kind not in (_PCM, _FLOAT) or channels == 0:
        raise ValueError(f"format {kind} with {channels} channels, expected PCM (1) or float (3)")
    return kind, channels, bits


def _samples(body: memoryview, form: tuple[int, int, int], order: str) -> np.ndarray:
    kind, channels, bits = form
    frame = channels * bits // 8
    allowed = (32, 64) if kind == _FLOAT else (8, 16, 24, 32, 64)
    if bits not in allowed:
        raise ValueError(f"samples of {bits} bits, expected {' or '.join(map(str, allowed))}")
    raw = body[: len(body) // frame * frame]
    if bits == 24:
        found = _of_24_bits(raw, order)
    else:
        name = "f" if kind == _FLOAT else "u" if bits == 8 else "i"
        found = np.frombuffer(raw, np.dtype(f"{order}{name}{bits // 8}"))
    found = found.astype(found.dtype.newbyteorder("="))
    return found if channels == 1 else found.reshape(-1, channels)


def _of_24_bits(raw: memoryview, order: str) -> np.ndarray:
    """The three bytes of each sample as the upper ones of four."""
    bytes_of = np.frombuffer(raw, np.uint8).reshape(-1, 3)
    wide = np.zeros((len(bytes_of), 4), np.uint8)
    wide[:, (1, 2, 3) if order == "<" else (0, 1, 2)] = bytes_of
    return wide.view(order + "i4").reshape(-1)
