"""`concatenate`: arrays joined along an axis; the last one by default."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(*x: np.ndarray, axis: int | None = None) -> np.ndarray:
    return np.concatenate(x, axis=x[0].ndim - 1 if axis is None else axis)


CASES = [
    Case(inputs=[(2, 3), (2, 4)], reshaped=[(1, 2), (1, 5)], name="default is the last axis"),
    Case(inputs=[(2, 3), (1, 3), (3, 3)], args={"axis": 0}, name="first axis"),
    Case(inputs=[(2, 1, 3), (2, 4, 3)], args={"axis": -2}, name="negative axis"),
    Case(inputs=[(1,), (2,)], name="1-d"),
    Case(inputs=[(2, 3), (0, 3)], args={"axis": 0}, differentiable=False, name="an empty part"),
    Case(inputs=[(2, 1)] * 12, name="many"),
]
ERRORS = [
    Error(inputs=[(2, 3), (2, 3)], args={"axis": 2}, match="argument 'axis'", name="axis"),
    Error(inputs=[(2, 3), (3, 2)], match=r"argument 'x\[1\]'", name="sizes"),
    Error(inputs=[(2, 3), (3,)], match=r"argument 'x\[1\]'", name="ndim"),
    Error(inputs=[(), ()], match="argument 'x'", name="0-d"),
    Error(inputs=[], match="at least 1 input", kind=(ValueError, TypeError, AssertionError), name="nothing"),
]
