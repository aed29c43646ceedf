"""`relu6`: relu that ends at 6."""

import numpy as np

from function.case import Case, normal


def reference(x):
    return np.minimum(np.maximum(x, 0.0), 6.0)


CASES = [
    Case(inputs=[normal(2, 3, mean=3, scale=3)], kinks=[0, 6], elementwise=True),
    Case(
        name="kink",
        inputs=[[0.0, 6.0, np.nan, 7.0, 5.0]],
        grad=lambda gy, x: np.where((x > 0) & (x < 6), gy, 0.0),
        second=False,
    ),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
