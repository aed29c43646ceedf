"""`logical_not`: 1 where x0 is 0, 0 elsewhere (NaN is true)."""

import numpy as np

from function.case import Case, floats


def reference(x0):
    return np.logical_not(x0)


CASES = [
    Case(inputs=[floats(-1, 2, 2, 4)], elementwise=True, differentiable=False),
    Case(name="corners", inputs=[[np.nan, 0.0, -0.0, 0.3, np.inf]], differentiable=False),
]
