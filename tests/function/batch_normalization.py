"""`batch_normalization`: x less its mean, over its deviation, times gamma, plus beta; keeps running statistics."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from function.case import Case, Error, large_numbers, positive


def reference(
    x: np.ndarray,
    beta: np.ndarray | None,
    gamma: np.ndarray | None,
    mean: np.ndarray | None,
    variance: np.ndarray | None,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    output_stat: bool = False,
) -> object:
    if batch_stat:
        kept = [a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)]
        reduced = tuple(a for a in range(x.ndim) if a not in kept)
        mean, variance = x.mean(axis=reduced, keepdims=True), x.var(axis=reduced, keepdims=True)
    y = (x - mean) / np.sqrt(variance + eps)
    y = (y if gamma is None else y * gamma) + (0.0 if beta is None else beta)
    return (y, mean, variance) if output_stat else y


def inputs(x: tuple[int, ...], s: tuple[int, ...]) -> list[object]:
    """x, beta, gamma, mean, variance."""
    return [x, s, s, s, positive(*s)]


def statistics(F: Any, *values: Any, **args: Any) -> list[Any]:
    """The output, and the two inputs that forward moves."""
    return [F.batch_normalization(*values, **args), values[3], values[4]]


def moved(axes: tuple[int, ...], decay: float) -> Any:
    """A check of the running statistics after one forward: the variance is the unbiased one."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        x, _, _, mean, variance = (np.asarray(a, np.float64) for a in inputs)
        fresh = [x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True, ddof=1)]
        for got, old, new in zip(outputs[1:], (mean, variance), fresh, strict=True):
            np.testing.assert_allclose(got, decay * old + (1 - decay) * new, rtol=1e-5, atol=1e-6)

    return check


def moves(
    x: tuple[int, ...], s: tuple[int, ...], reduced: tuple[int, ...], name: str, decay: float, **args: Any
) -> Case:
    """A case of the running statistics."""
    return Case(
        inputs=inputs(x, s),
        args=args,
        call=statistics,
        check=moved(reduced, decay),
        mutates=True,
        differentiable=False,
        types=("float", "double"),
        name=name,
    )


GRAD = (True, True, True, False, False)
S2, S4 = (1, 3), (1, 3, 1, 1)
CASES = [
    Case(inputs=inputs((4, 3), S2), need_grad=GRAD, mutates=True, reshaped=inputs((6, 3), S2), name="2-D"),
    Case(inputs=inputs((2, 3, 2, 3), S4), need_grad=GRAD, mutates=True, name="4-D"),
    Case(
        inputs=inputs((2, 3, 4), (1, 1, 4)),
        args={"axes": [2]},
        need_grad=GRAD,
        mutates=True,
        tolerance={"second": 2e-5},
        name="last axis",
    ),
    Case(
        inputs=inputs((2, 3, 4), (1, 1, 4)),
        args={"axes": [-1]},
        need_grad=GRAD,
        mutates=True,
        tolerance={"second": 2e-5},
        name="axis -1",
    ),
    Case(inputs=inputs((4, 2, 3), (1, 2, 3)), args={"axes": [1, 2]}, need_grad=GRAD, mutates=True, name="two axes"),
    Case(inputs=inputs((4, 3), S2), args={"axes": 1}, need_grad=GRAD, mutates=True, name="axis as int"),
    Case(inputs=inputs((4, 3), S2), args={"eps": 0.5}, need_grad=GRAD, mutates=True, name="eps"),
    Case(inputs=inputs((4, 3), S2), args={"batch_stat": False}, need_grad=GRAD, name="running statistics"),
    Case(inputs=inputs((2, 3, 2, 2), S4), args={"batch_stat": False, "eps": 0.1}, need_grad=GRAD, name="running, 4-D"),
    Case(
        inputs=inputs((4, 2, 3), (1, 2, 3)),
        args={"axes": [1, 2], "batch_stat": False},
        need_grad=GRAD,
        name="running, two axes",
    ),
    Case(
        inputs=inputs((4, 3), S2),
        args={"output_stat": True},
        need_grad=GRAD,
        mutates=True,
        name="statistics out",
        oracle_grad=False,
        reason="NNabla's nn.grad fails",
    ),
    Case(
        inputs=inputs((4, 2, 3), (1, 2, 3)),
        args={"axes": [1, 2], "output_stat": True},
        need_grad=GRAD,
        mutates=True,
        second=False,
        name="statistics out, two axes",
    ),
    Case(inputs=[(4, 3), None, S2, S2, positive(*S2)], need_grad=GRAD, mutates=True, name="no beta"),
    Case(inputs=[(4, 3), S2, None, S2, positive(*S2)], need_grad=GRAD, mutates=True, name="no gamma"),
    Case(inputs=[(4, 3), S2, S2, None, None], need_grad=GRAD, name="no running statistics"),
    Case(inputs=[(4, 3), None, None, None, None], need_grad=GRAD, name="x alone"),
    Case(
        inputs=[(4, 3), None, None, S2, positive(*S2)],
        args={"batch_stat": False},
        need_grad=GRAD,
        name="running, no beta, no gamma",
    ),
    moves((4, 3), S2, (0,), "moves", 0.9),
    moves((2, 3, 2, 2), S4, (0, 2, 3), "moves, 4-D", 0.9),
    moves((4, 3), S2, (0,), "moves, decay_rate", 0.25, decay_rate=0.25),
    dataclasses.replace(
        moves((4, 2, 3), (1, 2, 3), (0,), "moves, two axes", 0.9, axes=[1, 2]),
        oracle=False,
        reason="NNabla moves a copy",
    ),
    moves((6, 3), S2, (0,), "does not move at decay_rate 1", 1.0, decay_rate=1.0),
    *large_numbers((4, 1), (200, 3), (5, 8, 30), (2, 3, 5000), (3, 2, 100), (2, 5000), others=4),
]
ERRORS = [
    Error(inputs=inputs((4, 3), (3,)), match="argument 'beta'", name="shape of beta"),
    Error(inputs=inputs((4, 3), (1, 2)), match="argument 'beta'", name="size of beta"),
    Error(inputs=inputs((4, 3), S2), args={"axes": [2]}, match="argument 'axes'", name="axis"),
    Error(
        inputs=[(4, 3), S2, S2, None, None],
        args={"batch_stat": False},
        match="argument 'mean'",
        kind=ValueError,
        name="no statistics",
    ),
    Error(
        inputs=inputs((4, 3), S2),
        args={"batch_stat": False, "output_stat": True},
        match="argument 'output_stat'",
        kind=(ValueError, AssertionError),
        name="output_stat without batch_stat",
    ),
]
