"""Fits the training of a network into a memory budget: `nn.memory.fit` chooses what backward computes again.

The network is planned before anything runs, trained as it is, then trained within the budget. Less memory costs time,
and nothing else: the losses and the parameters are the same to the last bit.

    python examples/memory_budget.py [--layers 16] [--share 0.5] [--steps 6]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

MAPS, SIDE, BATCH, CLASSES = 16, 16, 16, 4
FLAGS = {"clear_no_need_grad": True, "backward_clear_buffer": True}  # how `train` runs the graph


def network(layers: int) -> nn.Variable:
    """The loss of layers of convolution, batch normalization and ReLU, on made-up pictures."""
    rng = np.random.RandomState(313)
    x = nn.Variable.from_numpy_array(rng.randn(BATCH, 3, SIDE, SIDE).astype(np.float32))
    t = nn.Variable.from_numpy_array(rng.randint(0, CLASSES, (BATCH, 1)))
    h = x
    for i in range(layers):
        with nn.parameter_scope(f"layer{i}"):
            h = PF.convolution(h, MAPS, (3, 3), pad=(1, 1), with_bias=False)
            h = F.relu(PF.batch_normalization(h))
    return F.mean(F.softmax_cross_entropy(PF.affine(F.mean(h, axis=(2, 3)), CLASSES), t))


@dataclass
class Training:
    """What a training needed, and what came out."""

    peak: int
    seconds: float
    losses: list[float]
    parameters: list[np.ndarray]


def train(layers: int, steps: int, budget: int | None = None) -> Training:
    """Trains a new network, within `budget` bytes if one is given."""
    nn.clear_parameters()
    nn.seed(313)
    before = nn.memory.stats().live
    loss = network(layers)
    if budget is not None:
        show(nn.memory.fit(loss, budget, **FLAGS), nn.memory.plan(loss, **FLAGS))
    solver = S.Sgd(0.05)  # keeps nothing beside the parameters
    solver.set_parameters(nn.get_parameters())
    nn.memory.reset_peak()
    losses, times = [], []
    for _ in range(steps):
        start = time.perf_counter()
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        times.append(time.perf_counter() - start)
        losses.append(float(loss.d))
    parameters = [v.d.copy() for v in nn.get_parameters(grad_only=False).values()]
    return Training(nn.memory.stats().peak - before, min(times), losses, parameters)


def show(fit: nn.memory.Fit, plan: nn.memory.Plan) -> None:
    """Prints what was chosen (`print(fit)` says it line by line), and the plan that came of it."""
    print(f"Planned now: peak {plan.peak / 2**20:.2f} MiB, for about {fit.extra:.0%} more time. Computed again:")
    for (size, what), count in Counter(fit.chosen).items():
        print(f"  {count:2} times {size / 2**10:.0f} KiB, {what}")


def impossible(layers: int) -> str:
    """What is said of a budget that no choice fits into."""
    try:
        nn.memory.fit(network(layers), 1000, **FLAGS)
    except ValueError as error:
        return str(error)
    raise SystemExit("1000 bytes were enough?")


def run(layers: int = 16, share: float = 0.5, steps: int = 6) -> tuple[Training, Training]:
    """Trains without and with a budget of a share of the planned peak."""
    plan = nn.memory.plan(network(layers), **FLAGS)
    budget = int(plan.peak * share)
    print(f"Planned as it is: {plan}\n\nBudget {share:.0%} of that, {budget / 2**20:.2f} MiB.")
    plain, fitted = train(layers, steps), train(layers, steps, budget)
    print("\nMeasured:  peak      a step   last loss")
    for name, t in (("as it is", plain), ("fitted", fitted)):
        print(f"{name:<9}  {t.peak / 2**20:.2f} MiB  {t.seconds * 1e3:3.0f} ms   {t.losses[-1]:.6f}")
    print(f"\nA budget of 1000 bytes: {impossible(layers)}")
    if fitted.peak > budget:
        raise SystemExit(f"{fitted.peak} bytes were in use, {budget} allowed")
    same = all(np.array_equal(a, b) for a, b in zip(plain.parameters, fitted.parameters, strict=True))
    if plain.losses != fitted.losses or not same:
        raise SystemExit("the results differ")
    print("The losses and parameters of both are equal to the last bit.")
    nn.clear_parameters()
    return plain, fitted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--share", type=float, default=0.5, help="of the memory that the network would need")
    parser.add_argument("--steps", type=int, default=6)
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
