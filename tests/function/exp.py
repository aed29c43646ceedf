"""`exp`: e to the power x."""

import numpy as np

from function.case import Case


def reference(x):
    return np.exp(x)


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
