"""`mish`: x tanh(log(1 + exp(x)))."""

import numpy as np

from function.case import Case


def reference(x):
    return x * np.tanh(np.logaddexp(0, x))


CASES = [
    Case(inputs=[(2, 3)], elementwise=True, oracle_grad=False, reason="NNabla has none of mish"),
    Case(
        name="far",
        inputs=[[20.0, -20.0, 80.0, -80.0]],
        oracle=False,
        reason="NNabla's gradient is NaN from x = 30 on",
    ),
    Case(name="corners", inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]], differentiable=False),
]
