"""The product of two square matrices, as `affine` without bias in NNabla's names."""

from __future__ import annotations

from functools import partial

import numpy as np

from .case import Case, Kit, Step


def matrices(n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, n)).astype(np.float32) for _ in range(2)]


def nabla(n: int, kit: Kit) -> Step:
    a, b = kit.nn.Variable((n, n)), kit.nn.Variable((n, n))
    a.d, b.d = matrices(n)
    y = kit.F.affine(a, b)
    return lambda: y.forward()


def torch_mm(n: int) -> Step:
    import torch

    a, b = map(torch.from_numpy, matrices(n))

    def step():
        torch.mm(a, b)

    return step


CASES = [
    Case(
        f"matmul_{n}",
        f"matrix product {n:,}",
        partial(nabla, n),
        partial(torch_mm, n),
        {"torch": 0.6},
        share=0.9,
        flops=2 * n**3,
        moved=3 * 4 * n**2,
    )
    for n in (1024, 2048)
]
