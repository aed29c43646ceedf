"""`stack`: arrays joined along a new axis."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(*x: np.ndarray, axis: int = 0) -> np.ndarray:
    return np.stack(x, axis=axis)


CASES = [
    Case(inputs=[(2, 3), (2, 3)], reshaped=[(1, 4), (1, 4)], name="default"),
    Case(inputs=[(2, 3), (2, 3), (2, 3)], args={"axis": 1}, name="middle"),
    Case(inputs=[(2, 3), (2, 3)], args={"axis": 2}, name="last"),
    Case(inputs=[(2, 3), (2, 3)], args={"axis": -1}, name="-1 is the last of the output"),
    Case(inputs=[(2, 3), (2, 3)], args={"axis": -3}, name="-3"),
    Case(inputs=[(), ()], name="0-d"),
    Case(inputs=[(2, 3)], name="one"),
]
ERRORS = [
    Error(inputs=[(2, 3), (2, 3)], args={"axis": 3}, match="argument 'axis'", name="axis"),
    Error(inputs=[(2, 3), (2, 3)], args={"axis": -4}, match="argument 'axis'", name="negative axis"),
    Error(inputs=[(2, 3), (3, 2)], match=r"argument 'x\[1\]'", name="shapes"),
    Error(inputs=[], match="at least 1 input", kind=(ValueError, TypeError, AssertionError), name="nothing"),
]
