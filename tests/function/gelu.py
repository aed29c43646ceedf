"""`gelu`: the Gaussian error linear unit by its tanh formula."""

import numpy as np

from function.case import Case


def reference(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="far", inputs=[[3.0, -3.0, 10.0, -10.0]]),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
