"""`bc_add2`: x0 + x1, an old name of add2."""

from function.case import Case
from function.families import CORNERS_OF_TWO, RANKS, SHAPES


def reference(x0, x1, inplace=False):
    return x0 + x1


CASES = [
    Case(inputs=[(2, 3), (2, 3)], elementwise=True, oracle_grad=False, reason="NNabla fails of bc_add2"),
    Case(name="broadcast", inputs=[(2, 1, 3), (1, 4, 3)], oracle_grad=False, reason="NNabla fails of bc_add2"),
    Case(name="broadcast_second", inputs=[(2, 3), (1, 3)], oracle_grad=False, reason="NNabla fails of bc_add2"),
    CORNERS_OF_TWO,
    RANKS,
]

ERRORS = SHAPES
