"""`relu`: x where positive, 0 elsewhere, also at NaN."""

import numpy as np

from function.case import Case


def reference(x, inplace=False):
    return np.where(x > 0, x, 0.0)


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], elementwise=True),
    Case(
        name="kink",
        inputs=[[0.0, -0.0, np.nan, 2.0, -np.inf]],
        grad=lambda gy, x: np.where(x > 0, gy, 0.0),
        second=False,
    ),
    Case(name="inplace", inputs=[(2, 3)], kinks=[0], args={"inplace": True}),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
