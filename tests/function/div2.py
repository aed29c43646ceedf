"""`div2`: x0 / x1."""

from function.case import Case, positive, uniform
from function.families import CORNERS_OF_TWO, RANKS_NO_GRAD, SHAPES


def reference(x0, x1, inplace=False):
    return x0 / x1


CASES = [
    Case(inputs=[(2, 3), positive(2, 3)], elementwise=True),
    Case(name="broadcast", inputs=[(2, 1, 3), positive(1, 4, 3)]),
    Case(name="broadcast_second", inputs=[(2, 3), positive(1, 3)]),
    Case(name="inplace", inputs=[(2, 3), positive(2, 3)], args={"inplace": True}),
    Case(name="negative_divisor", inputs=[(2, 3), uniform(-3, -1, 2, 3)]),
    CORNERS_OF_TWO,
    RANKS_NO_GRAD,
]

ERRORS = SHAPES
