"""`tensor_normalization`: x less its mean, over its deviation, for each index of some axes; scaled and moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from function.case import Case, Error


def reference(
    x: np.ndarray,
    beta: np.ndarray | None = None,
    gamma: np.ndarray | None = None,
    axes: int | Sequence[int] = 1,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> object:
    kept = [a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)]
    reduced = tuple(a for a in range(x.ndim) if a not in kept)
    mean, variance = x.mean(axis=reduced, keepdims=True), x.var(axis=reduced, keepdims=True)
    y = (x - mean) / np.sqrt(variance + eps)
    y = (y if gamma is None else y * gamma) + (0.0 if beta is None else beta)
    return (y, mean, variance) if output_stat else y


def case(*inputs: Any, axes: int | list[int], args: dict[str, Any] | None = None, **rest: Any) -> Case:
    """The function takes the axes before beta and gamma."""

    def call(F: Any, x: Any, beta: Any, gamma: Any, axes: Any, **more: Any) -> Any:
        return F.tensor_normalization(x, axes, beta, gamma, **more)

    return Case(inputs=inputs, args={"axes": axes, **(args or {})}, call=call, **rest)


CASES = [
    case((2, 3, 4), (1, 3, 1), (1, 3, 1), axes=1, reshaped=[(5, 3, 2), (1, 3, 1), (1, 3, 1)], name="one axis"),
    case((2, 4, 3), (2, 1, 3), (2, 1, 3), axes=[0, 2], name="two axes"),
    case((2, 3, 4), None, None, axes=-1, args={"eps": 0.5}, name="the last axis"),
    case((2, 3), None, None, axes=[], name="no axis"),
    case((2, 3, 4), (1, 3, 1), None, axes=1, args={"output_stat": True}, second=False, name="statistics out"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axes": 2}, match="argument 'axes'", name="axis"),
    Error(inputs=[(2, 3)], args={"axes": 1, "eps": "a"}, match="argument 'eps'", kind=TypeError, name="eps"),
]
