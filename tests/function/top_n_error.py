"""`top_n_error`: 1 where the label is not among the n largest, else 0; what is equal or NaN counts against it."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, distinct, integers


def reference(x: np.ndarray, target: np.ndarray, axis: int | None = None, n: int = 1) -> np.ndarray:
    axis = x.ndim - 1 if axis is None else axis
    mine = np.take_along_axis(x, target.astype(int), axis)
    return (np.sum(~(x < mine), axis=axis, keepdims=True) > n).astype(np.float64)


CASES = [
    Case(inputs=[distinct(6, 4), integers(0, 4, 6, 1)], differentiable=False, name="default"),
    Case(inputs=[distinct(6, 4), integers(0, 4, 6, 1)], args={"n": 2}, differentiable=False, name="n = 2"),
    Case(inputs=[distinct(6, 4), integers(0, 4, 6, 1)], args={"n": 4}, differentiable=False, name="all classes"),
    Case(inputs=[distinct(6, 4), integers(0, 4, 6, 1)], args={"n": 0}, differentiable=False, name="n = 0"),
    Case(inputs=[distinct(2, 3, 4), integers(0, 3, 2, 1, 4)], args={"axis": 1}, differentiable=False, name="axis"),
    Case(inputs=[distinct(2, 3, 4), integers(0, 3, 2, 1, 4)], args={"axis": -2}, differentiable=False, name="negative"),
    Case(inputs=[distinct(3, 4), [[0.0], [1.0], [3.9]]], differentiable=False, name="labels as floats"),
    Case(inputs=[[[1.0, 1.0, 0.0]] * 3, [[0], [1], [2]]], differentiable=False, name="ties"),
    Case(inputs=[[[1.0, 1.0, 0.0]] * 3, [[0], [1], [2]]], args={"n": 2}, differentiable=False, name="ties, n = 2"),
    Case(
        inputs=[[[np.nan, 1.0, 2.0]] * 3, [[0], [1], [2]]],
        differentiable=False,
        name="NaN",
        oracle=False,
        reason="there NaN is smaller than any score",
    ),
]
ERRORS = [
    Error(inputs=[(3, 4), integers(0, 4, 3)], match="argument 'target'"),
    Error(inputs=[(3, 4), integers(0, 4, 2, 1)], match="argument 'target'"),
    Error(inputs=[(3, 4), integers(0, 4, 3, 1)], args={"axis": 2}, match="argument 'axis'"),
]
