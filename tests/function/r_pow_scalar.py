"""`r_pow_scalar`: val to the power x."""

import numpy as np

from function.case import Case
from function.families import VAL


def reference(x, val=1):
    return np.power(float(val), x)


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="val_2.5", inputs=[(2, 3)], args={"val": 2.5}),
    Case(name="val_0.5", inputs=[(2, 3)], args={"val": 0.5}),
    Case(
        name="corners",
        inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]],
        args={"val": 0.5},
        differentiable=False,
    ),
]

ERRORS = VAL
