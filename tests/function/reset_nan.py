"""`reset_nan`: x with val in place of NaN, where the gradient is 0."""

import numpy as np

from function.case import Case


def reference(x, val=0):
    return np.where(np.isnan(x), val, x)


CASES = [
    Case(inputs=[(2, 3)], elementwise=True, oracle_grad=False, reason="NNabla has none of reset_nan"),
    Case(
        name="corners",
        inputs=[[np.nan, np.inf, -np.inf, 0.0, 1.5]],
        args={"val": 7.0},
        grad=lambda gy, x, val: np.where(np.isnan(x), 0.0, gy),
        second=False,
    ),
    Case(name="default", inputs=[[np.nan, np.inf, -np.inf, 2.0]], differentiable=False),
]
