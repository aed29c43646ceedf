"""Medical images (DICOM) by pydicom: the window of values that the file names, as 8 bits."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._errors import ArgumentError, message
from ._arrays import Image

if TYPE_CHECKING:
    from ._backends import Wanted


def read(data: bytes, wanted: Wanted) -> Image:
    """The image in `data` as uint8 (height, width, 3), or grey if that is wanted."""
    import pydicom

    if wanted.as_uint16:
        raise ArgumentError(message("imread", "as_uint16", "False for medical images, which become 8 bits", True))
    scan = pydicom.dcmread(io.BytesIO(data))
    img = _windowed(scan, _values(scan))
    if wanted.grayscale:
        grey = img if img.ndim == 2 else img.mean(axis=2).astype(np.uint8)
        return grey if wanted.num_channels <= 0 else np.repeat(grey[..., None], wanted.num_channels, axis=2)
    rgb = np.repeat(img[..., None], 3, axis=2) if img.ndim == 2 else img
    return np.concatenate((rgb, np.full_like(rgb[..., :1], 255)), axis=2) if wanted.num_channels == 4 else rgb


def _number(scan: Any, name: str, default: float) -> float:
    """A number of the file; the first, where there are several."""
    value = getattr(scan, name, None)
    if value is None:
        return default
    return float(value[0] if isinstance(value, (list, tuple)) or hasattr(value, "append") else value)


def _values(scan: Any) -> np.ndarray:
    """What the pixels mean; dark for what is bright, where the file is a negative."""
    x = scan.pixel_array.astype(np.float64) * _number(scan, "RescaleSlope", 1) + _number(scan, "RescaleIntercept", 0)
    is_negative = getattr(scan, "PhotometricInterpretation", "MONOCHROME2") == "MONOCHROME1"
    return np.trunc((1 << scan.BitsAllocated) - x if is_negative else x)


def _windowed(scan: Any, x: np.ndarray) -> Image:
    """Values of the window as 0 to 255: black up to its lower end, white from its upper one."""
    center = _number(scan, "WindowCenter", (1 << scan.BitsAllocated) / 2)
    width = _number(scan, "WindowWidth", 1 << scan.BitsAllocated)
    high = center + 0.5 * width - 0.5
    low = high - width - 0.5
    y = np.where(x > high, 255, np.clip((x - low) * (255 / max(high - low, 1)), 0, 255))
    return y.astype(np.uint8)
