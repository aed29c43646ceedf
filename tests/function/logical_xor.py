"""`logical_xor`: 1 where exactly one is true (not 0; NaN is true), 0 elsewhere."""

import numpy as np

from function.families import LOGIC, SHAPES


def reference(x0, x1):
    return np.logical_xor(x0, x1)


CASES = LOGIC
ERRORS = SHAPES
