"""A chain of 50 element-wise functions over 4 million floats: what fusion saves.

Ten functions, five times: tanh, mul_scalar, exp, sub2 (the input), leaky_relu, square (pow_scalar 2 in NNabla's names),
sigmoid, add_scalar, mul2 (the input), tanh.
"""

from __future__ import annotations

import numpy as np

from .case import Case, Kit, Step

SIZE = 4_000_000
REPEATS = 5


def numbers() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, SIZE).astype(np.float32)


def nabla_chain(F, x):
    h = x
    for _ in range(REPEATS):
        h = F.exp(F.mul_scalar(F.tanh(h), 0.5))
        h = F.leaky_relu(F.sub2(h, x), 0.1)
        h = F.sigmoid(F.pow_scalar(h, 2.0))
        h = F.tanh(F.mul2(F.add_scalar(h, -0.5), x))
    return h


def torch_chain(x):
    import torch
    from torch.nn.functional import leaky_relu

    h = x
    for _ in range(REPEATS):
        h = torch.exp(torch.mul(torch.tanh(h), 0.5))
        h = leaky_relu(torch.sub(h, x), 0.1)
        h = torch.sigmoid(torch.square(h))
        h = torch.tanh(torch.mul(torch.add(h, -0.5), x))
    return h


def nabla_forward(kit: Kit) -> Step:
    x = kit.nn.Variable((SIZE,))
    x.d = numbers()
    y = nabla_chain(kit.F, x)
    return lambda: y.forward(clear_no_need_grad=True)


def torch_forward() -> Step:
    import torch

    x = torch.from_numpy(numbers())

    def step():
        with torch.no_grad():
            torch_chain(x)

    return step


def nabla_both(kit: Kit) -> Step:
    x = kit.nn.Variable((SIZE,), need_grad=True)
    x.d = numbers()
    y = nabla_chain(kit.F, x)

    def step():
        y.forward(clear_no_need_grad=True)
        x.grad.zero()
        y.backward(clear_buffer=True)

    return step


def torch_both() -> Step:
    import torch

    x = torch.from_numpy(numbers()).requires_grad_()
    seed = torch.ones(SIZE)

    def step():
        x.grad = None
        torch_chain(x).backward(seed)

    return step


TITLE = "50 element-wise functions on 4 million floats: "
CASES = [
    Case("chain_forward", TITLE + "forward", nabla_forward, torch_forward, {"torch": 0.10}),
    Case("chain_backward", TITLE + "forward + backward", nabla_both, torch_both, {"torch": 0.16}),
]
