"""`hard_sigmoid`: 0.2 x + 0.5, at least 0 and at most 1."""

import numpy as np

from function.case import Case, normal


def reference(x):
    return np.clip(0.2 * x + 0.5, 0, 1)


CASES = [
    Case(inputs=[normal(2, 3, scale=2.5)], kinks=[-2.5, 2.5], elementwise=True),
    Case(
        name="kink",
        inputs=[[-2.5, 2.5, np.nan, 3.0, -3.0]],
        grad=lambda gy, x: np.where(np.abs(x) <= 2.5, 0.2 * gy, 0.0),
        second=False,
    ),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
