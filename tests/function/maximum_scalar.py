"""`maximum_scalar`: the larger one of x and val; val where they are equal or x is NaN."""

import numpy as np

from function.case import Case
from function.families import VAL


def reference(x, val=1):
    return np.where(x > val, x, val)


CASES = [
    Case(inputs=[(2, 3)], kinks=[1], elementwise=True),
    Case(name="val_0.5", inputs=[(2, 3)], kinks=[0.5], args={"val": 0.5}),
    Case(name="val_-1", inputs=[(2, 3)], kinks=[-1], args={"val": -1}),
    Case(
        name="ties",
        inputs=[[0.5, 0.25, 0.75, np.nan]],
        args={"val": 0.5},
        grad=lambda gy, x, val: np.where(x > val, gy, 0.0),
        second=False,
    ),
    Case(
        name="corners",
        inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]],
        args={"val": 0.5},
        differentiable=False,
    ),
]

ERRORS = VAL
