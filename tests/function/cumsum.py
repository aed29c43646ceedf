"""`cumsum`: sums along an axis up to each element; the first axis by default."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, axis: int | None = None, exclusive: bool = False, reverse: bool = False) -> np.ndarray:
    axis = 0 if axis is None else axis
    x = np.flip(x, axis) if reverse else x
    y = np.cumsum(x, axis)
    y = y - x if exclusive else y
    return np.flip(y, axis) if reverse else y


CASES = [
    Case(inputs=[(4, 3)], name="default is the first axis", reshaped=[(2, 5)]),
    Case(inputs=[(2, 5)], args={"axis": 1}, name="last"),
    Case(inputs=[(2, 3, 4)], args={"axis": -2}, name="negative axis"),
    Case(inputs=[(2, 5)], args={"axis": 1, "exclusive": True}, name="exclusive"),
    Case(inputs=[(5, 2)], args={"reverse": True}, name="reverse"),
    Case(inputs=[(2, 4, 3)], args={"axis": 1, "exclusive": True, "reverse": True}, name="both"),
    Case(inputs=[(2, 3, 70)], args={"axis": 1}, name="lines beside each other"),
    Case(inputs=[(2, 600)], args={"axis": 1, "reverse": True}, name="long lines", types=("float", "double")),
    Case(inputs=[(3, 1)], args={"axis": 1, "exclusive": True}, name="one element a line"),
    Case(inputs=[[[1, 2, 3], [4, 5, 6]]], name="integers"),
    Case(inputs=[(0, 3)], name="no rows", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(3, 0)], name="no columns", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axis": 2}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": -3}, match="argument 'axis'"),
    Error(inputs=[()], match="argument 'axis'", name="0-d"),
    Error(inputs=[(2, 3)], args={"axis": "a"}, match="argument 'axis'", kind=(TypeError, ValueError)),
]
