"""`log`: the natural logarithm; -inf at 0, NaN below."""

import numpy as np

from function.case import Case, positive


def reference(x):
    return np.log(x)


CASES = [
    Case(inputs=[positive(2, 3)], elementwise=True),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
