"""`acosh`: the inverse hyperbolic cosine; NaN below 1."""

import numpy as np

from function.case import Case, uniform


def reference(x):
    return np.arccosh(x)


CASES = [
    Case(inputs=[uniform(1.5, 3, 2, 3)], elementwise=True),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, 1.0, 0.5]], differentiable=False),
]
