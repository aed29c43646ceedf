"""`absolute_error`: |x0 - x1|; where they are equal the gradient of x0 is -1."""

import numpy as np

from function.case import Case
from function.families import APART, CORNERS_OF_TWO, RANKS, SHAPES


def reference(x0, x1):
    return np.abs(x0 - x1)


CASES = [
    *APART,
    Case(
        name="ties",
        inputs=[[1.0, 2.0, 0.0], [1.0, 1.0, 3.0]],
        grad=lambda gy, x0, x1: (np.where(x0 > x1, gy, -gy), np.where(x0 > x1, -gy, gy)),
        second=False,
    ),
    CORNERS_OF_TWO,
    RANKS,
]

ERRORS = SHAPES
