"""`hard_tanh`: x, at least -1 and at most 1."""

import numpy as np

from function.case import Case


def reference(x):
    return np.clip(x, -1, 1)


CASES = [
    Case(inputs=[(2, 3)], kinks=[-1, 1], elementwise=True),
    Case(
        name="kink",
        inputs=[[-1.0, 1.0, np.nan, 3.0, -3.0]],
        grad=lambda gy, x: np.where(np.abs(x) <= 1, gy, 0.0),
        second=False,
    ),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
