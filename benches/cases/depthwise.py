"""Depthwise 3x3 convolutions as in mobile networks, with one and two maps a channel; deformable ones beside NNabla.

nnrs and NNabla keep NNabla's layout (channels first), torch too: channels last is slower there.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .case import Case, Kit, Step, nabla_step, torch_step

BATCH = 16
# Channels, height and width, stride, maps a channel.
LAYERS = ((32, 56, 1, 1), (128, 28, 2, 1), (256, 14, 1, 1), (32, 28, 1, 2))


def arrays(channels: int, side: int, maps: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(BATCH, channels, side, side), (channels * maps, 3, 3)]
    return [rng.normal(0, 0.1, s).astype(np.float32) for s in shapes]


def nabla(channels: int, side: int, stride: int, maps: int, backward: bool, kit: Kit) -> Step:
    given = arrays(channels, side, maps)
    x, w = (kit.nn.Variable(a.shape, need_grad=backward) for a in given)
    x.d, w.d = given
    y = kit.F.depthwise_convolution(x, w, pad=(1, 1), stride=(stride, stride), multiplier=maps)
    return nabla_step(y, (x, w), backward)


def torch(channels: int, side: int, stride: int, maps: int, backward: bool) -> Step:
    import torch
    from torch.nn.functional import conv2d

    x, w = (torch.from_numpy(a).requires_grad_(backward) for a in arrays(channels, side, maps))
    w_first = w.detach().reshape(-1, 1, 3, 3).requires_grad_(backward)

    run = partial(conv2d, x, w_first, padding=1, stride=stride, groups=channels)
    return torch_step(run, (x, w_first), backward)


def deformable(backward: bool, kit: Kit) -> Step:
    rng = np.random.default_rng(0)
    shapes = [(4, 32, 28, 28), (32, 32, 3, 3), (4, 18, 28, 28), (4, 9, 28, 28)]
    x, w, offset, mask = (kit.nn.Variable(s, need_grad=backward) for s in shapes)
    for v in (x, w, offset, mask):
        v.d = rng.normal(0, 0.5, v.shape)
    y = kit.F.deformable_convolution(x, w, offset, mask, pad=(1, 1))
    return nabla_step(y, (x, w, offset, mask), backward)


def case(layer: tuple[int, int, int, int], backward: bool) -> Case:
    (channels, side, stride, maps), direction = layer, "backward" if backward else "forward"
    more = f"{f', stride {stride}' if stride > 1 else ''}{f', {maps} maps a channel' if maps > 1 else ''}"
    title = f"3x3 depthwise convolution, {channels} channels, {side}x{side}{more}, batch {BATCH}: {direction}"
    name = f"depthwise_{channels}_{side}{f'x{maps}' if maps > 1 else ''}_{direction}"
    return Case(name, title, partial(nabla, *layer, backward), partial(torch, *layer, backward), {"torch": 0.9})


CASES = [
    *(case(layer, backward) for layer in LAYERS for backward in (False, True)),
    *(
        Case(
            f"deformable_{direction}",
            f"3x3 deformable convolution with a mask, 32 channels, 28x28, batch 4: {direction}",
            partial(deformable, backward),
            None,
            {"nnabla": 1.0},
        )
        for direction, backward in (("forward", False), ("backward", True))
    ),
]
