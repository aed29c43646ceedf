"""`cos`: the cosine of radians."""

import numpy as np

from function.case import Case


def reference(x):
    return np.cos(x)


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="far", inputs=[[100.0, -1000.0, 31415.0]], types=("float", "double"), differentiable=False),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
