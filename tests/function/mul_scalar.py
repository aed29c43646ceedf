"""`mul_scalar`: x times val."""

from function.families import ARITHMETIC_SCALAR, VAL


def reference(x, val=1, inplace=False):
    return x * val


CASES = ARITHMETIC_SCALAR
ERRORS = VAL
