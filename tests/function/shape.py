"""`shape`: the sizes of an array."""

from __future__ import annotations

import numpy as np

from function.case import Case


def reference(x: np.ndarray, start: int | None = None, end: int | None = None) -> np.ndarray:
    return np.array(x.shape[slice(start, end or None)])


OTHER = {"oracle": False, "reason": "NNabla gives an array of shape (), or reads foreign memory"}
CASES = [
    Case(inputs=[(2, 3, 4)], name="all", differentiable=False, reshaped=[(5, 2)]),
    Case(inputs=[(2, 3, 4)], args={"start": 1}, name="start", differentiable=False),
    Case(inputs=[(2, 3, 4)], args={"start": 0, "end": 2}, name="both", differentiable=False),
    Case(inputs=[(2, 3, 4)], args={"start": -2, "end": -1}, name="from the end", differentiable=False),
    Case(inputs=[(2, 3)], args={"start": 5, "end": 6}, name="beyond", differentiable=False, **OTHER),
    Case(inputs=[(2, 3)], args={"start": -5, "end": 9}, name="cut", differentiable=False, **OTHER),
    Case(inputs=[(2, 3)], args={"start": 1, "end": 1}, name="none", differentiable=False, **OTHER),
    Case(inputs=[()], name="0-d", differentiable=False, oracle=False, reason="NNabla refuses it"),
    Case(inputs=[(0, 3)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
