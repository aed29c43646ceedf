"""`softplus`: log(1 + exp(beta x)) / beta."""

import numpy as np

from function.case import Case


def reference(x, beta=1.0):
    return np.logaddexp(0, beta * x) / beta


CASES = [
    Case(inputs=[(2, 3)], elementwise=True),
    Case(name="beta", inputs=[(2, 3)], args={"beta": 2.5}),
    Case(name="negative_beta", inputs=[(2, 3)], args={"beta": -1.0}),
    Case(name="far", inputs=[[200.0, -200.0, 30.0, -30.0]], types=("float", "double")),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
