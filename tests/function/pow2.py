"""`pow2`: x0 to the power x1."""

import numpy as np

from function.case import Case, positive
from function.families import CORNERS_OF_TWO, RANKS, SHAPES, UNREDUCED


def reference(x0, x1, inplace=False):
    return np.power(x0, x1)


CASES = [
    Case(inputs=[positive(2, 3), (2, 3)], elementwise=True),
    Case(name="broadcast", inputs=[positive(2, 1, 3), (1, 4, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="broadcast_second", inputs=[positive(2, 3), (1, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="inplace", inputs=[positive(2, 3), (2, 3)], args={"inplace": True}),
    Case(name="negative_base", inputs=[[-2.0, -2.0, -3.0, 0.0], [2.0, 3.0, -1.0, 2.0]], differentiable=False),
    CORNERS_OF_TWO,
    RANKS,
]

ERRORS = SHAPES
