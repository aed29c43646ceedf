"""`pow2`: x0 to the power x1."""

import numpy as np

from function.case import Case, Error, positive


def reference(x0, x1, inplace=False):
    return np.power(x0, x1)


UNREDUCED = "nn.grad of NNabla does not sum over the stretched dimensions"


CASES = [
    Case(inputs=[positive(2, 3), (2, 3)], elementwise=True),
    Case(name="broadcast", inputs=[positive(2, 1, 3), (1, 4, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="broadcast_second", inputs=[positive(2, 3), (1, 3)], oracle_grad=False, reason=UNREDUCED),
    Case(name="inplace", inputs=[positive(2, 3), (2, 3)], args={"inplace": True}),
    Case(name="negative_base", inputs=[[-2.0, -2.0, -3.0, 0.0], [2.0, 3.0, -1.0, 2.0]], differentiable=False),
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
