"""Boxes with labels, drawn into images by OpenCV or Pillow."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._errors import MissingPackageError, ShapeError, check_type, message

__all__ = ["DrawBoundingBoxes"]

Box = tuple[int, int, int, int]
Color = Sequence[int]


class DrawBoundingBoxes:
    """Draws into a copy of an image: by OpenCV where it is installed, else by Pillow.

    Args:
        img: uint8 image (height, width, 3).
        colors: A colour (red, green, blue) for each class.

    >>> draw = DrawBoundingBoxes(np.zeros((40, 60, 3), np.uint8), [(255, 0, 0)])
    >>> draw.draw((10, 20, 30, 35), 0, "cat")
    >>> draw.get()[20, 12].tolist()
    [255, 0, 0]
    """

    def __init__(self, img: np.ndarray, colors: Sequence[Color]) -> None:
        check_type("DrawBoundingBoxes", "img", img, np.ndarray, "a NumPy array")
        if img.ndim != 3 or img.dtype != np.uint8:
            expected = "a uint8 image (height, width, 3)"
            raise ShapeError(message("DrawBoundingBoxes", "img", expected, f"{img.dtype} {img.shape}"))
        self.colors = colors
        self._canvas: Any = (_OpenCV if importlib.util.find_spec("cv2") is not None else _Pillow)(img)

    def draw(self, bbox: Box, det_ind: int, label: str) -> None:
        """Draw a box and its label.

        Args:
            bbox: Left, top, right and bottom, in pixels.
            det_ind: The class, which has the colour.
            label: Text beside the box.
        """
        left, top = bbox[:2]
        color = tuple(int(c) for c in self.colors[det_ind])
        self._canvas.draw(bbox, color, label, (left, top - 15 if top > 30 else top + 15))

    def get(self) -> np.ndarray:
        """The image with what was drawn."""
        found: np.ndarray = self._canvas.get()
        return found


class _OpenCV:
    def __init__(self, img: np.ndarray) -> None:
        self.img = np.ascontiguousarray(img.copy())

    def draw(self, bbox: Box, color: Color, label: str, at: tuple[int, int]) -> None:
        import cv2

        cv2.rectangle(self.img, bbox[:2], bbox[2:], color, 2)
        cv2.putText(self.img, label, at, cv2.FONT_HERSHEY_SIMPLEX, 0.5, color, 2)

    def get(self) -> np.ndarray:
        return self.img


class _Pillow:
    def __init__(self, img: np.ndarray) -> None:
        try:
            from PIL import Image
        except ImportError as error:
            expected = "drawing needs the package Pillow (or opencv-python-headless)"
            hint = "pip install 'nnrs[image]'"
            raise MissingPackageError(message("DrawBoundingBoxes", None, expected, hint=hint)) from error
        self.img = Image.fromarray(img)

    def draw(self, bbox: Box, color: Color, label: str, at: tuple[int, int]) -> None:
        from PIL import ImageDraw

        pen = ImageDraw.Draw(self.img)
        pen.rectangle(bbox, outline=tuple(color))
        pen.text(at, label, fill=tuple(color))

    def get(self) -> np.ndarray:
        return np.array(self.img)
