"""`minimum2`: the smaller one; x1 where they are equal or one is NaN."""

import numpy as np

from function.case import Case
from function.families import APART, CORNERS_OF_TWO, RANKS, SHAPES


def reference(x0, x1):
    return np.where(x0 < x1, x0, x1)


CASES = [
    *APART,
    Case(
        name="ties",
        inputs=[[1.0, -2.0, 3.0, np.nan, 5.0], [1.0, -2.0, 4.0, 5.0, np.nan]],
        grad=lambda gy, x0, x1: (np.where(x0 < x1, gy, 0.0), np.where(x1 <= x0, gy, 0.0)),
        second=False,
    ),
    CORNERS_OF_TWO,
    RANKS,
]

ERRORS = SHAPES
