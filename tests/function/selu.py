"""`selu`: scale times elu with that alpha."""

import numpy as np

from function.case import Case


def reference(x, scale=1.05070098735548, alpha=1.673263242354377):
    return scale * np.where(x > 0, x, alpha * np.expm1(x))


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], elementwise=True),
    Case(
        name="kink",
        inputs=[[0.0, -0.0, 2.0]],
        args={"scale": 2.0, "alpha": 0.5},
        grad=lambda gy, x, scale, alpha: scale * gy * np.where(x > 0, 1.0, alpha * np.exp(x)),
        second=False,
    ),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
