"""A batch of images copied in: as large as those of an ImageNet step, from an array that was just made."""

from __future__ import annotations

import numpy as np

from .case import Case, Kit, Step

SHAPE = (64, 3, 224, 224)


def batch() -> np.ndarray:
    return np.random.default_rng(0).uniform(0, 1, SHAPE).astype(np.float32)


def nabla_copy(kit: Kit) -> Step:
    x, values = kit.nn.Variable(SHAPE), batch()

    def step():
        x.d = values

    return step


def torch_copy() -> Step:
    import torch

    x, values = torch.empty(SHAPE), batch()

    def step():
        x.copy_(torch.from_numpy(values))

    return step


TITLE = "copying a batch of 64 images, 38.5 MB, in"
CASES = [Case("batch.copy", TITLE, nabla_copy, torch_copy, {"torch": 0.75}, moved=2 * 4 * np.prod(SHAPE))]
