"""`split`: the pieces along an axis, which disappears."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, axis: int = 0) -> tuple[np.ndarray, ...]:
    return tuple(np.moveaxis(x, axis, 0))


CASES = [
    Case(inputs=[(2, 3)], name="default"),
    Case(inputs=[(2, 3)], args={"axis": 1}, name="axis"),
    Case(inputs=[(2, 3, 2)], args={"axis": -2}, name="negative axis"),
    Case(inputs=[(2,)], name="to 0-d"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axis": 2}, match="argument 'axis'", kind=(IndexError, ValueError), name="axis"),
    Error(inputs=[()], match="argument 'axis'", kind=(IndexError, ValueError), name="0-d"),
]
