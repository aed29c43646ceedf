"""`logical_and`: 1 where both are true (not 0; NaN is true), 0 elsewhere."""

import numpy as np

from function.families import LOGIC, SHAPES


def reference(x0, x1):
    return np.logical_and(x0, x1)


CASES = LOGIC
ERRORS = SHAPES
