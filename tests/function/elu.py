"""`elu`: x where not negative, alpha (exp(x) - 1) elsewhere."""

import numpy as np

from function.case import Case


def reference(x, alpha=1.0):
    return np.where(x >= 0, x, alpha * np.expm1(x))


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], elementwise=True),
    Case(
        name="kink",
        inputs=[[0.0, -0.0, -np.inf, 2.0]],
        args={"alpha": 2.0},
        grad=lambda gy, x, alpha: np.where(x >= 0, gy, 2 * gy * np.exp(x)),
        second=False,
    ),
    Case(name="alpha", inputs=[(2, 3)], kinks=[0], args={"alpha": 0.5}),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
