"""`isnan`: 1 where x is NaN."""

import numpy as np

from function.case import Case


def reference(x):
    return np.isnan(x)


CASES = [
    Case(inputs=[(2, 3)], elementwise=True, differentiable=False),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
