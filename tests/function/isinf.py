"""`isinf`: 1 where x is infinite, of either sign."""

import numpy as np

from function.case import Case


def reference(x):
    return np.isinf(x)


CASES = [
    Case(inputs=[(2, 3)], elementwise=True, differentiable=False),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
