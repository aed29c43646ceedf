"""Images as networks for segmentation want them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...utils.image_utils import imresize

__all__ = ["cast", "pad", "preprocess_image_and_label", "resize", "zero_mean_unit_range"]

_GREY = 127.5


def resize(image: np.ndarray, desired_size: Sequence[int]) -> np.ndarray:
    """The image (height, width, channel) as large as fits into (height, width), with its proportions.

    Images of one channel are labels: their values are not mixed.
    """
    ratio = min(np.divide(desired_size, image.shape[:2]))
    height, width = (int(n * ratio) for n in image.shape[:2])
    kind = "nearest" if image.shape[2] == 1 else "bilinear"
    return imresize(image, (width, height), interpolate=kind)


def zero_mean_unit_range(image: np.ndarray) -> np.ndarray:
    """Values from 0 to 255 as such from -1 to 1.

    >>> zero_mean_unit_range(np.array([0, 255])).tolist()
    [-1.0, 1.0]
    """
    found: np.ndarray = 2.0 / 255.0 * image - 1.0
    return found


def cast(image: np.ndarray) -> np.ndarray:
    """The image as float32."""
    return image.astype(np.float32)


def pad(image: np.ndarray, desired_size: Sequence[int] = (513, 513), value: float | None = None) -> np.ndarray:
    """The image (height, width, channel) with rows below and columns behind, up to (height, width).

    Args:
        image: The image; an axis that is long enough stays.
        desired_size: Least height and width.
        value: What is put there; by default 127.5, grey.
    """
    missing = [(0, max(want - have, 0)) for have, want in zip(image.shape, desired_size, strict=False)]
    return np.pad(image, (*missing, (0, 0)), constant_values=_GREY if value is None else value)


def preprocess_image_and_label(image: np.ndarray, target_width: int = 513, target_height: int = 513) -> np.ndarray:
    """An image (height, width, 3) of values from 0 to 255 as the networks want it: resized, padded, from -1 to 1."""
    fitted = resize(cast(image), (target_height, target_width))
    return zero_mean_unit_range(pad(fitted, (target_height, target_width)))
