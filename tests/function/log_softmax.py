"""`log_softmax`: logarithm of softmax along an axis; the last axis by default."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, axis: int | None = None) -> np.ndarray:
    axis = x.ndim - 1 if axis is None else axis
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - top)
    return x - top - np.log(e.sum(axis=axis, keepdims=True))


CASES = [
    Case(inputs=[(3, 4)], name="default"),
    Case(inputs=[(2, 3, 4)], name="default is the last axis", reshaped=[(1, 2, 5)]),
    Case(inputs=[(2, 3, 4)], args={"axis": 1}, name="middle"),
    Case(inputs=[(2, 3, 4)], args={"axis": 0}, name="first"),
    Case(inputs=[(2, 3, 2, 2)], args={"axis": -3}, name="negative axis"),
    Case(inputs=[(4,)], name="1-d"),
    Case(inputs=[(5, 1)], name="one element a row"),
    Case(inputs=[[[1, 2, 3]]], name="integers"),
    Case(inputs=[[[1000.0, 1001.0, 900.0]]], name="large", differentiable=False, types=("float", "double")),
    Case(inputs=[[[1.0, np.nan, 3.0], [1.0, np.inf, 3.0], [1.0, 2.0, 3.0]]], name="NaN", differentiable=False),
    Case(inputs=[[[1.0, -np.inf, 3.0]]], name="minus infinity", differentiable=False),
    Case(inputs=[(0, 3)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axis": 2}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": -3}, match="argument 'axis'"),
    Error(inputs=[()], match="argument 'x'"),
    Error(inputs=[(2, 3)], args={"axis": "a"}, match="argument 'axis'", kind=(TypeError, ValueError)),
]
