"""`binary_error`: 1 where just one of x and target is one half or more."""

import numpy as np

from function.case import Case, Error, integers, uniform


def reference(x, target):
    return (x >= 0.5) != (target >= 0.5)


CASES = [
    Case(inputs=[uniform(0, 1, 2, 3), integers(0, 2, 2, 3)], elementwise=True, differentiable=False),
    Case(
        name="corners",
        inputs=[[0.5, 0.4, 0.6, np.nan, np.nan, 1.0, -1.0, 0.5], [1.0, 0.0, 0.0, 1.0, 0.0, np.nan, 0.5, 0.4]],
        differentiable=False,
    ),
]

ERRORS = [
    Error(name="shapes", inputs=[(2, 3), (2, 1)], match="argument 'target'", kind=ValueError),
]
