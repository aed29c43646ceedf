"""`greater_scalar`: 1 where x0 > val, 0 elsewhere."""

from function.families import COMPARISONS_SCALAR


def reference(x0, val=1):
    return x0 > val


CASES = COMPARISONS_SCALAR
