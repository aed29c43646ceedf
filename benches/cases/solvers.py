"""Solvers over the parameters of a ResNet-50: 25.6 million in 161 tensors, gradients given."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .case import Case, Kit, Step

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # width, blocks


def convolutions() -> Iterator[tuple[int, ...]]:
    """Weights of the 53 convolutions: outputs, inputs, kernel."""
    yield 64, 3, 7, 7
    inputs = 64
    for width, blocks in STAGES:
        for block in range(blocks):
            yield width, inputs, 1, 1
            yield width, width, 3, 3
            yield 4 * width, width, 1, 1
            if block == 0:
                yield 4 * width, inputs, 1, 1
            inputs = 4 * width


def shapes() -> list[tuple[int, ...]]:
    """Every parameter: each convolution is followed by a scale and a shift; a classifier ends the network."""
    found = [s for conv in convolutions() for s in (conv, conv[:1], conv[:1])]
    return [*found, (1000, 2048), (1000,)]


def values(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape, dtype=np.float32) * 0.01 for _ in range(2))


def nabla(name: str) -> Callable[[Kit], Step]:
    def make(kit: Kit) -> Step:
        parameters = {}
        for i, shape in enumerate(shapes()):
            v = parameters[f"p{i}"] = kit.nn.Variable(shape, need_grad=True)
            v.d, v.g = values(shape)
        solver = getattr(kit.S, name)(1e-3)
        solver.set_parameters(parameters)
        return lambda: solver.update()

    return make


def torch_optimizer(name: str, **options: float) -> Callable[[], Step]:
    def make() -> Step:
        import torch

        parameters = []
        for shape in shapes():
            p, g = map(torch.from_numpy, values(shape))
            p.requires_grad_().grad = g
            parameters.append(p)
        solver = getattr(torch.optim, name)(parameters, lr=1e-3, **options)
        return lambda: solver.step()

    return make


WHERE = "on 25.6 million parameters in 161 tensors"
FUSED = f"{WHERE} (torch: fused=True)"
ALIKE = ("Adagrad", "Adadelta", "RMSprop", "Adamax")  # torch has them under the same name
OTHERS = ("SgdW", "Lars", "AdaBelief", "RMSpropGraves", "AdaBound", "AMSGRAD", "AMSBound", "Lamb", "Lion")
CASES = [
    Case("adam", f"Adam {FUSED}", nabla("Adam"), torch_optimizer("Adam", fused=True), {"torch": 0.95}),
    Case(
        "momentum",
        f"Momentum {FUSED}",
        nabla("Momentum"),
        torch_optimizer("SGD", fused=True, momentum=0.9),
        {"torch": 0.7},
    ),
    *(Case(n.lower(), f"{n} {WHERE}", nabla(n), torch_optimizer(n), {"torch": 1.0, "nnabla": 1.0}) for n in ALIKE),
    *(Case(n.lower(), f"{n} {WHERE}", nabla(n), None, {"nnabla": 1.0}) for n in OTHERS),
]
