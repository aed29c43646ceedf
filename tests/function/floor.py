"""`floor`: the largest integer not above x; the gradient passes straight through."""

import numpy as np

from function.case import Case


def reference(x):
    return np.floor(x)


CASES = [
    Case(inputs=[(2, 3)], kinks=[-1.5, -1, -0.5, 0, 0.5, 1, 1.5], elementwise=True, grad=lambda gy, x: gy),
    Case(name="halves", inputs=[[0.5, -0.5, 1.5, 2.5, -1.5, -2.5, 0.0, -0.0, 3.0]], grad=lambda gy, x: gy),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 1e30]], grad=lambda gy, x: gy, types=("float", "double")),
]
