"""`logical_or`: 1 where one or both are true (not 0; NaN is true), 0 elsewhere."""

import numpy as np

from function.case import Case, Error, floats


def reference(x0, x1):
    return np.logical_or(x0, x1)


CASES = [
    Case(inputs=[floats(-1, 2, 2, 3), floats(-1, 2, 2, 3)], elementwise=True, differentiable=False),
    Case(name="broadcast", inputs=[floats(-1, 2, 2, 1, 3), floats(-1, 2, 1, 4, 3)], differentiable=False),
    Case(name="broadcast_second", inputs=[floats(-1, 2, 2, 3), floats(-1, 2, 1, 3)], differentiable=False),
    Case(
        name="corners",
        inputs=[
            [np.nan, np.nan, 1.0, np.inf, np.inf, -np.inf, 0.0, 0.0, -0.0, -2.0, 2.0],
            [np.nan, 2.0, np.nan, np.inf, -np.inf, 1.0, 0.0, -2.0, 0.0, -0.0, 3.0],
        ],
        differentiable=False,
    ),
    Case(
        name="ranks",
        inputs=[(2, 3), (3,)],
        differentiable=False,
        oracle=False,
        reason="NNabla wants equal numbers of axes",
    ),
]

ERRORS = [
    Error(name="shapes", inputs=[(2, 3), (2, 2)], match="argument 'x1'", kind=ValueError),
]
