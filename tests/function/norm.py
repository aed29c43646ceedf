"""`norm`: p-norm over axes, `(sum |x|^p)^(1/p)`."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, p: float | None = None, axis: object = None, keepdims: bool = False) -> np.ndarray:
    p = 2.0 if p is None else p
    axis = tuple(axis) if isinstance(axis, list) else axis
    return np.sum(np.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1 / p)


CASES = [
    Case(inputs=[(2, 3, 4)], kinks=[0.0], name="all"),
    Case(inputs=[(2, 3, 4)], kinks=[0.0], args={"axis": 0}, name="axis"),
    Case(inputs=[(2, 3, 4)], kinks=[0.0], args={"axis": -1, "keepdims": True}, name="last axis, kept"),
    Case(inputs=[(2, 3, 4)], kinks=[0.0], args={"axis": (2, 0)}, name="two axes in any order"),
    Case(inputs=[(2, 3, 4)], kinks=[0.0], args={"axis": [0, 1, 2], "keepdims": True}, name="all axes, kept"),
    Case(inputs=[(2, 3, 4)], kinks=[0.0], second=False, args={"axis": ()}, name="no axis"),
    Case(inputs=[np.asarray(-0.7)], second=False, name="0-d"),
    Case(inputs=[[[1, 5, 2], [7, 3, 4]]], args={"axis": 1}, name="integers"),
    Case(inputs=[(0, 3)], args={"axis": 1}, name="no rows", differentiable=False),
    Case(inputs=[(2, 3, 4)], args={"p": 1, "axis": 1}, kinks=[0.0], name="p = 1"),
    Case(inputs=[(2, 3, 4)], args={"p": 3, "axis": (0, 2)}, kinks=[0.0], name="p = 3"),
    Case(inputs=[(2, 3, 4)], args={"p": 1.5}, kinks=[0.0], second=False, name="p = 1.5"),
    Case(inputs=[[[0.0, 0.0], [3.0, -4.0]]], args={"axis": 1}, differentiable=False, name="zeros"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axis": 2}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": -3}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": (0, 0)}, match="argument 'axis'"),
    Error(inputs=[()], args={"axis": 0}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": "a"}, match="argument 'axis'", kind=(TypeError, ValueError)),
    Error(inputs=[(2, 3)], args={"p": 0.5}, match="argument 'p'"),
    Error(inputs=[(2, 3)], args={"p": -1}, match="argument 'p'"),
]
