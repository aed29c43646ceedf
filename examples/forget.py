"""Trains a residual network that forgets the inside of its blocks: `F.forget`, as in Chainer.

`F.forget(block, h)` keeps only what the block returns; backward computes the inside again, block by block. Dropout
draws the same numbers again and running statistics move once, so nothing but memory and time is different.

    python examples/forget.py [--blocks 8] [--steps 5]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

MAPS, SIDE, BATCH, CLASSES = 16, 16, 16, 4


def block(h: nn.Variable, name: str) -> nn.Variable:
    """Two convolutions with dropout between them, beside a short cut."""
    with nn.parameter_scope(name):
        y = F.relu(PF.batch_normalization(PF.convolution(h, MAPS, (3, 3), pad=(1, 1), name="conv1"), name="bn1"))
        y = F.dropout(y, 0.2)
        y = PF.batch_normalization(PF.convolution(y, MAPS, (3, 3), pad=(1, 1), name="conv2"), name="bn2")
        return F.relu(y + h)


def network(blocks: int, forget: bool) -> nn.Variable:
    """The loss of a residual network on made-up pictures."""
    rng = np.random.RandomState(313)
    x = nn.Variable.from_numpy_array(rng.randn(BATCH, 3, SIDE, SIDE).astype(np.float32))
    t = nn.Variable.from_numpy_array(rng.randint(0, CLASSES, (BATCH, 1)))
    h = F.relu(PF.convolution(x, MAPS, (3, 3), pad=(1, 1), name="stem"))
    for i in range(blocks):
        # Other arguments than arrays are passed on as they are.
        h = F.forget(block, h, name=f"block{i}") if forget else block(h, f"block{i}")
    return F.mean(F.softmax_cross_entropy(PF.affine(F.mean(h, axis=(2, 3)), CLASSES), t))


@dataclass
class Training:
    """The most bytes in use, the losses, the last gradients, and all parameters (running statistics among them)."""

    peak: int
    losses: list[float]
    gradients: list[np.ndarray]
    parameters: list[np.ndarray]


def train(blocks: int, steps: int, forget: bool) -> Training:
    """Trains a new network."""
    nn.clear_parameters()
    nn.seed(313)
    before = nn.memory.stats().live
    loss = network(blocks, forget)
    solver = S.Momentum(0.02)
    solver.set_parameters(nn.get_parameters())
    nn.memory.reset_peak()
    losses = []
    for _ in range(steps):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
    return Training(
        nn.memory.stats().peak - before,
        losses,
        [v.g.copy() for v in nn.get_parameters().values()],
        [v.d.copy() for v in nn.get_parameters(grad_only=False).values()],
    )


def equal(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    """Whether the arrays are the same to the last bit."""
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def run(blocks: int = 8, steps: int = 5) -> tuple[Training, Training]:
    """Trains the network that keeps everything and the one that forgets."""
    kept, forgotten = (train(blocks, steps, forget) for forget in (False, True))
    nn.clear_parameters()
    print("step  loss, all kept  loss, blocks forgotten")
    for i, (a, b) in enumerate(zip(kept.losses, forgotten.losses, strict=True)):
        print(f"{i:4}  {a:14.6f}  {b:22.6f}")
    share = forgotten.peak / kept.peak
    print(f"peak memory {kept.peak / 2**20:.2f} MiB, with F.forget {forgotten.peak / 2**20:.2f} MiB: {share:.0%}")
    if kept.losses != forgotten.losses or not equal(kept.gradients, forgotten.gradients):
        raise SystemExit("losses or gradients differ")
    if not equal(kept.parameters, forgotten.parameters):
        raise SystemExit("parameters or running statistics differ")
    if blocks >= 4 and share > 0.8:
        raise SystemExit("forgetting saved next to nothing")
    print("Losses, gradients, parameters and running statistics are equal to the last bit.")
    return kept, forgotten


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5)
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
