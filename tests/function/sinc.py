"""`sinc`: sin(x) / x, 1 at 0 (no pi)."""

import numpy as np

from function.case import Case


def reference(x):
    return np.sinc(x / np.pi)


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="zero", inputs=[[0.0, -0.0, 2.0]], second=False),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf]], differentiable=False),
]
