"""`logical_or`: 1 where one or both are true (not 0; NaN is true), 0 elsewhere."""

import numpy as np

from function.families import LOGIC, SHAPES


def reference(x0, x1):
    return np.logical_or(x0, x1)


CASES = LOGIC
ERRORS = SHAPES
