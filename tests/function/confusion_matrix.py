"""`confusion_matrix`: how often each class was taken for which."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, distinct, integers


def reference(x: np.ndarray, target: np.ndarray, axis: int | None = None) -> np.ndarray:
    axis = -1 if axis is None else axis
    rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    labels = np.moveaxis(target, axis, -1).reshape(-1)
    y = np.zeros((x.shape[axis],) * 2, int)
    for row, label in zip(rows, labels, strict=True):
        found = 0
        for k, v in enumerate(row):
            found = k if v > row[found] else found
        if label >= 0:
            y[label, found] += 1
    return y


CASES = [
    Case(
        inputs=[distinct(8, 3), integers(0, 3, 8, 1)],
        need_grad=(False, False),
        differentiable=False,
        reshaped=[distinct(5, 4), integers(0, 4, 5, 1)],
    ),
    Case(inputs=[distinct(2, 4, 3), integers(0, 4, 2, 1, 3)], args={"axis": 1}, name="axis", differentiable=False),
    Case(inputs=[distinct(4, 6), integers(0, 4, 1, 6)], args={"axis": -2}, name="from the end", differentiable=False),
    Case(inputs=[[[1.0, 1.0], [0.0, 0.0]], [[0], [1]]], name="ties", differentiable=False),
    Case(inputs=[[[1.0, 2.0], [3.0, 0.0]], [[-1], [1]]], name="left out", differentiable=False),
    Case(inputs=[[[1.0, np.nan], [np.nan, 1.0]], [[0], [0]]], name="NaN", differentiable=False),
]
ERRORS = [
    Error(inputs=[(2, 3), [0, 1]], match="argument 'target'"),
    Error(
        inputs=[(2, 3), [[0], [3]]],
        match="argument 'target'.*less than 3",
        name="label",
        host=True,
        oracle=False,
        reason="left out",
    ),
    Error(inputs=[(2, 3), [[0], [1]]], args={"axis": 2}, match="argument 'axis'", name="axis"),
]
