"""Images by Pillow: nearly all formats, 8 bits a channel."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._errors import ArgumentError, message
from ._arrays import Image, to_bits

if TYPE_CHECKING:
    from ._backends import Wanted

_FILTERS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
_SIXTEEN = "Pillow has no images of 16 bits in colour; pip install pypng or opencv-python-headless"


def read(data: bytes, wanted: Wanted) -> Image:
    """The image in `data` as uint8."""
    from PIL import Image as pillow

    if wanted.as_uint16:
        raise ArgumentError(message("imread", "as_uint16", _SIXTEEN))
    with pillow.open(io.BytesIO(data)) as picture:
        if picture.mode.startswith("I;16"):  # the upper 8 bits, as Pillow takes of 16-bit colours
            return _pixels(pillow.fromarray((np.asarray(picture) >> 8).astype(np.uint8)), wanted)
        return _pixels(picture, wanted)


def _pixels(picture: Any, wanted: Wanted) -> Image:
    if picture.mode == "I":
        raise ArgumentError(message("imread", "path", "Pillow gives 32-bit integers for this image, not 8 bits"))
    if picture.mode == "P" and not wanted.palette_indices:
        picture = picture.convert("RGBA" if "transparency" in picture.info else "RGB")
    if wanted.grayscale:
        pixels = np.array(picture.convert("L"))
        return pixels if wanted.num_channels <= 0 else np.repeat(pixels[..., None], wanted.num_channels, axis=2)
    if wanted.num_channels > 0:
        picture = picture.convert("RGB" if wanted.num_channels == 3 else "RGBA")
    pixels = np.array(picture)
    return (np.clip(np.nan_to_num(pixels), 0, 255) if pixels.dtype.kind == "f" else pixels).astype(np.uint8)


def encode(img: Image, ending: str, as_uint16: bool, auto_scale: bool) -> bytes:
    """The image as a file of the kind of `ending`."""
    from PIL import Image as pillow

    if as_uint16 or img.dtype == np.uint16:
        raise ArgumentError(message("imsave", "img", _SIXTEEN))
    pixels = to_bits(img, False, auto_scale)
    pillow.preinit()
    if ending not in pillow.EXTENSION:
        pillow.init()  # some fifty modules more
    kinds = pillow.EXTENSION
    if ending not in kinds or kinds[ending] not in pillow.SAVE:
        hint = "'.png', '.jpg' and '.bmp' are some"
        raise ArgumentError(message("imsave", "path", "a name with the ending of an image format", repr(ending), hint))
    target = io.BytesIO()
    pillow.fromarray(pixels[..., 0] if pixels.shape[2:] == (1,) else pixels).save(target, format=kinds[ending])
    return target.getvalue()


def resize(function: str, img: Image, size: tuple[int, int], interpolate: str) -> Image:
    """The image with (width, height) `size`; uint16 and float32 go through floats, channel by channel."""
    from PIL import Image as pillow

    if interpolate not in _FILTERS:
        raise ArgumentError(message(function, "interpolate", f"one of {', '.join(_FILTERS)}", repr(interpolate)))
    kind = pillow.Resampling[interpolate.upper()]

    def one(plane: Image) -> Image:
        return np.array(pillow.fromarray(np.ascontiguousarray(plane)).resize(size, resample=kind))

    if img.dtype == np.uint8 and (img.ndim == 2 or img.shape[2] in (2, 3, 4)):
        return one(img)
    planes = img if img.dtype == np.uint8 else img.astype(np.float32)
    resized = one(planes) if img.ndim == 2 else np.stack([one(p) for p in np.moveaxis(planes, 2, 0)], axis=2)
    return np.clip(resized, 0, 65535).astype(np.uint16) if img.dtype == np.uint16 else resized
