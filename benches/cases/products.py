"""Products of the shapes that layers and attention have, with plain and with transposed operands."""

from __future__ import annotations

from functools import partial

import numpy as np

from .case import Case, Kit, Step

# Batch, rows, inner, columns, whether the second operand is transposed: affine layers, heads of attention.
SHAPES = (
    (1, 32, 1024, 512, True),
    (1, 128, 784, 1024, False),
    (1, 128, 1024, 1024, False),
    (1, 128, 1024, 1024, True),
    (1, 1024, 128, 1024, False),
    (1, 32, 256, 1024, False),
    (1, 2048, 256, 1024, False),
    (1, 2048, 1024, 256, True),
    (1, 512, 512, 2048, False),
    (1, 512, 2048, 512, False),
    (1, 512, 2048, 512, True),
    (1, 4096, 64, 64, False),
    (1, 64, 4096, 64, False),
    (1, 1, 1024, 1024, False),
    (1, 1, 1024, 4096, True),
    (1, 4096, 4096, 4096, False),
    (64, 128, 64, 128, True),
    (64, 128, 128, 64, False),
    (32, 512, 64, 512, True),
    (32, 512, 512, 64, False),
)


def operands(batch: int, m: int, k: int, n: int, transposed: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(s, dtype=np.float32)
        for s in ((batch, m, k), (batch, n, k) if transposed else (batch, k, n))
    ]


def nabla(shape: tuple, kit: Kit) -> Step:
    arrays = operands(*shape)
    a, b = (kit.nn.Variable(x.shape) for x in arrays)
    a.d, b.d = arrays
    y = kit.F.batch_matmul(a, b, transpose_b=shape[-1])
    return lambda: y.forward()


def torch_product(shape: tuple) -> Step:
    import torch

    a, b = map(torch.from_numpy, operands(*shape))
    a, b = (a[0], b[0]) if shape[0] == 1 else (a, b)
    b = b.mT if shape[-1] else b

    def step():
        a @ b

    return step


def case(shape: tuple) -> Case:
    batch, m, k, n, transposed = shape
    title = f"product {f'{batch} x ' if batch > 1 else ''}({m}, {k}) ({k}, {n}){', transposed' if transposed else ''}"
    name = f"product_{batch}_{m}_{k}_{n}{'_t' if transposed else ''}"
    moved = 4 * batch * (m * k + k * n + m * n)
    work = {"flops": 2 * batch * m * k * n, "moved": moved}
    return Case(name, title, partial(nabla, shape), partial(torch_product, shape), {"torch": 0.95}, 0.85, **work)


CASES = [case(shape) for shape in SHAPES]
