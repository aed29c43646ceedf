"""`swish`: x sigmoid(x)."""

import numpy as np

from function.case import Case


def reference(x):
    return x / (1 + np.exp(-x))


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="far", inputs=[[20.0, -20.0, 80.0, -80.0]], types=("float", "double")),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
