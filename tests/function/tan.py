"""`tan`: the tangent of radians."""

import numpy as np

from function.case import Case, uniform


def reference(x):
    return np.tan(x)


CASES = [
    Case(inputs=[uniform(-1.2, 1.2, 2, 3)], elementwise=True),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
