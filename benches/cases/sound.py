"""Convolutions along one axis, of one sample, as in networks over sound: forward, and both gradients."""

from __future__ import annotations

from functools import partial

import numpy as np

from .case import Case, Kit, Step, nabla_step, torch_step

# Channels in and out, points, taps, their distance.
LAYERS = ((64, 64, 16000, 3, 1), (64, 64, 16000, 3, 8), (256, 256, 2048, 3, 1), (1, 16, 65536, 255, 1))


def arrays(inputs: int, outputs: int, points: int, taps: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(1, inputs, points), (outputs, inputs, taps)]
    return [rng.normal(0, 0.1, s).astype(np.float32) for s in shapes]


def nabla(inputs: int, outputs: int, points: int, taps: int, apart: int, backward: bool, kit: Kit) -> Step:
    given = arrays(inputs, outputs, points, taps)
    x, w = (kit.nn.Variable(a.shape, need_grad=backward) for a in given)
    x.d, w.d = given
    y = kit.F.convolution(x, w, pad=(apart * (taps // 2),), dilation=(apart,))
    return nabla_step(y, (x, w), backward)


def torch(inputs: int, outputs: int, points: int, taps: int, apart: int, backward: bool) -> Step:
    import torch
    from torch.nn.functional import conv1d

    x, w = (torch.from_numpy(a).requires_grad_(backward) for a in arrays(inputs, outputs, points, taps))
    run = partial(conv1d, x, w, padding=apart * (taps // 2), dilation=apart)
    return torch_step(run, (x, w), backward)


def case(inputs: int, outputs: int, points: int, taps: int, apart: int, backward: bool) -> Case:
    direction = "backward" if backward else "forward"
    distance = f", {apart} apart" if apart > 1 else ""
    title = (
        f"1-D convolution, {taps} taps{distance}, {inputs} to {outputs} channels, {points} points, batch 1: {direction}"
    )
    name = f"conv1d_{inputs}_{outputs}_{points}_{taps}_{apart}_{direction}"
    layer = (inputs, outputs, points, taps, apart, backward)
    images, weights, passes = points * (inputs + outputs), inputs * outputs * taps, 2 if backward else 1
    cost = {"flops": passes * 2 * points * weights, "moved": passes * 4 * (images + weights)}
    return Case(name, title, partial(nabla, *layer), partial(torch, *layer), {"torch": 0.9}, **cost)


CASES = [case(*layer, backward) for layer in LAYERS for backward in (False, True)]
