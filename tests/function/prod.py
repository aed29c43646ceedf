"""`prod`: product over axes."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, positive


def axes(axis: object) -> object:
    """NumPy takes tuples where NNabla also takes lists."""
    return tuple(axis) if isinstance(axis, list) else axis


def reference(x: np.ndarray, axis: object = None, keepdims: bool = False) -> np.ndarray:
    return np.prod(x, axis=axes(axis), keepdims=keepdims)


CASES = [
    Case(inputs=[positive(2, 3, 4)], name="all"),
    Case(inputs=[positive(2, 3, 4)], args={"axis": 0}, name="axis"),
    Case(inputs=[positive(2, 3, 4)], args={"axis": -1, "keepdims": True}, name="last axis, kept"),
    Case(inputs=[positive(2, 3, 4)], args={"axis": (2, 0)}, name="two axes in any order"),
    Case(inputs=[positive(2, 3, 4)], args={"axis": [0, 1, 2], "keepdims": True}, name="all axes, kept"),
    Case(inputs=[positive(2, 3, 4)], args={"axis": ()}, name="no axis"),
    Case(inputs=[positive()], name="0-d"),
    Case(inputs=[[[1, 5, 2], [7, 3, 4]]], args={"axis": 1}, name="integers"),
    Case(inputs=[(0, 3)], args={"axis": 1}, name="no rows", differentiable=False),
    Case(inputs=[[2.0, -3.0, 0.5]], name="signs"),
    Case(inputs=[[2.0, 0.0, 3.0]], name="a zero", oracle=False, reason="NNabla's gradient is zero everywhere"),
    Case(inputs=[[2.0, 0.0, 0.0]], name="two zeros", second=False),
    Case(
        inputs=[(3, 0)],
        args={"axis": 1},
        name="nothing to multiply",
        oracle=False,
        reason="NNabla dies",
        differentiable=False,
    ),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axis": 2}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": -3}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": (0, 0)}, match="argument 'axis'"),
    Error(inputs=[()], args={"axis": 0}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": "a"}, match="argument 'axis'", kind=(TypeError, ValueError)),
]
