"""`log_sigmoid`: log(sigmoid(x))."""

import numpy as np

from function.case import Case


def reference(x):
    return -np.logaddexp(0, -x)


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="far", inputs=[[200.0, -200.0, 30.0, -30.0]], types=("float", "double")),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
