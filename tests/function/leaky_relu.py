"""`leaky_relu`: x where positive, alpha times x elsewhere."""

import numpy as np

from function.case import Case, Error


def reference(x, alpha=0.1, inplace=False):
    return np.where(x > 0, x, alpha * x)


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], elementwise=True),
    Case(
        name="kink",
        inputs=[[0.0, -0.0, np.nan, 2.0, -np.inf]],
        grad=lambda gy, x: np.where(x > 0, gy, 0.1 * gy),
        second=False,
    ),
    Case(name="alpha", inputs=[(2, 3)], kinks=[0], args={"alpha": 0.3}),
    Case(name="negative_alpha", inputs=[(2, 3)], kinks=[0], args={"alpha": -0.5}),
    Case(name="inplace", inputs=[(2, 3)], kinks=[0], args={"inplace": True}),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]

ERRORS = [
    Error(name="alpha", inputs=[(2, 3)], args={"alpha": "a"}, kind=TypeError, match="argument 'alpha'"),
]
