"""Images for detectors, and what detectors find in them: letter boxes, coordinates, drawing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._errors import ShapeError, check_integer, check_type, message
from ...logger import logger
from ...utils.image_utils import imresize
from .draw_utils import DrawBoundingBoxes

__all__ = ["LetterBoxTransform", "apply_inverse_letterbox_coordinate_transform", "draw_bounding_boxes", "letterbox"]

_GREY = 127


def draw_bounding_boxes(
    img: np.ndarray,
    bboxes: np.ndarray,
    names: Sequence[str],
    colors: Sequence[Sequence[int]] | None = None,
    thresh: float = 0.5,
) -> np.ndarray:
    """Draw boxes with names and probabilities.

    Args:
        img: uint8 image (height, width, 3).
        bboxes: Boxes (n, 5 + classes): centre x and y, width and height in pixels, whether there is an object, and the
            probability of each class.
        names: Names of the classes.
        colors: A colour for each class; by default random ones, always the same.
        thresh: Classes of more than this probability are named; a box without any is not drawn.

    Returns:
        Another image.
    """
    if colors is None:
        rng = np.random.RandomState(1223)
        colors = [tuple(c) for c in rng.randint(0, 256, (len(names), 3)).astype(np.uint8).tolist()]
    drawing = DrawBoundingBoxes(img, colors)
    for box in bboxes:
        found = np.where(box[5:] > thresh)[0]
        if len(found):
            label = ", ".join(f"{names[i]}: {box[5 + i] * 100:.2f}%" for i in found)
            logger.info("draw_bounding_boxes: %s", label)
            drawing.draw(_corners(box[:4], img.shape), int(found[0]), label)
    return drawing.get()


def _corners(box: np.ndarray, shape: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a box, as far as it is in the image."""
    x, y, w, h = box
    across = [int(np.clip(v, 0, shape[1])) for v in (x - w / 2.0, x + w / 2.0)]
    down = [int(np.clip(v, 0, shape[0])) for v in (y - h / 2.0, y + h / 2.0)]
    return across[0], down[0], across[1], down[1]


def apply_inverse_letterbox_coordinate_transform(
    bboxes: np.ndarray, im_w: int, im_h: int, letterbox_w: float, letterbox_h: float
) -> np.ndarray:
    """Boxes in an image from those in its letter box.

    Args:
        bboxes: (n, 4 or more): centre x and y, width and height, as parts of the letter box.
        im_w: Width of the image in pixels.
        im_h: Height of the image in pixels.
        letterbox_w: What part of the letter box's width the image has.
        letterbox_h: What part of its height.

    Returns:
        The same boxes, in pixels of the image.

    >>> apply_inverse_letterbox_coordinate_transform(np.array([[0.5, 0.5, 0.2, 0.25]]), 100, 50, 1.0, 0.5).tolist()
    [[50.0, 25.0, 20.0, 25.0]]
    """
    found = bboxes.copy()
    found[:, 0] = (bboxes[:, 0] - (1 - letterbox_w) / 2.0) / letterbox_w * im_w
    found[:, 1] = (bboxes[:, 1] - (1 - letterbox_h) / 2.0) / letterbox_h * im_h
    found[:, 2] = bboxes[:, 2] * im_w / letterbox_w
    found[:, 3] = bboxes[:, 3] * im_h / letterbox_h
    return found


def letterbox(img_orig: np.ndarray, h: int, w: int) -> tuple[np.ndarray, int, int]:
    """An image in a grey one of another size: as large as fits, in the middle.

    Args:
        img_orig: uint8 image (height, width, 3).
        h: Height of the result.
        w: Width of the result.

    Returns:
        The image, and width and height that `img_orig` has in it.
    """
    check_type("letterbox", "img_orig", img_orig, np.ndarray, "a NumPy array")
    if img_orig.dtype != np.uint8 or img_orig.ndim != 3 or img_orig.shape[2] != 3 or not img_orig.size:
        expected = "a uint8 image (height, width, 3)"
        raise ShapeError(message("letterbox", "img_orig", expected, f"{img_orig.dtype} {img_orig.shape}"))
    h, w = check_integer("letterbox", "h", h, 1), check_integer("letterbox", "w", w, 1)
    im_h, im_w = img_orig.shape[:2]
    if w / im_w < h / im_h:
        new_w, new_h = w, max(1, int(im_h * w / im_w))
    else:
        new_w, new_h = max(1, int(im_w * h / im_h)), h
    img = np.full((h, w, 3), _GREY, np.uint8)
    x, y = (w - new_w) // 2, (h - new_h) // 2
    img[y : y + new_h, x : x + new_w] = imresize(img_orig, (new_w, new_h))
    return img, new_w, new_h


class LetterBoxTransform:
    """An image in a letter box, and the way back for coordinates.

    Args:
        image: uint8 image (height, width, 3).
        height: Height of the letter box.
        width: Width of the letter box.

    Attributes:
        image: The letter box.
        new_w: Width of the image in it.
        new_h: Height of the image in it.
    """

    def __init__(self, image: np.ndarray, height: int, width: int) -> None:
        self.height, self.width = height, width
        self.image, self.new_w, self.new_h = letterbox(image, height, width)
        self.im_h, self.im_w = image.shape[:2]

    def inverse_coordinate_transform(self, coords: np.ndarray) -> np.ndarray:
        """Boxes in pixels of the image from those that are parts of the letter box."""
        return apply_inverse_letterbox_coordinate_transform(
            coords, self.im_w, self.im_h, self.new_w / self.width, self.new_h / self.height
        )
