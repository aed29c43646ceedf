"""`norm_normalization`: x over its p-norms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(
    x: np.ndarray, p: float | None = None, axes: int | Sequence[int] | None = None, eps: float = 1e-12
) -> np.ndarray:
    p = 2.0 if p is None else p
    over = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int) else tuple(axes)
    if p == np.inf:
        return x / (np.abs(x).max(axis=over, keepdims=True) + eps)
    return x / ((np.abs(x) ** p).sum(axis=over, keepdims=True) + eps) ** (1 / p)


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], reshaped=[(4, 2)], tolerance={"second": 1e-5}),
    Case(inputs=[(2, 3, 2)], kinks=[0], args={"axes": [0, 2]}, tolerance={"second": 1e-5}, name="two axes"),
    Case(inputs=[(2, 3)], kinks=[0], args={"p": 1, "axes": 1}, tolerance={"second": 1e-5}, name="p = 1"),
    Case(inputs=[(2, 3)], kinks=[0], args={"p": 3.0, "axes": -1}, tolerance={"second": 1e-5}, name="p = 3"),
    Case(
        inputs=[[[1.0, -4.0, 2.0], [3.0, 0.5, -1.0]]],
        args={"p": np.inf, "axes": 1},
        second=False,
        name="p = inf",
        oracle=False,
        reason="NNabla divides by 1",
    ),
    Case(
        inputs=[(2, 3)],
        args={"axes": 1, "eps": 0.5},
        tolerance={"second": 1e-5},
        name="eps",
        oracle=False,
        reason="NNabla leaves eps out",
    ),
    Case(
        inputs=[np.zeros((2, 3))], differentiable=False, name="zeros", oracle=False, reason="NNabla leaves eps out: NaN"
    ),
    Case(inputs=[[[np.nan, 1.0], [2.0, 3.0]]], args={"axes": 1}, differentiable=False, name="NaN"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"p": 0.5}, match="argument 'p'", name="p"),
    Error(inputs=[(2, 3)], args={"axes": 2}, match="argument 'axes'", name="axis"),
    Error(inputs=[(2, 3)], args={"axes": [0, 0]}, match="argument 'axes'", name="twice"),
]
