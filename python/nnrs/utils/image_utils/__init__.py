"""Images as NumPy arrays: read, written and resized by Pillow, OpenCV, pypng or pydicom, whichever is installed.

An array is (height, width, channel) in the order RGB(A), or (height, width) for grey; sizes are (width, height).
Without `set_backend` each call takes the backend that suits it: pypng for `.png` (it keeps 16 bits), OpenCV for
bitmaps, else Pillow, else the next one that can.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._errors import ArgumentError, ArgumentTypeError, describe, message
from ..._files import PathOrFile, atomic_path, is_path, write_all
from .._bytes import ending_of, read_bytes
from . import _backends
from ._arrays import Image, check_channels, check_image, check_size, to_scale, unit_range

__all__ = [
    "get_available_backends",
    "get_backend",
    "imload",
    "imread",
    "imresize",
    "imsave",
    "imwrite",
    "minmax_auto_scale",
    "set_backend",
]


def set_backend(backend: str | None) -> None:
    """Take one backend for all that follows.

    Args:
        backend: "PilBackend", "Cv2Backend", "PngBackend" or "DicomBackend" ("pil", "cv2", "pypng" and "dicom" are the
            same); "" or None: let
            each call choose.

    Raises:
        ValueError: There is no such backend.
        ImportError: Its package is not installed.

    >>> set_backend("PilBackend")
    >>> get_backend()
    'PilBackend'
    >>> set_backend("")
    """
    _backends.choose(backend)


def get_backend() -> str:
    """The name of the backend that is set, or else of the one that was used last ("" before the first use)."""
    return _backends.current()


def get_available_backends() -> list[str]:
    """The names of the backends whose packages are installed."""
    return _backends.available()


def minmax_auto_scale(img: np.ndarray, as_uint16: bool) -> np.ndarray:
    """Stretch the values so that the least is 0 and the greatest 255 (65535).

    Args:
        img: Array of any shape; where all values are the same, they become 255 (65535), and zeros stay zeros.
        as_uint16: Give uint16 up to 65535, else uint8 up to 255.

    Returns:
        Array of img's shape; fractions are cut off.

    >>> minmax_auto_scale(np.array([[-1.0, 0.0, 1.0]]), False).tolist()
    [[0, 127, 255]]
    """
    check_image("minmax_auto_scale", img, dimensions=None)
    if not img.size:
        raise ArgumentError(message("minmax_auto_scale", "img", "an array with elements", describe(img.shape)))
    greatest, kind = (65535, np.dtype(np.uint16)) if as_uint16 else (255, np.dtype(np.uint8))
    return (unit_range("minmax_auto_scale", img) * greatest).astype(kind)


def imread(
    path: PathOrFile,
    grayscale: bool = False,
    size: Sequence[int] | None = None,
    interpolate: str = "bilinear",
    channel_first: bool = False,
    as_uint16: bool = False,
    num_channels: int = -1,
    **kwargs: Any,
) -> np.ndarray:
    """Read an image.

    Args:
        path: Path, or a file open for reading in binary mode, which is read from its start.
        grayscale: Give grey values.
        size: Resize to (width, height).
        interpolate: How to resize, see `imresize`.
        channel_first: Give (channel, height, width).
        as_uint16: Give uint16; 8-bit images are multiplied by 256. Not with Pillow.
        num_channels: 3 or 4: convert to RGB or RGBA; 0 or 1, with `grayscale`: (height, width) or (height, width, 1);
            -1: as the image is.
        kwargs: `return_palette_indices=True` (Pillow alone): the indices of an image with a palette, not its colours.

    Returns:
        uint8 array, or uint16 with `as_uint16`.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no image that the backend can read.
        ImportError: No backend is installed.

    >>> import io
    >>> file = io.BytesIO(b"P5 3 1 255 abc")
    >>> imread(file).tolist()
    [[97, 98, 99]]
    """
    wanted = _backends.Wanted(bool(grayscale), bool(as_uint16), check_channels(num_channels, grayscale))
    shape = None if size is None else check_size("imread", size)
    wanted.palette_indices = bool(kwargs.pop("return_palette_indices", False))
    if kwargs:
        raise ArgumentTypeError(message("imread", next(iter(kwargs)), "there is no such argument"))
    data = read_bytes("imread", path)
    name = repr(os.fspath(path)) if isinstance(path, (str, os.PathLike)) else "the open file"
    img = _backends.read(data, ending_of(path), wanted, name, shape, interpolate)
    return _moved(img, (2, 0, 1)) if channel_first else img


def imsave(
    path: PathOrFile,
    img: Image,
    channel_first: bool = False,
    as_uint16: bool = False,
    auto_scale: bool = True,
    **kwargs: Any,
) -> None:
    """Write an image; the ending of the path says in which format.

    Args:
        path: Path, or a file open for writing whose name has an ending. A file that is there is replaced, once the
            whole image is encoded.
        img: uint8, uint16, or other numbers from 0 to 1; (height, width) or (height, width, channel).
        channel_first: `img` is (channel, height, width).
        as_uint16: Write 16 bits a channel. Not with Pillow.
        auto_scale: Multiply numbers from 0 to 1 by 255 (65535), uint8 with `as_uint16` by 256.
        kwargs: None is known.

    Raises:
        ValueError: The array is no image, or the format cannot hold it.
        OSError: The file cannot be written.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as d:
    ...     imsave(os.path.join(d, "a.png"), np.array([[0.0, 0.5, 1.0]]))
    ...     imread(os.path.join(d, "a.png")).tolist()
    [[0, 127, 255]]
    """
    if kwargs:
        raise ArgumentTypeError(message("imsave", next(iter(kwargs)), "there is no such argument"))
    check_image("imsave", img)
    pixels = to_scale("imsave", _moved(img, (1, 2, 0)) if channel_first else img, as_uint16, auto_scale)
    data = _backends.encode(pixels, ending_of(path), bool(as_uint16), bool(auto_scale))
    _write(path, data)


def imresize(
    img: Image, size: Sequence[int], interpolate: str = "bilinear", channel_first: bool = False, **kwargs: Any
) -> np.ndarray:
    """Resize an image.

    Args:
        img: (height, width) or (height, width, channel).
        size: (width, height) of the result.
        interpolate: "nearest", "bilinear", "bicubic" or "lanczos"; Pillow has "box" and "hamming" too. Pillow filters
            when it shrinks, OpenCV does not, so their results differ.
        channel_first: Images are (channel, height, width).
        kwargs: None is known.

    Returns:
        Array of img's type if that is uint8 or uint16, else float32.

    >>> imresize(np.uint8([[0, 0, 100, 100]]), (2, 1), interpolate="nearest").tolist()
    [[0, 100]]
    """
    if kwargs:
        raise ArgumentTypeError(message("imresize", next(iter(kwargs)), "there is no such argument"))
    check_image("imresize", img)
    pixels = img if img.dtype in (np.uint8, np.uint16) else np.asarray(img, np.float32)
    pixels = _moved(pixels, (1, 2, 0)) if channel_first else pixels
    resized = _backends.resize("imresize", pixels, check_size("imresize", size), interpolate)
    return _moved(resized, (2, 0, 1)) if channel_first else resized


imload = imread
imwrite = imsave


def _moved(img: np.ndarray, axes: tuple[int, int, int]) -> np.ndarray:
    return img.transpose(axes) if img.ndim == 3 else img


def _write(path: PathOrFile, data: bytes) -> None:
    if not is_path(path):
        write_all(path, data)
        return
    with atomic_path(path) as temporary, open(temporary, "wb") as f:  # type: ignore[arg-type]
        f.write(data)
