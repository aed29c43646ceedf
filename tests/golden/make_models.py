"""Asks NNabla's `models` what they do with a network's file, and writes models.json for the tests.

python tests/golden/make_models.py     # with nnabla 1.39
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import nnabla.models.imagenet as imagenet  # noqa: E402
import nnabla.models.imagenet.base as base  # noqa: E402
from nnabla.models.object_detection import utils as detection  # noqa: E402
from nnabla.models.semantic_segmentation import image_preprocess as preprocess  # noqa: E402
from nnabla.models.semantic_segmentation import utils as segmentation  # noqa: E402
from nnabla.utils.image_utils import set_backend  # noqa: E402

import recorded_models  # noqa: E402


def prepare(notes: list) -> None:
    """Let files be noted."""
    base.ImageNetBase._load_nnp = lambda self, name, url: notes.append([name, url])


def numbers() -> dict:
    """What the functions about images give for an image of known numbers."""
    set_backend("PilBackend")
    image = (np.arange(6 * 9 * 3) * 37 % 256).astype(np.uint8).reshape(6, 9, 3)
    box = detection.LetterBoxTransform(image, 8, 10)
    boxes = np.array([[0.5, 0.5, 0.2, 0.3, 0.9], [0.1, 0.7, 0.4, 0.1, 0.2]])
    return {
        "letterbox": [box.image.tolist(), box.new_w, box.new_h],
        "tall": [a if isinstance(a, int) else a.tolist() for a in detection.letterbox(image, 9, 4)],
        "inverse": box.inverse_coordinate_transform(boxes).tolist(),
        "pre": segmentation.pre_process_image(image, 8, 10).tolist(),
        "post": segmentation.post_process_image(
            np.arange(80, dtype=np.float32).reshape(8, 10), image, (8, 10)
        ).tolist(),
        "label": preprocess.resize(image[..., :1], (4, 4)).tolist(),
        "colors": segmentation.get_color().tolist(),
    }


if __name__ == "__main__":
    for name in {n for n in dir(imagenet) if n[0].islower()}:
        module = getattr(imagenet, name)
        if hasattr(module, "NnpNetworkPass"):
            module.NnpNetworkPass = recorded_models.Pass
    found = {"imagenet": recorded_models.imagenet("nnabla", prepare), "numbers": numbers()}
    Path(__file__).with_name("models.json").write_text(json.dumps(found) + "\n")
