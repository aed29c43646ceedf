"""Monitors of images, and images side by side: `MonitorImage`, `MonitorImageTile`, `tile_images` of `nnrs.monitor`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _recorders
from ._core import NdArray, Variable
from ._errors import ShapeError, check_callable, check_integer, check_type, message
from ._monitor_files import check_monitor_name, file_name, folder_of, make_folder
from .logger import logger


class MonitorImage:
    """Writes images of a batch to `<name>/<index>-<number>.png` in the monitor's folder: at index 0, then in intervals.

    Args:
        name: Name in the log and of the folder, where a "-" is in each space's place.
        monitor: The folder.
        interval: Indices from one time to the next.
        verbose: Whether to log.
        num_images: How many images of a batch.
        normalize_method: Makes values from 0 to 1 of a batch (a NumPy array); by default its least becomes 0 and its
            greatest 1.

    Needs one of the packages that `nnrs.utils.image_utils` writes with.
    """

    def __init__(
        self,
        name: str,
        monitor: Any,
        interval: int = 1000,
        verbose: bool = True,
        num_images: int = 16,
        normalize_method: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        here = type(self).__name__
        self.name = check_monitor_name(here, name)
        self.interval = check_integer(here, "interval", interval, 1)
        self.verbose = verbose
        self.num_images = check_integer(here, "num_images", num_images, 0)
        if normalize_method is not None:
            check_callable(here, "normalize_method", normalize_method)
        self.normalize_method = normalize_method or self.default_normalize_method
        self.save_dir = os.path.join(folder_of(here, monitor), file_name(name))
        self._monitor = monitor
        make_folder(here, self.save_dir)

    def default_normalize_method(self, x: np.ndarray) -> np.ndarray:
        """`x` from 0 (its least finite value) to 1 (its greatest); zeros if all are the same. A NaN stays."""
        finite = x[np.isfinite(x)]
        low, high = (finite.min(), finite.max()) if finite.size else (0, 0)
        if low == high:
            return np.zeros(x.shape, np.result_type(x, np.float32))
        scaled: np.ndarray = (x - low) / (high - low) if x.dtype.kind == "f" else (x - float(low)) / (float(high) - low)
        return scaled.clip(0, 1)

    def add(self, index: int, var: Any) -> None:
        """Write images of a batch, if it is time.

        Args:
            index: Number of the iteration.
            var: Variable, NdArray or NumPy array of shape (.., C, H, W). Of more than 3 channels the first 3 are
                taken; to 2, a third of ones is added.

        Raises:
            ValueError: If it has less than 3 axes.
            ImportError: If no package that writes images is installed.
            OSError: If a file cannot be written.
        """
        here = f"{type(self).__name__}.add"
        index = check_integer(here, "index", index)
        if index and (index + 1) % self.interval:
            return
        paths = self._write(index, self._images(here, var))
        if self.verbose:
            self._log(index)
        for path in paths:
            for recorder in _recorders.of(self._monitor):
                recorder.image(self.name, index, path)

    def _images(self, here: str, var: Any) -> np.ndarray:
        """The images to write, (B, C, H, W) with 1 or 3 channels."""
        data = np.array(_array(here, var))
        if data.ndim < 3:
            raise ShapeError(message(here, "var", "an array of shape (.., C, H, W)", f"shape {data.shape}"))
        channels = data.shape[-3]
        data = data.reshape(-1, *data.shape[-3:])[: self.num_images]
        if data.size == 0:
            return data[:0, :1]
        data = np.asarray(self.normalize_method(data))
        if channels > 3:
            return data[:, :3]
        if channels == 2:
            return np.concatenate([data, np.ones((len(data), 1, *data.shape[-2:]))], axis=1)
        return data

    def _write(self, index: int, images: np.ndarray) -> list[str]:
        paths = [os.path.join(self.save_dir, f"{index:06d}-{i:03d}.png") for i in range(len(images))]
        for path, image in zip(paths, images, strict=True):
            _save_image(path, image.transpose(1, 2, 0) if len(image) > 1 else image[0])
        return paths

    def _log(self, index: int) -> None:
        pattern = os.path.join(self.save_dir, f"{index:06d}-*.png")
        logger.info("iter=%s {%s} are written to %s.", index, self.name, pattern)


class MonitorImageTile(MonitorImage):
    """Writes images of a batch as one, side by side, to `<name>/<index>.png`; else as `MonitorImage`."""

    def _write(self, index: int, images: np.ndarray) -> list[str]:
        if len(images) == 0:
            return []
        path = self._path(index)
        _save_image(path, tile_images(images))
        return [path]

    def _path(self, index: int) -> str:
        return os.path.join(self.save_dir, f"{index:06d}.png")

    def _log(self, index: int) -> None:
        logger.info("iter=%s {%s} is written to %s.", index, self.name, self._path(index))


def tile_images(data: np.ndarray, padsize: int = 1, padval: float = 0) -> np.ndarray:
    """Images side by side in a square of them, row by row.

    Args:
        data: Array of shape (B, C, H, W).
        padsize: Pixels right of and below each image.
        padval: Value of these pixels, and of the images that a square lacks.

    Returns:
        Array of shape (rows, columns, C), or (rows, columns) for one channel.

    Raises:
        ValueError: If `data` has another number of axes.

    >>> print(tile_images(np.ones((3, 1, 1, 2), int)))
    [[1 1 0 1 1 0]
     [0 0 0 0 0 0]
     [1 1 0 0 0 0]
     [0 0 0 0 0 0]]
    """
    data = np.asarray(data)
    if data.ndim != 4:
        raise ShapeError(message("tile_images", "data", "an array of shape (B, C, H, W)", f"shape {data.shape}"))
    pad = check_integer("tile_images", "padsize", padsize, 0)
    images, channels, height, width = data.shape
    side = int(np.ceil(np.sqrt(images)))
    tiles = np.full((side, height + pad, side, width + pad, channels), padval, data.dtype)
    for i, image in enumerate(data):
        tiles[i // side, :height, i % side, :width] = image.transpose(1, 2, 0)
    tiled = tiles.reshape(side * (height + pad), side * (width + pad), channels)
    return tiled[:, :, 0] if channels == 1 else tiled


def _array(function: str, var: Any) -> np.ndarray:
    if isinstance(var, Variable):
        return var.d
    if isinstance(var, NdArray):
        return var.data
    check_type(function, "var", var, np.ndarray, "a Variable, NdArray or NumPy array")
    return var  # type: ignore[no-any-return]


def _save_image(path: str, image: np.ndarray) -> None:
    from .utils.image_utils import imsave

    imsave(path, image)
