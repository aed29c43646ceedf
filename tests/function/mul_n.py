"""`mul_n`: the product of any number of arrays of one shape."""

import numpy as np

from function.case import Case, Error


def reference(*xs):
    return np.prod(np.stack(xs), axis=0)


CASES = [
    Case(inputs=[(2, 3), (2, 3), (2, 3)], elementwise=True),
    Case(name="one", inputs=[(2, 3)]),
    Case(name="five", inputs=[(3,), (3,), (3,), (3,), (3,)]),
    Case(name="corners", inputs=[[np.nan, np.inf, 0.0, -0.0], [1.0, -np.inf, 2.0, -0.0]], differentiable=False),
    Case(
        name="zeros",
        inputs=[[0.0, 0.0, 2.0], [3.0, 0.0, 3.0], [5.0, 6.0, 4.0]],
        oracle=False,
        reason="NNabla divides the product by each factor, so its gradient is NaN at 0",
    ),
]

ERRORS = [
    Error(name="shapes", inputs=[(2, 3), (1, 3)], match="argument 'x'", kind=ValueError),
    Error(name="none", inputs=[], match="at least 1 input", kind=(TypeError, ValueError)),
]
