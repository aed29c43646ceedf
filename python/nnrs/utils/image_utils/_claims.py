"""Whether an image file can hold as many pixels as it says: decoders make room for them before they look."""

from __future__ import annotations

import re
import struct

from ..._errors import FormatError, message

# Deflate shrinks by 1,032 at most, the runs of a bitmap by 255 bytes for 2.
_MOST_PER_BYTE = {"png": 1032, "bmp": 128, "pnm": 1}
_PNG_PLANES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def check_claim(data: bytes) -> None:
    """Raise `FormatError` if a PNG, BMP or PNM file says that it has more than its bytes can hold."""
    kind, bits = _png(data) or _bmp(data) or _pnm(data) or ("", 0)
    if kind and bits > 8 * _MOST_PER_BYTE[kind] * len(data):
        why = f"the image says it has {bits // 8} bytes of pixels, but the file has {len(data)}"
        raise FormatError(message("imread", "path", why))


def _png(data: bytes) -> tuple[str, int] | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or len(data) < 26:
        return None
    at = 8
    while at + 8 <= len(data) and data[at + 4 : at + 8] != b"IEND":
        at += 12 + int.from_bytes(data[at : at + 4], "big")
    if at + 8 > len(data):
        raise FormatError(message("imread", "path", "the image is cut short, or a length in it is wrong"))
    width, height, depth, color = struct.unpack(">IIBB", data[16:26])
    return "png", width * height * depth * _PNG_PLANES.get(color, 1)


def _bmp(data: bytes) -> tuple[str, int] | None:
    if not data.startswith(b"BM") or len(data) < 30:
        return None
    width, height, _, depth = struct.unpack("<iiHH", data[18:30])
    return "bmp", abs(width) * abs(height) * max(depth, 1)


def _pnm(data: bytes) -> tuple[str, int] | None:
    found = re.match(rb"P([456])\s+(?:#[^\n]*\n\s*)*(\d{1,9})\s+(?:#[^\n]*\n\s*)*(\d{1,9})\s", data[:4096])
    if found is None:
        return None
    bits = {b"4": 1, b"5": 8, b"6": 24}[found[1]]
    return "pnm", int(found[2]) * int(found[3]) * bits
