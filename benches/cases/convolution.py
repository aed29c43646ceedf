"""Convolutions as in the stages of a ResNet, batch 16: forward, and the gradients of image and weight.

nnrs and NNabla keep NNabla's layout (channels first); torch runs channels_last, its fastest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from .case import Case, Kit, Step, nabla_step, torch_step

BATCH = 16


@dataclass(frozen=True)
class Layer:
    """A square convolution that keeps the size, or divides it by its stride."""

    maps: tuple[int, int]  # in, out
    side: int
    kernel: int
    stride: int
    limits: tuple[float, float]  # most of torch's time, forward and backward

    def arrays(self) -> list[np.ndarray]:
        rng, (inputs, outputs) = np.random.default_rng(0), self.maps
        shapes = [(BATCH, inputs, self.side, self.side), (outputs, inputs, self.kernel, self.kernel)]
        return [rng.normal(0, 0.1, s).astype(np.float32) for s in shapes]

    def work(self, backward: bool) -> dict[str, float]:
        """Operations and bytes: backward makes two arrays of what forward makes one of."""
        (i, o), end = self.maps, self.side // self.stride
        images, weights = BATCH * (i * self.side**2 + o * end**2), i * o * self.kernel**2
        passes = 2 if backward else 1
        return {"flops": passes * 2 * BATCH * weights * end**2, "moved": passes * 4 * (images + weights)}


LAYERS = (
    Layer((64, 64), 56, 3, 1, (0.55, 0.65)),
    Layer((128, 128), 28, 3, 1, (0.5, 0.65)),
    Layer((256, 256), 14, 3, 1, (0.6, 0.65)),
    Layer((512, 512), 7, 3, 1, (0.65, 0.65)),
    Layer((256, 64), 56, 1, 1, (0.9, 0.9)),
    Layer((512, 512), 14, 1, 1, (0.9, 0.9)),
    Layer((3, 64), 112, 7, 2, (0.9, 0.9)),
)


def nabla(layer: Layer, backward: bool, kit: Kit) -> Step:
    arrays, pad = layer.arrays(), layer.kernel // 2
    x, w = (kit.nn.Variable(a.shape, need_grad=backward) for a in arrays)
    x.d, w.d = arrays
    y = kit.F.convolution(x, w, pad=(pad, pad), stride=(layer.stride, layer.stride))
    return nabla_step(y, (x, w), backward)


def torch(layer: Layer, backward: bool) -> Step:
    import torch
    from torch.nn.functional import conv2d

    tensors = [torch.from_numpy(a).to(memory_format=torch.channels_last) for a in layer.arrays()]
    x, w = (t.requires_grad_(backward) for t in tensors)

    run = partial(conv2d, x, w, padding=layer.kernel // 2, stride=layer.stride)
    return torch_step(run, (x, w), backward)


def case(layer: Layer, backward: bool) -> Case:
    (i, o), k, direction = layer.maps, layer.kernel, "backward" if backward else "forward"
    channels = f"{o} channels" if i == o else f"{i} to {o} channels"
    stride = f", stride {layer.stride}" if layer.stride > 1 else ""
    title = f"{k}x{k} convolution{stride}, {channels}, {layer.side}x{layer.side}, batch {BATCH}: {direction}"
    name = f"conv_{o}_{direction}" if k == 3 else f"conv{k}_{i}_{o}_{direction}"
    steps = partial(nabla, layer, backward), partial(torch, layer, backward)
    return Case(name, title, *steps, {"torch": layer.limits[backward]}, **layer.work(backward))


CASES = [case(layer, backward) for layer in LAYERS for backward in (False, True)]
