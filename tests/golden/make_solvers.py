"""Asks NNabla for the paths of its solvers and writes solvers.npz, which nnrs must follow.

    python tests/golden/make_solvers.py     # with nnabla 1.39 installed

Every run is named `solver/arguments/variant`. For each parameter p the file holds, at the steps of STEPS,
`<run>/<p>/w` (weights) and `<run>/<p>/<state>` (`m`, or `mean` and `var`), each with the steps as first axis; the
number of updates `t` is the step. Gradients and first weights are multiples of 1/32, so both sides get the same bits
from `gradient` and `first_weights`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

STEPS = (1, 2, 10, 100)
SHAPES = {"a": (3, 4), "b": (5,), "c": ()}
Arguments = dict[str, "float | bool"]
_ADAM: Arguments = {"alpha": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3}
# Constructor arguments by the name of the run; all solvers with their defaults too.
ARGUMENTS: dict[str, list[Arguments]] = {
    "Sgd": [{}, {"lr": 0.3}],
    "Momentum": [{}, {"lr": 0.1, "momentum": 0.5}],
    "Nesterov": [{}, {"lr": 0.1, "momentum": 0.5}],
    "Adam": [{}, {"alpha": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-4}],
    "AdamW": [{}, {"alpha": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-4, "wd": 0.01}],
    "SgdW": [{}, {"lr": 0.1, "momentum": 0.5, "wd": 0.01}],
    "Lars": [{}, {"lr": 0.3, "momentum": 0.5, "coefficient": 0.1, "eps": 0.5}],
    "Adadelta": [{}, {"lr": 0.5, "decay": 0.8, "eps": 1e-3}],
    "Adagrad": [{}, {"lr": 0.1, "eps": 1e-2}],
    "RMSprop": [{}, {"lr": 0.01, "decay": 0.7, "eps": 1e-2}],
    "RMSpropGraves": [{}, {"lr": 0.01, "decay": 0.8, "momentum": 0.5, "eps": 1e-2}],
    "AdaBound": [{}, {**_ADAM, "final_lr": 0.05, "gamma": 0.2}],
    "AMSBound": [{}, {**_ADAM, "final_lr": 0.05, "gamma": 0.2, "bias_correction": True}],
    "Adamax": [{}, _ADAM],
    "AMSGRAD": [{}, {**_ADAM, "bias_correction": True}],
    "Lamb": [
        {},
        {"eta": 0.02, "beta1": 0.8, "beta2": 0.95, "gamma_l": 0.5, "gamma_u": 2.0, "eps": 0.5, "bias_correction": True},
    ],
    "Lion": [{}, {"lr": 0.02, "beta1": 0.8, "beta2": 0.95}],
    "AdaBelief": [
        {},
        {**_ADAM, "amsgrad": True},
        {**_ADAM, "weight_decouple": True, "wd": 0.1, "rectify": True},
        {**_ADAM, "weight_decouple": True, "wd": 0.1, "fixed_decay": True, "amsgrad": True, "rectify": True},
    ],
}
VARIANTS = ("plain", "weight_decay", "clip_grad_by_norm", "scale_grad", "learning_rate", "everything")
# Before this step the learning rate is halved, in the variants that change it.
CHANGE = 6


def gradient(place: int, shape: tuple[int, ...], step: int) -> np.ndarray:
    """The gradient of parameter number `place` at a step (from 1): multiples of 1/32 in [-1, 1)."""
    i = np.arange(int(np.prod(shape)))
    return ((((37 * i + 101 * step + 11 * place * step) % 64) - 32) / 32).astype(np.float32).reshape(shape)


def first_weights(place: int, shape: tuple[int, ...]) -> np.ndarray:
    """Multiples of 1/32 in [-1, 1)."""
    return gradient(place + 5, shape, 7)


def before_update(solver: Any, variant: str, step: int) -> None:
    """What a training script does between backward and update."""
    if variant in ("learning_rate", "everything") and step == CHANGE:
        solver.set_learning_rate(solver.learning_rate() / 2)
    if variant in ("scale_grad", "everything"):
        solver.scale_grad(0.5)
    if variant in ("clip_grad_by_norm", "everything"):
        solver.clip_grad_by_norm(1.0)
    if variant in ("weight_decay", "everything"):
        solver.weight_decay(1e-2)


def run(nn: Any, solver: Any, variant: str) -> dict[str, np.ndarray]:
    """Weights and states at STEPS, for any package with NNabla's API."""
    parameters = {}
    for place, (name, shape) in enumerate(SHAPES.items()):
        parameters[name] = nn.Variable(shape, need_grad=True)
        parameters[name].d = first_weights(place, shape)
    solver.set_parameters(parameters)
    found: dict[str, list[np.ndarray]] = {}
    for step in range(1, STEPS[-1] + 1):
        for place, (name, shape) in enumerate(SHAPES.items()):
            parameters[name].g = gradient(place, shape, step)
        before_update(solver, variant, step)
        solver.update()
        if step in STEPS:
            for name, w in parameters.items():
                found.setdefault(f"{name}/w", []).append(np.array(w.d))
                for key, state in solver.get_states()[name].pstate.items():
                    found.setdefault(f"{name}/{key}", []).append(np.array(state.d))
    return {key: np.stack(arrays) for key, arrays in found.items()}


def label(arguments: Arguments) -> str:
    """The name of a set of arguments: those that are switched on, if any."""
    switches = [name for name, value in arguments.items() if value is True]
    return "-".join(switches) or ("given" if arguments else "default")


def all_runs(nn: Any, solvers: Any) -> dict[str, np.ndarray]:
    """Every run of every solver."""
    return {
        f"{name}/{label(arguments)}/{variant}/{key}": array
        for name, sets in ARGUMENTS.items()
        for arguments in sets
        for variant in VARIANTS
        for key, array in run(nn, getattr(solvers, name)(**arguments), variant).items()
    }


if __name__ == "__main__":
    import nnabla
    import nnabla.solvers

    np.savez_compressed(Path(__file__).with_name("solvers.npz"), **all_runs(nnabla, nnabla.solvers))
