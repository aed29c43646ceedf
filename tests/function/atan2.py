"""`atan2`: the angle of the point (x1, x0)."""

import numpy as np

from function.case import Case, positive
from function.families import CORNERS_OF_TWO, RANKS, SHAPES, UNREDUCED


def reference(x0, x1):
    return np.arctan2(x0, x1)


CASES = [
    Case(inputs=[(2, 3), positive(2, 3)], elementwise=True),
    Case(name="broadcast", inputs=[(2, 1, 3), positive(1, 4, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="broadcast_second", inputs=[(2, 3), positive(1, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="quadrants", inputs=[[1.0, 1.0, -1.0, -1.0, 2.0], [1.0, -1.0, 1.0, -1.0, 0.0]]),
    CORNERS_OF_TWO,
    RANKS,
]

ERRORS = SHAPES
