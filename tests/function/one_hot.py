"""`one_hot`: ones at the places named by the last axis of x, zeros elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error, integers


def reference(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    y = np.zeros((*x.shape[:-1], *shape))
    for at in np.ndindex(*x.shape[:-1]):
        place = [int(i) + (n if i <= -1 else 0) for i, n in zip(x[at], shape, strict=True)]
        if all(0 <= i < n for i, n in zip(place, shape, strict=True)):
            y[(*at, *place)] = 1.0
    return y


CASES = [
    Case(inputs=[integers(0, 4, 3, 1)], args={"shape": (4,)}, reshaped=[integers(0, 4, 5, 1)], name="classes"),
    Case(inputs=[[[0, 2], [1, 1]]], args={"shape": [2, 3]}, name="two axes"),
    Case(inputs=[integers(0, 3, 2, 2, 1)], args={"shape": (3,)}, name="batch of two axes"),
    Case(inputs=[[1]], args={"shape": (3,)}, name="1-d"),
    Case(inputs=[[[0.0], [1.7]]], args={"shape": (3,)}, differentiable=False, name="floats are truncated"),
    Case(inputs=[[[-1], [-3]]], args={"shape": (3,)}, name="from the end"),
    Case(inputs=[[[3], [-4], [7]]], args={"shape": (3,)}, name="out of range"),
    Case(inputs=[[[0, 3], [1, 0]]], args={"shape": (2, 3)}, name="one place out of range"),
    Case(inputs=[integers(0, 3, 0, 1)], args={"shape": (3,)}, name="empty"),
]
ERRORS = [
    Error(inputs=[[0, 1]], args={"shape": (3,)}, match="argument 'x'", name="last axis"),
    Error(inputs=[[[0, 1, 2]]], args={"shape": (3, 3)}, match="argument 'x'", name="last axis is longer"),
    Error(inputs=[[[0]]], args={"shape": ()}, match="argument 'x'", name="no shape"),
    Error(inputs=[[[0]]], args={"shape": 4}, match="argument 'shape'", kind=(TypeError, ValueError), name="int"),
    Error(
        inputs=[np.asarray(1)],
        args={"shape": (3,)},
        match="argument 'x'",
        oracle=False,
        reason="NNabla dies",
        name="0-d",
    ),
]
