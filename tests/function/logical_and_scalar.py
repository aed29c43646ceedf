"""`logical_and_scalar`: 1 where both are true of x0 and val, 0 elsewhere."""

import numpy as np

from function.families import LOGIC_SCALAR


def reference(x0, val):
    return np.logical_and(x0, val)


CASES = LOGIC_SCALAR
