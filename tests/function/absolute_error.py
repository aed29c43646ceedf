"""`absolute_error`: |x0 - x1|; where they are equal the gradient of x0 is -1."""

import numpy as np

from function.case import Case, Error, distinct, uniform


def reference(x0, x1):
    return np.abs(x0 - x1)


UNREDUCED = "nn.grad of NNabla does not sum over the stretched dimensions"


CASES = [
    Case(inputs=[distinct(2, 3, step=0.5), uniform(-0.1, 0.1, 2, 3)], elementwise=True),
    Case(
        name="broadcast",
        inputs=[distinct(2, 1, 3, step=0.5), uniform(-0.1, 0.1, 1, 4, 3)],
        oracle_grad=False,
        reason=UNREDUCED,
    ),
    Case(
        name="broadcast_second",
        inputs=[distinct(2, 3, step=0.5), uniform(-0.1, 0.1, 1, 3)],
        oracle_grad=False,
        reason=UNREDUCED,
    ),
    Case(
        name="ties",
        inputs=[[1.0, 2.0, 0.0], [1.0, 1.0, 3.0]],
        grad=lambda gy, x0, x1: (np.where(x0 > x1, gy, -gy), np.where(x0 > x1, -gy, gy)),
        second=False,
    ),
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
