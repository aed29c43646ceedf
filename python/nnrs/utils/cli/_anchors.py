"""Boxes of objects in images: their overlap, typical sizes (anchors), and where they go in a grid of cells."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..._errors import FormatError
from ...logger import logger


class ObjectRect:
    """A box, by its sides in parts of the image's width and height.

    Args:
        LRTB: Left, top, right, bottom.
        XYWH: Middle, width and height.

    >>> ObjectRect(XYWH=(0.5, 0.5, 1, 1)).iou(ObjectRect(XYWH=(0.5, 0.5, 0.5, 1)))
    0.5
    """

    def __init__(self, LRTB: Any = None, XYWH: Any = None) -> None:
        if LRTB is not None:
            self.rect = np.array(LRTB, float)
        elif XYWH is not None:
            x, y, w, h = map(float, XYWH)
            self.rect = np.array([x - w / 2, y - h / 2, x + w / 2, y + h / 2])
        else:
            self.rect = np.zeros(4)

    def clip(self) -> ObjectRect:
        """The part within the image."""
        return ObjectRect(LRTB=self.rect.clip(0, 1))

    def left(self) -> float:
        """The left side."""
        return float(self.rect[0])

    def top(self) -> float:
        """The upper side."""
        return float(self.rect[1])

    def right(self) -> float:
        """The right side."""
        return float(self.rect[2])

    def bottom(self) -> float:
        """The lower side."""
        return float(self.rect[3])

    def width(self) -> float:
        """The width."""
        return max(self.right() - self.left(), 0.0)

    def height(self) -> float:
        """The height."""
        return max(self.bottom() - self.top(), 0.0)

    def centerx(self) -> float:
        """The middle between left and right."""
        return (self.left() + self.right()) / 2

    def centery(self) -> float:
        """The middle between top and bottom."""
        return (self.top() + self.bottom()) / 2

    def center(self) -> tuple[float, float]:
        """The middle."""
        return self.centerx(), self.centery()

    def area(self) -> float:
        """Width times height."""
        return self.width() * self.height()

    def overlap(self, rect2: ObjectRect) -> float:
        """The area that both have."""
        low, high = np.maximum(self.rect[:2], rect2.rect[:2]), np.minimum(self.rect[2:], rect2.rect[2:])
        return ObjectRect(LRTB=[*low, *high]).area()

    def iou(self, rect2: ObjectRect) -> float:
        """The area that both have over the area that either has."""
        both = self.overlap(rect2)
        either = self.area() + rect2.area() - both
        return both / either if either > 0 else 0.0


def load_label(file_name: str) -> list[list[float]]:
    """The objects in a text file, a line each of class, middle, width and height; none, with a warning, without it.

    Raises:
        ValueError: If a line has other things than numbers.
    """
    if not os.path.exists(file_name):
        logger.warning("there is no file of labels %s", file_name)
        return []
    try:
        with open(file_name, encoding="utf-8") as f:
            rows = [[float(s) for s in line.split()] for line in f]
    except ValueError as error:
        raise FormatError(f"{file_name}: expected lines of a class, x, y, width and height: {error}") from error
    return [row for row in rows if len(row) == 5]


def get_anchors(boxes: np.ndarray, num_anchor: int) -> np.ndarray:
    """Typical sizes of boxes, the smallest area first: means of groups, by k-means.

    Args:
        boxes: Sizes of shape (boxes, 2).
        num_anchor: How many; fewer than boxes.
    """
    groups = np.random.RandomState(0).randint(num_anchor, size=len(boxes))
    means = np.zeros((num_anchor, 2))
    for _ in range(1000):
        for i in range(num_anchor):
            members = boxes[groups == i]
            means[i] = members.mean(axis=0) if len(members) else means[i]
        nearest = ((boxes - means[:, None]) ** 2).sum(axis=2).argmin(axis=0)
        if np.array_equal(nearest, groups):
            break
        groups = nearest
    return means[means.prod(axis=1).argsort()]


def warped(label: list[float], before: tuple[int, int], after: tuple[int, int], mode: str) -> list[float]:
    """Where an object is once its image was cut or padded.

    Args:
        label: Class, x, y, width, height.
        before: (width, height) of the image.
        after: That of the image that is written.
        mode: 'trimming', 'padding' or 'resize'.
    """
    if before == after or mode == "resize":
        return label
    form = before[0] / before[1] * after[1] / after[0]  # 1 where the forms are the same, more for a wide image
    scale = (max(form, 1.0), max(1 / form, 1.0)) if mode == "trimming" else (min(form, 1.0), min(1 / form, 1.0))
    kind, x, y, w, h = label
    return [kind, (x - 0.5) * scale[0] + 0.5, (y - 0.5) * scale[1] + 0.5, w * scale[0], h * scale[1]]


def on_grid(labels: list[list[float]], grid: tuple[int, int], anchors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The objects in the cells of a grid.

    Args:
        labels: Class, x, y, width, height of each.
        grid: Columns and rows.
        anchors: Typical sizes.

    Returns:
        Classes of shape (anchors, rows, columns), -1 where there is none, and regions with 4 numbers for each: the
        object's middle in its cell, the logarithms of its size in cells.
    """
    columns, rows = grid
    classes = np.full((len(anchors), rows, columns), -1)
    regions = np.zeros((len(anchors), rows, columns, 4))
    for kind, *box in labels:
        rect = ObjectRect(XYWH=box).clip()
        if rect.area() <= 0:
            continue
        gx, gy = min(int(rect.centerx() * columns), columns - 1), min(int(rect.centery() * rows), rows - 1)
        middle = ((gx + 0.5) / columns, (gy + 0.5) / rows)
        best = int(np.argmax([rect.iou(ObjectRect(XYWH=(*middle, *anchor))) for anchor in anchors]))
        classes[best, gy, gx] = int(kind)
        place = ((rect.centerx() - middle[0]) * columns + 0.5, (rect.centery() - middle[1]) * rows + 0.5)
        regions[best, gy, gx] = [*place, np.log(rect.width() * columns), np.log(rect.height() * rows)]
    return classes, regions
