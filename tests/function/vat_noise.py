"""`vat_noise`: noise of a given norm."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, w: np.ndarray, base_axis: int = 1, eps: float = 1.0) -> np.ndarray:
    axes = tuple(range(base_axis % x.ndim, x.ndim))
    return eps * x / np.sqrt((x * x).sum(axes, keepdims=True) + 1e-8)


def grad(gy, x, w, base_axis=1, eps=1.0):
    return np.zeros_like(x), np.zeros_like(w)


# NNabla's w has the memory of the output's gradient: whatever is there.
SHARED = {"mutates": True}
NONE = {"second": False, "oracle": False, "reason": "NNabla leaves gradients alone that nothing has cleared"}
CASES = [
    Case(inputs=[(2, 3, 2), (2, 3, 2)], differentiable=False, **SHARED),
    Case(inputs=[(2, 3, 2), (2, 3, 2)], args={"base_axis": 2, "eps": 3.0}, differentiable=False, **SHARED, name="eps"),
    Case(inputs=[(2, 3), (2, 3)], args={"base_axis": -1, "eps": -1.0}, differentiable=False, **SHARED, name="negative"),
    Case(
        inputs=[(2, 3), (2, 3)],
        args={"base_axis": 0},
        differentiable=False,
        mutates=True,
        oracle=False,
        reason="NNabla writes nothing then",
        name="one sample",
    ),
    Case(inputs=[np.zeros((2, 3)), (2, 3)], differentiable=False, **SHARED, name="zeros"),
    Case(inputs=[(2, 3), (2, 3)], grad=grad, **SHARED, **NONE, name="no gradient"),
    Case(inputs=[(0, 3), (0, 3)], differentiable=False, **SHARED, name="empty"),
]
ERRORS = [
    Error(inputs=[(2, 3), (3,)], match="argument 'w'", name="another shape"),
    Error(inputs=[(2, 3), (2, 3)], args={"base_axis": 2}, match="argument 'base_axis'", name="base_axis"),
    Error(inputs=[(), ()], args={"base_axis": 0}, match="argument 'base_axis'", name="0-d"),
]
