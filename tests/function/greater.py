"""`greater`: 1 where x0 > x1, 0 elsewhere; NaN compares as in IEEE 754."""

from function.families import COMPARISONS, SHAPES


def reference(x0, x1):
    return x0 > x1


CASES = COMPARISONS
ERRORS = SHAPES
