"""Images by OpenCV: 8 and 16 bits, fast; its colours are BGR, those of arrays here RGB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._errors import ArgumentError, FormatError, message
from ._arrays import Image, to_bits, to_uint16

if TYPE_CHECKING:
    from ._backends import Wanted

_FILTERS = {"nearest": "NEAREST", "bilinear": "LINEAR", "bicubic": "CUBIC", "lanczos": "LANCZOS4"}
# From how many channels to how many (as `num_channels` says): OpenCV's name of the conversion, or "" for none.
_CONVERSIONS = {
    **dict.fromkeys([(0, -1), (0, 0), (0, 1)], ""),
    (0, 3): "GRAY2RGB",
    (0, 4): "GRAY2RGBA",
    **dict.fromkeys([(3, 0), (3, 1)], "BGR2GRAY"),
    **dict.fromkeys([(3, -1), (3, 3)], "BGR2RGB"),
    (3, 4): "BGR2RGBA",
    **dict.fromkeys([(4, 0), (4, 1)], "BGRA2GRAY"),
    (4, 3): "BGRA2RGB",
    **dict.fromkeys([(4, -1), (4, 4)], "BGRA2RGBA"),
}


# Kinds of files with 16 bits a channel; OpenCV cuts numbers off in others.
_OF_16_BITS = (".png", ".tif", ".tiff", ".pgm", ".ppm", ".pnm", ".jp2")


def read(data: bytes, wanted: Wanted) -> Image:
    """The image in `data`, as uint8 or uint16."""
    import cv2

    mode = cv2.IMREAD_GRAYSCALE if wanted.grayscale else cv2.IMREAD_UNCHANGED
    img = cv2.imdecode(np.frombuffer(data, np.uint8), mode) if data else None
    if img is None:
        raise FormatError(message("imread", "path", "OpenCV finds no image in it"))
    if wanted.as_uint16 and img.dtype != np.uint16:
        if img.dtype != np.uint8:
            raise ArgumentError(message("imread", "as_uint16", "an image of 8 or 16 bits", f"{img.dtype}"))
        img = to_uint16(img)
    return _converted(cv2, img, wanted.num_channels)


def _converted(cv2: Any, img: Image, num_channels: int) -> Image:
    channels = 0 if img.ndim == 2 else img.shape[2]
    name = _CONVERSIONS.get((channels, num_channels))
    if name is None:
        raise FormatError(message("imread", "path", "an image of 1, 3 or 4 channels", channels))
    img = cv2.cvtColor(img, getattr(cv2, f"COLOR_{name}")) if name else img
    return np.asarray(img[..., None] if num_channels == 1 else img)


def encode(img: Image, ending: str, as_uint16: bool, auto_scale: bool) -> bytes:
    """The image as a file of the kind of `ending`."""
    import cv2

    if not cv2.haveImageWriter(f"a{ending}"):
        hint = "'.png', '.jpg' and '.bmp' are some"
        raise ArgumentError(message("imsave", "path", "a name with the ending of an image format", repr(ending), hint))
    if as_uint16 and ending not in _OF_16_BITS:
        expected = f"False for '{ending}', which holds 8 bits a channel (16: {', '.join(_OF_16_BITS)})"
        raise ArgumentError(message("imsave", "as_uint16", expected, True))
    pixels = to_bits(img, as_uint16, auto_scale)
    if pixels.ndim == 3 and pixels.shape[2] in (3, 4):
        pixels = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR if pixels.shape[2] == 3 else cv2.COLOR_RGBA2BGRA)
    done, data = cv2.imencode(ending, np.ascontiguousarray(pixels))
    if not done:
        raise ArgumentError(message("imsave", "path", f"OpenCV cannot write such an image as '{ending}'"))
    return bytes(data)


def resize(function: str, img: Image, size: tuple[int, int], interpolate: str) -> Image:
    """The image with (width, height) `size`, of the same type."""
    import cv2

    if interpolate not in _FILTERS:
        raise ArgumentError(message(function, "interpolate", f"one of {', '.join(_FILTERS)}", repr(interpolate)))
    kind = getattr(cv2, f"INTER_{_FILTERS[interpolate]}")
    try:
        resized = cv2.resize(np.ascontiguousarray(img), size, interpolation=kind)
    except cv2.error as error:
        if error.code == cv2.Error.StsNoMem or "bad_alloc" in str(error):
            raise MemoryError(str(error)) from error
        raise
    return np.asarray(resized).reshape((size[1], size[0], *img.shape[2:]))  # it drops an axis of one channel
