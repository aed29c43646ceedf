"""`squared_error`: (x0 - x1)^2."""

from function.case import Case
from function.families import CORNERS_OF_TWO, RANKS, SHAPES, UNREDUCED


def reference(x0, x1):
    return (x0 - x1) ** 2


CASES = [
    Case(inputs=[(2, 3), (2, 3)], elementwise=True),
    Case(name="broadcast", inputs=[(2, 1, 3), (1, 4, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="broadcast_second", inputs=[(2, 3), (1, 3)], oracle_grad=False, reason=UNREDUCED),
    CORNERS_OF_TWO,
    RANKS,
]

ERRORS = SHAPES
