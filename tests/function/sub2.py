"""`sub2`: x0 - x1."""

from function.families import ARITHMETIC, SHAPES


def reference(x0, x1, inplace=False):
    return x0 - x1


CASES = ARITHMETIC
ERRORS = SHAPES
