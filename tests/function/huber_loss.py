"""`huber_loss`: the squared error near, delta (2 |x0 - x1| - delta) far; no factor 1/2."""

import numpy as np

from function.case import Case, distinct, uniform
from function.families import APART, CORNERS_OF_TWO, RANKS, SHAPES


def reference(x0, x1, delta=1.0):
    return np.where(np.abs(x0 - x1) < delta, (x0 - x1) ** 2, delta * (2 * np.abs(x0 - x1) - delta))


CASES = [
    *APART,
    Case(name="delta", inputs=[distinct(2, 3, step=0.5), uniform(-0.1, 0.1, 2, 3)], args={"delta": 0.5}),
    Case(
        name="edge",
        inputs=[[1.0, -1.0, 0.0, 3.0], [0.0, 0.0, 0.0, 0.0]],
        grad=lambda gy, x0, x1: (2 * gy * np.clip(x0 - x1, -1, 1), -2 * gy * np.clip(x0 - x1, -1, 1)),
        second=False,
    ),
    CORNERS_OF_TWO,
    RANKS,
]

ERRORS = SHAPES
