"""`scatter_add`: elements added along an axis to the places that indices name."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x0: np.ndarray, indices: np.ndarray, x1: np.ndarray, axis: int | None = None) -> np.ndarray:
    y = x0.copy()
    for at in np.ndindex(*indices.shape):
        to = list(at)
        to[axis or 0] = int(indices[at])
        y[tuple(to)] += x1[at]
    return y


MISSING = {"oracle_grad": False, "reason": "NNabla has no nn.grad of scatter_add"}
CASES = [
    Case(inputs=[(3, 2), [[0, 1], [2, 1]], (2, 2)], name="default", **MISSING),
    Case(inputs=[(3, 2), [[0, 1], [1, 1]], (2, 2)], args={"axis": 1}, name="axis", **MISSING),
    Case(inputs=[(3, 2), [[0, 1], [1, 1]], (2, 2)], args={"axis": -1}, name="negative axis", **MISSING),
    Case(inputs=[(3, 2), [[0]], (2, 2)], name="fewer indices", **MISSING),
    Case(inputs=[(3, 2), [[0], [1]], (5, 1)], name="longer x1", **MISSING),
    Case(inputs=[(3, 2, 2), [[[0, 1]], [[2, 1]]], (2, 2, 2)], name="3-d", **MISSING),
]
ERRORS = [
    Error(inputs=[(3, 2), [[3, 1]], (2, 2)], match="argument 'indices'", name="out of range", host=True),
    Error(inputs=[(3, 2), [[-1, 1]], (2, 2)], match="argument 'indices'", name="negative index", host=True),
    Error(inputs=[(3, 2), [[0, 1], [2, 1], [0, 0]], (2, 2)], match="argument 'indices'", name="more indices than x1"),
    Error(inputs=[(3, 2), [[0, 1, 1]], (1, 3)], match="argument 'indices'", name="wider than x0"),
    Error(inputs=[(3, 2), [0, 1], (2,)], match="argument 'indices'", name="ndim"),
    Error(
        inputs=[(3, 2), [[0, 1]], (2, 2)],
        args={"axis": 2},
        match="argument 'axis'",
        oracle=False,
        reason="not looked at",
        name="axis",
    ),
]
