"""Images for networks that segment, and what those make of them."""

from __future__ import annotations

import os

import numpy as np

from ..._errors import StateError, message
from ...utils.image_utils import imresize, imsave
from . import image_preprocess

__all__ = ["ProcessImage", "get_color", "post_process_image", "pre_process_image", "save_image"]

_LEVELS = (0, 128, 64, 192)


def get_color() -> np.ndarray:
    """A colour for each class of VOC: (23, 3), the first for what is none of them, the last for its borders.

    >>> get_color()[1].tolist()
    [128, 0, 0]
    """
    bits = [[_LEVELS[(i >> axis & 1) + 2 * (i >> axis + 3 & 1)] for axis in range(3)] for i in range(21)]
    bits[5][0] = 120  # as NNabla has it
    return np.array([*bits, [224, 224, 192], [0, 0, 0]])


def pre_process_image(image: np.ndarray, target_h: int, target_w: int) -> np.ndarray:
    """An image (height, width, 3), values from 0 to 255, as a batch (1, 3, target_h, target_w), values from -1 to 1."""
    fitted = image_preprocess.preprocess_image_and_label(image, target_w, target_h)
    return fitted.transpose(2, 0, 1)[None]


def post_process_image(output: np.ndarray, image: np.ndarray, target_size: tuple[int, int]) -> np.ndarray:
    """Labels of an image's own size.

    Args:
        output: Labels (height, width) that the network gave.
        image: The image that it was given, before `pre_process_image`.
        target_size: (height, width) that it was brought to.
    """
    ratio = min(np.divide(target_size, image.shape[:2]))
    height, width = (int(n * ratio) for n in image.shape[:2])
    return imresize(output[:height, :width], (image.shape[1], image.shape[0]), interpolate="nearest")


def save_image(image_path: str | os.PathLike[str], label: np.ndarray, color_map: np.ndarray | None = None) -> None:
    """Write labels (height, width) as an image in colours, made as bright as it can be."""
    colors = get_color() if color_map is None else np.asarray(color_map)
    picture = colors[label.astype(np.int64)]
    imsave(image_path, picture / max(picture.max(), 1))


class ProcessImage:
    """An image on its way through a network.

    Args:
        image: (height, width, 3), values from 0 to 255.
        target_h: Height that the network wants.
        target_w: Width that it wants.
    """

    def __init__(self, image: np.ndarray, target_h: int, target_w: int) -> None:
        self.image = image
        self.target_size = (target_h, target_w)
        self.target_h, self.target_w = target_h, target_w
        self.post_proc: np.ndarray | None = None

    def pre_process(self) -> np.ndarray:
        """The image as the network's batch of one; see `pre_process_image`."""
        return pre_process_image(self.image, self.target_h, self.target_w)

    def post_process(self, output: np.ndarray) -> np.ndarray:
        """Labels of the image's size from those that the network gave."""
        self.post_proc = post_process_image(output, self.image, self.target_size)
        return self.post_proc

    def save_segmentation_image(self, path: str | os.PathLike[str], color_map: np.ndarray | None = None) -> None:
        """Write the labels that `post_process` made as an image in colours."""
        if self.post_proc is None:
            raise StateError(message("save_segmentation_image", None, "post_process comes before"))
        save_image(path, self.post_proc, color_map)
