"""`.wav` files as arrays (samples, channels): what is inside of a RIFF file, read and written without a package."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._errors import FormatError

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
_TO_THE_END = 0xFFFFFFFF
_ORDERS = {b"RIFF": "<", b"RIFX": ">"}
_WIDTHS = {PCM: (1, 2, 3, 4, 8), FLOAT: (4, 8)}


class CompressedError(FormatError):
    """Sound that is compressed: a decoder is needed."""


@dataclass(frozen=True)
class SampleFormat:
    """How samples are stored: kind (1 integers, 3 floats), channels, samples a second, bytes a sample, their order."""

    kind: int
    channels: int
    rate: int
    width: int
    order: str = "<"


def decode(data: bytes, whole: bool = True) -> tuple[np.ndarray, int]:
    """The samples of a `.wav` file, (samples, channels), and its samples a second.

    8 bits are uint8 with silence at 128, 16 int16, 24 the upper bits of int32, 32 int32, 64 int64, floats float32 or
    float64. Files of RIFX have the bytes of numbers in the other order. Unless it must be `whole`, a file that is cut
    short gives the samples that are there, and a RuntimeWarning.

    Raises:
        ValueError: If the file is of another kind, cut short, or compressed (`CompressedError`).
    """
    order = _ORDERS.get(data[:4])
    if order is None or data[8:12] != b"WAVE":
        raise FormatError(f"the file starts with {data[:4]!r}, not with a RIFF header of kind WAVE")
    about: SampleFormat | None = None
    for name, body in _chunks(data, order, whole):
        if name == b"fmt ":
            about = _sample_format(body, order)
        if name == b"data":
            if about is None:
                raise FormatError("the samples stand before the chunk that says how they are stored")
            frame = about.width * about.channels
            return samples(body if whole else body[: len(body) // frame * frame], about, True), about.rate
    raise FormatError("there are no samples in the file")


def _chunks(data: bytes, order: str, whole: bool) -> Iterator[tuple[bytes, memoryview]]:
    at = 12
    while at + 8 <= len(data):
        name, (size,) = data[at : at + 4], struct.unpack_from(order + "I", data, at + 4)
        body = memoryview(data)[at + 8 :]
        if size != _TO_THE_END and size > len(body):
            text = f"the file is cut short: {name!r} should have {size} bytes, {len(body)} are there"
            if whole or name != b"data":
                raise FormatError(text)
            warnings.warn(f"nnrs: {text}", RuntimeWarning, stacklevel=5)
        yield name, body[:size]
        at += 8 + size + size % 2


def _sample_format(body: memoryview, order: str) -> SampleFormat:
    if len(body) < 16:
        raise FormatError(f"16 bytes say how samples are stored, {len(body)} are there")
    kind, channels, rate, _, block, _ = struct.unpack_from(order + "HHIIHH", body)
    if kind == EXTENSIBLE and len(body) >= 26:
        (kind,) = struct.unpack_from(order + "H", body, 24)
    if kind not in (PCM, FLOAT):
        raise CompressedError(f"the samples are compressed (format {kind})")
    width = block // channels if channels else 0
    if width * channels != block or width not in _WIDTHS[kind]:
        raise FormatError(f"{channels} channels in {block} bytes are no samples")
    return SampleFormat(kind, channels, rate, width, order)


def samples(body: bytes | memoryview, about: SampleFormat, unsigned_bytes: bool) -> np.ndarray:
    """Raw samples as an array (samples, channels)."""
    frame = about.width * about.channels
    if len(body) % frame:
        raise FormatError(f"{len(body)} bytes are no whole number of frames of {frame} bytes")
    if about.width == 3:
        wide = np.zeros((len(body) // 3, 4), np.uint8)
        upper = slice(1, 4) if about.order == "<" else slice(0, 3)
        wide[:, upper] = np.frombuffer(body, np.uint8).reshape(-1, 3)
        flat = wide.reshape(-1).view(f"{about.order}i4")
    else:
        signed = "f" if about.kind == FLOAT else "u" if about.width == 1 and unsigned_bytes else "i"
        flat = np.frombuffer(body, f"{about.order}{signed}{about.width}")
    return np.array(flat.reshape(-1, about.channels), dtype=flat.dtype.newbyteorder("="))


def encode(x: np.ndarray, rate: int) -> bytes:
    """A `.wav` file of samples (samples, channels) of uint8, int16 or int32."""
    raw = np.ascontiguousarray(x, x.dtype.newbyteorder("<")).tobytes()
    width, channels = x.dtype.itemsize, x.shape[1]
    about = struct.pack("<HHIIHH", PCM, channels, rate, rate * width * channels, width * channels, 8 * width)
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(about)) + about + b"data" + struct.pack("<I", len(raw)) + raw
    body += b"\0" * (len(raw) % 2)
    return b"RIFF" + struct.pack("<I", len(body)) + body
