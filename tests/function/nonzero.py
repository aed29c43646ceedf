"""`nonzero`: where an array is not zero."""

from __future__ import annotations

import numpy as np

from function.case import Case


def reference(x: np.ndarray) -> np.ndarray:
    if x.ndim == 0:
        return np.zeros((0, int(x != 0)))
    return np.array(np.nonzero(x))


CASES = [
    Case(inputs=[[[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]], differentiable=False),
    Case(inputs=[[0, 1, 0, 2]], name="integers", differentiable=False),
    Case(inputs=[[[[1.0], [0.0]], [[-0.0], [5.0]]]], name="axes", differentiable=False),
    Case(inputs=[[[0.0, 0.0]]], name="none", differentiable=False),
    Case(inputs=[[np.nan, -0.0, np.inf]], name="corners", differentiable=False),
    Case(inputs=[()], name="0-d", differentiable=False),
    Case(inputs=[(0, 3)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
