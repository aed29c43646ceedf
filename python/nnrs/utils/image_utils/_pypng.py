"""PNG files by pypng: 8 and 16 bits as they are, in pure Python."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from ..._errors import ArgumentError, FormatError, message
from ._arrays import Image, to_bits, to_uint16

if TYPE_CHECKING:
    from ._backends import Wanted

_LUMA = (0.299, 0.587, 0.114)


def read(data: bytes, wanted: Wanted) -> Image:
    """The image in `data`, as uint8 or uint16."""
    import png

    width, height, rows, about = png.Reader(file=io.BytesIO(data)).asDirect()
    if width < 1 or height < 1:
        raise FormatError(message("imread", "path", "a PNG of one pixel or more", f"{width} x {height}"))
    if about["bitdepth"] not in (8, 16):
        raise FormatError(message("imread", "path", "a PNG of 8 or 16 bits for pypng", f"{about['bitdepth']} bits"))
    if about["bitdepth"] == 16 and not wanted.as_uint16:
        raise ArgumentError(message("imread", "as_uint16", "True for an image of 16 bits with pypng", False))
    kind = np.uint16 if about["bitdepth"] == 16 else np.uint8
    img = np.array([np.asarray(row, kind) for row in rows]).reshape((height, width, about["planes"]))
    img = to_uint16(img) if wanted.as_uint16 and kind == np.uint8 else img
    return _converted(img, wanted)


def _converted(img: Image, wanted: Wanted) -> Image:
    """`img` (height, width, planes) with the channels that are wanted."""
    planes, number = img.shape[2], wanted.num_channels
    alpha = img[..., planes - 1 :] if planes in (2, 4) else np.full_like(img[..., :1], np.iinfo(img.dtype).max)
    if wanted.grayscale and planes > 2:
        img = (img[..., :3] @ np.array(_LUMA)).astype(img.dtype)
    elif planes == 1 or (planes == 2 and (wanted.grayscale or number > 0)):
        img = img[..., 0]
    if number <= 0:
        return img
    if img.ndim == 2:
        img = np.repeat(img[..., None], min(number, 3) if not wanted.grayscale else number, axis=2)
    return np.concatenate((img[..., :3], alpha), axis=2) if number == 4 and not wanted.grayscale else img[..., :number]


def encode(img: Image, ending: str, as_uint16: bool, auto_scale: bool) -> bytes:
    """The image as a PNG."""
    import png

    if ending != ".png":
        raise ArgumentError(message("imsave", "path", "a name that ends in '.png' for pypng", repr(ending)))
    pixels = to_bits(img, as_uint16, auto_scale)
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    writer = png.Writer(
        pixels.shape[1],
        pixels.shape[0],
        greyscale=channels in (1, 2),
        alpha=channels in (2, 4),
        bitdepth=8 * pixels.dtype.itemsize,
    )
    target = io.BytesIO()
    writer.write(target, pixels.reshape(pixels.shape[0], -1))
    return target.getvalue()
