"""`prune`: the numbers of smallest magnitude set to zero."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, distinct, floats


def reference(x: np.ndarray, rate: float = 0.9) -> np.ndarray:
    if rate == 1 or x.size == 0:
        return 0 * x
    limit = np.sort(np.abs(x), None)[int(np.float32(x.size - 1) * np.float32(rate))]
    return np.where(np.abs(x) < limit, 0, x)


ONLY = {"grad": lambda gy, x, rate=0.9: gy, "second": False}
CASES = [
    Case(inputs=[distinct(4, 5)], **ONLY, reshaped=[distinct(3, 2)]),
    Case(inputs=[distinct(3, 5)], args={"rate": 0.5}, name="half", **ONLY),
    Case(inputs=[distinct(3, 5)], args={"rate": 0.0}, name="none", **ONLY),
    Case(inputs=[distinct(3, 5)], args={"rate": 1.0}, name="all", **ONLY),
    Case(inputs=[distinct(11)], args={"rate": 0.7}, name="a whole rank", **ONLY),
    Case(inputs=[floats(-3, 4, 4, 6)], args={"rate": 0.6}, name="ties", **ONLY),
    Case(inputs=[distinct(50, 60, step=1)], name="large", types=("double",), differentiable=False),
    Case(
        inputs=[[1.0, np.nan, 2.0, 3.0, -np.inf]],
        args={"rate": 0.5},
        name="corners",
        differentiable=False,
        oracle=False,
        reason="NaN is anywhere",
    ),
    Case(inputs=[()], name="0-d", **ONLY),
    Case(inputs=[(0, 3)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"rate": -0.1}, match="argument 'rate'"),
    Error(inputs=[(2, 3)], args={"rate": 1.5}, match="argument 'rate'", name="above"),
    Error(inputs=[(2, 3)], args={"rate": float("nan")}, match="argument 'rate'", name="NaN"),
]
