"""`asin`: the arc sine; NaN outside [-1, 1]."""

import numpy as np

from function.case import Case, uniform


def reference(x):
    return np.arcsin(x)


CASES = [
    Case(inputs=[uniform(-0.8, 0.8, 2, 3)], elementwise=True),
    Case(name="corners", inputs=[[np.nan, np.inf, 0.0, -0.0, 1.0, -1.0, 1.5]], differentiable=False),
]
