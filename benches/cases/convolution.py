"""3x3 convolutions as in the stages of a ResNet, batch 16: forward, and the gradients of image and weight.

nnrs and NNabla keep NNabla's layout (channels first); torch runs channels_last, its fastest.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np

from .case import Case, Kit, Step

BATCH = 16
STAGES = ((64, 56), (128, 28), (256, 14), (512, 7))  # channels, height and width


def arrays(channels: int, side: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(BATCH, channels, side, side), (channels, channels, 3, 3)]
    return [rng.normal(0, 0.1, s).astype(np.float32) for s in shapes]


def nabla_graph(kit: Kit, channels: int, side: int, need_grad: bool):
    x, w = (kit.nn.Variable(a.shape, need_grad=need_grad) for a in arrays(channels, side))
    x.d, w.d = arrays(channels, side)
    return x, w, kit.F.convolution(x, w, pad=(1, 1))


def torch_leaves(channels: int, side: int, need_grad: bool):
    import torch

    tensors = [torch.from_numpy(a).to(memory_format=torch.channels_last) for a in arrays(channels, side)]
    return [t.requires_grad_(need_grad) for t in tensors]


def nabla_forward(channels: int, side: int, kit: Kit) -> Step:
    y = nabla_graph(kit, channels, side, False)[2]
    return lambda: y.forward()


def torch_forward(channels: int, side: int) -> Step:
    from torch.nn.functional import conv2d

    x, w = torch_leaves(channels, side, False)

    def step():
        conv2d(x, w, padding=1)

    return step


def nabla_backward(channels: int, side: int, kit: Kit) -> Step:
    x, w, y = nabla_graph(kit, channels, side, True)

    def step():
        y.forward()
        x.grad.zero()
        w.grad.zero()
        start = time.perf_counter()
        y.backward()
        return time.perf_counter() - start

    return step


def torch_backward(channels: int, side: int) -> Step:
    import torch
    from torch.nn.functional import conv2d

    x, w = torch_leaves(channels, side, True)
    seed = torch.ones(BATCH, channels, side, side).to(memory_format=torch.channels_last)

    def step():
        y = conv2d(x, w, padding=1)
        x.grad = w.grad = None
        start = time.perf_counter()
        y.backward(seed)
        return time.perf_counter() - start

    return step


def case(direction: str, nabla, torch, channels: int, side: int) -> Case:
    title = f"3x3 convolution, {channels} channels, {side}x{side}, batch {BATCH}: {direction}"
    name = f"conv_{channels}_{direction}"
    steps, passes = (
        (partial(nabla, channels, side), partial(torch, channels, side)),
        2 if direction == "backward" else 1,
    )
    flops = passes * 2 * 9 * BATCH * channels**2 * side**2
    moved = passes * 4 * (2 * BATCH * channels * side**2 + 9 * channels**2)
    return Case(name, title, *steps, {"torch": 1.5}, flops=flops, moved=moved)


CASES = [
    case(direction, nabla, torch, *stage)
    for stage in STAGES
    for direction, nabla, torch in (
        ("forward", nabla_forward, torch_forward),
        ("backward", nabla_backward, torch_backward),
    )
]
