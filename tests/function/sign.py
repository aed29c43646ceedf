"""`sign`: 1 or -1, alpha at 0 and NaN; the gradient passes straight through."""

import numpy as np

from function.case import Case


def reference(x, alpha=1.0):
    return np.where(x > 0, 1.0, np.where(x < 0, -1.0, alpha))


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], elementwise=True, grad=lambda gy, x: gy),
    Case(name="zeros", inputs=[[0.0, -0.0, np.nan, np.inf, -np.inf, 0.5]], grad=lambda gy, x: gy),
    Case(name="alpha", inputs=[[0.0, -0.0, 2.0]], args={"alpha": 0.25}, grad=lambda gy, x, alpha: gy),
    Case(name="alpha_zero", inputs=[[0.0, -3.0, 2.0]], args={"alpha": 0.0}, grad=lambda gy, x, alpha: gy),
]
