"""`identity`: x itself, in its own type."""

import numpy as np

from function.case import Case


def reference(x):
    return x


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="integers", inputs=[[1, -2, 16777217]], types=("float",), differentiable=False),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
