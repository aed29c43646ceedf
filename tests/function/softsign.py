"""`softsign`: x / (1 + |x|)."""

import numpy as np

from function.case import Case


def reference(x):
    return x / (1 + np.abs(x))


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], elementwise=True),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
