"""`logical_xor_scalar`: 1 where exactly one is true of x0 and val, 0 elsewhere."""

import numpy as np

from function.families import LOGIC_SCALAR


def reference(x0, val):
    return np.logical_xor(x0, val)


CASES = LOGIC_SCALAR
