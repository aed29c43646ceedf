"""`atan2`: the angle of the point (x1, x0)."""

import numpy as np

from function.case import Case, Error, positive


def reference(x0, x1):
    return np.arctan2(x0, x1)


UNREDUCED = "nn.grad of NNabla does not sum over the stretched dimensions"


CASES = [
    Case(inputs=[(2, 3), positive(2, 3)], elementwise=True),
    Case(name="broadcast", inputs=[(2, 1, 3), positive(1, 4, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="broadcast_second", inputs=[(2, 3), positive(1, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="quadrants", inputs=[[1.0, 1.0, -1.0, -1.0, 2.0], [1.0, -1.0, 1.0, -1.0, 0.0]]),
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
