"""`reduce_sum`: the sum of all elements."""

from __future__ import annotations

import numpy as np

from function.case import Case


def reference(x: np.ndarray) -> np.ndarray:
    return np.asarray(x.sum())


NO_RULE = {"oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}
CASES = [
    Case(inputs=[(2, 3)], reshaped=[(4, 2)], **NO_RULE),
    Case(inputs=[()], name="0-d", **NO_RULE),
    Case(inputs=[(0, 3)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[[np.nan, 1.0]], name="NaN", differentiable=False),
]
