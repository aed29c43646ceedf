"""Arrays that are images: what is checked, and how values are brought to 8 or 16 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._errors import ArgumentError, ArgumentTypeError, ShapeError, check_integer, check_type, message
from ...logger import logger

Image = np.ndarray


def check_image(function: str, img: Any, dimensions: tuple[int, ...] | None = (2, 3)) -> None:
    """Raise unless `img` is an array of real numbers with that many dimensions."""
    check_type(function, "img", img, np.ndarray, "a NumPy array")
    if img.dtype.kind not in "biuf":
        raise ArgumentTypeError(message(function, "img", "an array of real numbers", f"dtype {img.dtype}"))
    if dimensions is not None and (img.ndim not in dimensions or not img.size):
        expected = "shape (height, width) or (height, width, channel), none of them 0"
        raise ShapeError(message(function, "img", expected, f"shape {img.shape}"))


def check_size(function: str, size: Any) -> tuple[int, int]:
    """`size` as (width, height), both above 0."""
    check_type(function, "size", size, (list, tuple, np.ndarray), "(width, height)")
    numbers: Sequence[Any] = list(size)
    if len(numbers) != 2:
        raise ArgumentError(message(function, "size", "(width, height)", f"{len(numbers)} numbers"))
    return check_integer(function, "size", numbers[0], 1), check_integer(function, "size", numbers[1], 1)


def check_channels(num_channels: Any, grayscale: bool) -> int:
    """`num_channels`, if an image can be read with that many."""
    number = check_integer("imread", "num_channels", num_channels)
    known = (-1, 0, 1, 3, 4) if grayscale else (-1, 3, 4)
    if number not in known:
        hint = None if grayscale or number not in (0, 1) else "grayscale=True gives one channel"
        raise ArgumentError(message("imread", "num_channels", f"one of {known}", number, hint))
    return number


def unit_range(function: str, img: np.ndarray) -> np.ndarray:
    """Values from 0 for the least to 1 for the greatest; where all are the same: 0 for zeros, else 1."""
    x = img.astype(np.float64) if img.dtype.kind in "biu" else img
    low, high = x.min(), x.max()
    if not np.isfinite(low) or not np.isfinite(high):
        raise ArgumentError(message(function, "img", "finite values", f"values from {low} to {high}"))
    if low == high:
        return x if low == 0 else np.ones_like(x)
    if high > np.finfo(x.dtype).max / 2 or low < np.finfo(x.dtype).min / 2:  # the difference may be infinite
        x, low, high = x / 2, low / 2, high / 2
    return np.asarray((x - low) / (high - low))


def to_scale(function: str, img: Image, as_uint16: bool, auto_scale: bool) -> Image:
    """An image that can be written: uint8, with `as_uint16` uint16, or float32 from 0 to 1; 1 to 4 channels.

    A NaN becomes 0.
    """
    if img.ndim == 3 and img.shape[2] not in (1, 2, 3, 4):
        expected = "1 to 4 channels in the last axis"
        hint = "channel_first=True takes (channel, height, width)" if img.shape[0] in (1, 2, 3, 4) else None
        raise ShapeError(message(function, "img", expected, f"shape {img.shape}", hint))
    if img.dtype == np.uint16 and not as_uint16:
        hint = "as_uint16=True writes it as it is; for 8 bits convert it before"
        raise ArgumentError(message(function, "img", "uint8 or float", "uint16", hint))
    if img.dtype in (np.uint8, np.uint16):
        return img
    if not auto_scale:
        raise ArgumentError(
            message(function, "auto_scale", "True for an image that is not uint8 or uint16", auto_scale)
        )
    img = np.where(np.isnan(img), 0, img)
    if not np.all((img >= 0) & (img <= 1)):
        hint = "minmax_auto_scale stretches any values to uint8 or uint16"
        raise ArgumentError(message(function, "img", "values from 0 to 1", f"{img.min()} to {img.max()}", hint))
    return np.asarray(img, np.float32)


def to_bits(img: Image, as_uint16: bool, auto_scale: bool) -> Image:
    """An image of `to_scale` as the uint8, or with `as_uint16` uint16, that a file holds."""
    if img.dtype == np.uint16:
        return img
    if img.dtype == np.uint8:
        return _widened(img, auto_scale) if as_uint16 else img
    return np.asarray(img * 65535, np.uint16) if as_uint16 else np.asarray(img * 255, np.uint8)


def _widened(img: Image, auto_scale: bool) -> Image:
    if auto_scale:
        return img.astype(np.uint16) * 256
    logger.warning("imsave: an image of 8 bits is written with 16 as it is, so it will look black")
    return img.astype(np.uint16)


def to_uint16(img: Image) -> Image:
    """An image of 8 bits that is wanted with 16."""
    logger.warning("imread: the image has 8 bits; for as_uint16 its values are multiplied by 256")
    return img.astype(np.uint16) * 256
