"""`abs`: the absolute value; its gradient at 0 is 1."""

import numpy as np

from function.case import Case


def reference(x):
    return np.abs(x)


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], elementwise=True),
    Case(
        name="kink",
        inputs=[[0.0, -0.0, np.nan, -2.0]],
        grad=lambda gy, x: np.where(x < 0, -gy, gy),
        second=False,
    ),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
