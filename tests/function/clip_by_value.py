"""`clip_by_value`: x, at least min and at most max (numbers or arrays)."""

import numpy as np

from function.case import Case, Error, distinct, uniform


def reference(x, min, max):
    bounded_below = np.where(x > min, x, min)
    return np.where(bounded_below < max, bounded_below, max)


CASES = [
    Case(inputs=[(2, 3)], args={"min": -0.5, "max": 0.75}, kinks=[-0.5, 0.75], elementwise=True),
    Case(name="numpy", inputs=[(2, 3)], args={"min": np.float32(-0.5), "max": np.int64(1)}, kinks=[-0.5, 1]),
    Case(name="numpy half", inputs=[(2, 3)], args={"min": np.float16(-0.5), "max": np.bool_(True)}, kinks=[-0.5, 1]),
    Case(name="integers", inputs=[(2, 3)], args={"min": -1, "max": 1}, kinks=[-1, 1]),
    Case(
        name="arrays",
        inputs=[distinct(2, 3, step=0.5), uniform(-1.1, -0.9, 2, 3), uniform(0.9, 1.1, 2, 3)],
    ),
    Case(
        name="broadcast",
        inputs=[distinct(2, 3, step=0.5), uniform(-1.1, -0.9, 1, 3), uniform(0.9, 1.1, 2, 1)],
        oracle_grad=False,
        reason="nn.grad of NNabla does not sum over the stretched dimensions",
    ),
    Case(name="number_and_array", inputs=[distinct(2, 3, step=0.5), uniform(-1.1, -0.9, 2, 3)], args={"max": 1}),
    Case(
        name="edges",
        inputs=[[-1.0, 1.0, 0.5, 2.0, np.nan]],
        args={"min": -1, "max": 1},
        grad=lambda gy, x, min, max: np.where((x > min) & (x < max), gy, 0.0),
        second=False,
    ),
    Case(name="crossed", inputs=[[-2.0, 0.0, 2.0]], args={"min": 1, "max": -1}, differentiable=False),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf]], args={"min": -1, "max": 1}, differentiable=False),
]

ERRORS = [
    Error(name="none", inputs=[(2, 3)], args={"min": None, "max": 1}, kind=TypeError, match="argument 'min'"),
    Error(name="text", inputs=[(2, 3)], args={"min": 0, "max": "1"}, kind=TypeError, match="argument 'max'"),
]
