"""`r_sub_scalar`: val - x."""

import numpy as np

from function.case import Case
from function.families import VAL


def reference(x, val=1):
    return val - x


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="val_2.5", inputs=[(2, 3)], args={"val": 2.5}),
    Case(name="val_-1", inputs=[(2, 3)], args={"val": -1}),
    Case(name="val_0", inputs=[(2, 3)], args={"val": 0}),
    Case(
        name="corners",
        inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]],
        args={"val": 0.5},
        differentiable=False,
    ),
]

ERRORS = VAL
