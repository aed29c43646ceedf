"""`binary_sigmoid`: 1 where positive, 0 elsewhere; the gradient is half of gy where |x| < 1."""

import numpy as np

from function.case import Case


def reference(x):
    return np.where(x > 0, 1.0, 0.0)


def grad(gy, x):
    return np.where(np.abs(x) >= 1, 0.0, 0.5 * gy)


CASES = [
    Case(inputs=[(2, 3)], kinks=[-1, 0, 1], elementwise=True, grad=grad),
    Case(name="kinks", inputs=[[-1.0, 1.0, 0.0, -0.0, np.nan, np.inf]], grad=grad, second=False),
]
