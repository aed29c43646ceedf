"""`add_n`: the sum of any number of arrays of one shape."""

import numpy as np

from function.case import Case, Error


def reference(*xs):
    return sum(xs)


CASES = [
    Case(inputs=[(2, 3), (2, 3), (2, 3)], elementwise=True),
    Case(name="one", inputs=[(2, 3)]),
    Case(name="five", inputs=[(3,), (3,), (3,), (3,), (3,)]),
    Case(name="corners", inputs=[[np.nan, np.inf, 0.0, -0.0], [1.0, -np.inf, 2.0, -0.0]], differentiable=False),
]

ERRORS = [
    Error(name="shapes", inputs=[(2, 3), (1, 3)], match="argument 'x'", kind=ValueError),
    Error(name="none", inputs=[], match="at least 1 input", kind=(TypeError, ValueError)),
]
