"""`batch_normalization`: x less its mean, over its deviation, times gamma, plus beta; keeps running statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error, positive


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
]
ERRORS = [
    Error(inputs=inputs((4, 3), (3,)), name="shape of beta"),
    Error(inputs=inputs((4, 3), (1, 2)), name="size of beta"),
    Error(inputs=inputs((4, 3), S2), args={"axes": [2]}, name="axis"),
    Error(inputs=[(4, 3), S2, S2, None, None], args={"batch_stat": False}, kind=ValueError, name="no statistics"),
    Error(
        inputs=inputs((4, 3), S2),
        args={"batch_stat": False, "output_stat": True},
        kind=(ValueError, AssertionError),
        name="output_stat without batch_stat",
    ),
]
