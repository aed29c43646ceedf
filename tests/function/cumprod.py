"""`cumprod`: products along an axis up to each element; the first axis by default."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, axis: int | None = None, exclusive: bool = False, reverse: bool = False) -> np.ndarray:
    axis = 0 if axis is None else axis
    x = np.flip(x, axis) if reverse else x
    if exclusive and x.shape[axis]:
        one = np.ones_like(np.take(x, [0], axis))
        x = np.concatenate([one, np.take(x, range(x.shape[axis] - 1), axis)], axis)
    y = np.cumprod(x, axis)
    return np.flip(y, axis) if reverse else y


# NNabla's nn.grad has no rule for cumprod.
FIRST = {"oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}
CASES = [
    Case(inputs=[(4, 3)], name="default is the first axis", reshaped=[(2, 5)], **FIRST),
    Case(inputs=[(2, 5)], args={"axis": 1}, name="last", **FIRST),
    Case(inputs=[(2, 3, 4)], args={"axis": -2}, name="negative axis", **FIRST),
    Case(inputs=[(2, 5)], args={"axis": 1, "exclusive": True}, name="exclusive", **FIRST),
    Case(inputs=[(5, 2)], args={"reverse": True}, name="reverse", **FIRST),
    Case(inputs=[(2, 4, 3)], args={"axis": 1, "exclusive": True, "reverse": True}, name="both", **FIRST),
    Case(inputs=[(17, 18)], args={"axis": 1}, name="many lines", second=False, **FIRST),
    Case(
        inputs=[(17, 18)],
        args={"axis": 1, "exclusive": True, "reverse": True},
        name="many lines, both",
        second=False,
        **FIRST,
    ),
    Case(inputs=[[2.0, 0.0, 3.0, -1.5]], name="a zero", **FIRST),
    Case(inputs=[[2.0, 0.0, 3.0, 0.0, 1.5]], name="zeros", **FIRST),
    Case(inputs=[[0.0, 2.0, 3.0]], args={"exclusive": True, "reverse": True}, name="a zero, both", **FIRST),
    Case(inputs=[(3, 1)], args={"axis": 1, "exclusive": True}, name="one element a line", **FIRST),
    Case(inputs=[[[1, 2, 3], [4, 5, 6]]], name="integers"),
    Case(inputs=[[1.0, np.nan, 2.0, np.inf]], name="corners", differentiable=False),
    Case(inputs=[(0, 3)], name="no rows", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(3, 0)], name="no columns", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(2, 11)], args={"axis": 1, "exclusive": True}, name="lines of some steps", **FIRST),
    Case(inputs=[(9, 2)], args={"exclusive": True, "reverse": True}, name="steps, both", **FIRST),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axis": 2}, match="argument 'axis'"),
    Error(inputs=[()], match="argument 'axis'", name="0-d"),
]
