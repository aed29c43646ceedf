"""Arrays that are read at other places than they lie: transposes, slices and broadcasts, heads of attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .case import Case, Kit, Step
from .steps import nabla_gradients

SIDE = 2048
BATCH, LENGTH, WIDTH, HEADS = 4, 256, 512, 8


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)


def nabla_moved(move: Callable[[Any, Any], Any], kit: Kit) -> Step:
    x = kit.nn.Variable((SIDE, SIDE), need_grad=True)
    x.d = numbers(SIDE, SIDE)
    y = kit.F.tanh(move(kit.F, kit.F.exp(x)))
    seed = kit.nn.NdArray(y.shape)
    seed.fill(1.0)
    return nabla_gradients(y, [x], seed)


def torch_moved(move: Callable[[Any], Any]) -> Step:
    import torch

    x = torch.from_numpy(numbers(SIDE, SIDE)).requires_grad_()
    seed = torch.ones(move(x).shape)

    def step():
        x.grad = None
        torch.tanh(move(torch.exp(x))).backward(seed)

    return step


def moved(name: str, title: str, nabla: Callable[[Any, Any], Any], torch: Callable[[Any], Any]) -> Case:
    title = f"exp, {title}, tanh of {SIDE:,} x {SIDE:,}: forward + backward"
    return Case(name, title, partial(nabla_moved, nabla), partial(torch_moved, torch))


def nabla_attention(kit: Kit) -> Step:
    F = kit.F

    def heads(x):
        return F.transpose(F.reshape(x, (BATCH, LENGTH, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    leaves = [kit.nn.Variable((BATCH, LENGTH, WIDTH), need_grad=True) for _ in range(3)]
    for x in leaves:
        x.d = numbers(BATCH, LENGTH, WIDTH)
    q, k, v = (heads(F.mul_scalar(x, 0.5)) for x in leaves)
    scores = F.softmax(F.mul_scalar(F.batch_matmul(q, k, transpose_b=True), 0.125))
    y = F.reshape(F.transpose(F.batch_matmul(scores, v), (0, 2, 1, 3)), (BATCH, LENGTH, WIDTH))
    seed = kit.nn.NdArray(y.shape)
    seed.fill(1.0)
    return nabla_gradients(y, leaves, seed)


def torch_attention() -> Step:
    import torch

    def heads(x):
        return x.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2)

    leaves = [torch.from_numpy(numbers(BATCH, LENGTH, WIDTH)).requires_grad_() for _ in range(3)]
    seed = torch.ones(BATCH, LENGTH, WIDTH)

    def step():
        for x in leaves:
            x.grad = None
        q, k, v = (heads(x * 0.5) for x in leaves)
        scores = torch.softmax(q @ k.transpose(2, 3) * 0.125, -1)
        (scores @ v).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH).backward(seed)

    return step


CASES = [
    moved("moved_transpose", "transpose", lambda F, x: F.transpose(x, (1, 0)), lambda x: x.t()),
    moved("moved_slice", "columns of the middle", lambda F, x: x[:, 512:1536], lambda x: x[:, 512:1536]),
    moved("moved_steps", "every second column", lambda F, x: x[:, ::2], lambda x: x[:, ::2]),
    moved(
        "moved_broadcast",
        "one row repeated",
        lambda F, x: F.broadcast(x[:1], (SIDE, SIDE)),
        lambda x: x[:1].expand(SIDE, SIDE),
    ),
    Case("attention", "attention (4, 256, 512) with 8 heads: forward + backward", nabla_attention, torch_attention),
]
