"""`sub2`: x0 - x1."""

import numpy as np

from function.case import Case, Error


def reference(x0, x1, inplace=False):
    return x0 - x1


CASES = [
    Case(inputs=[(2, 3), (2, 3)], elementwise=True),
    Case(name="broadcast", inputs=[(2, 1, 3), (1, 4, 3)]),
    Case(name="broadcast_second", inputs=[(2, 3), (1, 3)]),
    Case(name="inplace", inputs=[(2, 3), (2, 3)], args={"inplace": True}),
    Case(
        name="corners",
        inputs=[
            [np.nan, np.nan, 1.0, np.inf, np.inf, -np.inf, 0.0, 0.0, -0.0, -2.0, 2.0],
            [np.nan, 2.0, np.nan, np.inf, -np.inf, 1.0, 0.0, -2.0, 0.0, -0.0, 3.0],
        ],
        differentiable=False,
    ),
    Case(name="ranks", inputs=[(2, 3), (3,)], oracle=False, reason="NNabla wants equal numbers of axes"),
]

ERRORS = [
    Error(name="shapes", inputs=[(2, 3), (2, 2)], match="argument 'x1'", kind=ValueError),
]
