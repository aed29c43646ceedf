"""`logical_or_scalar`: 1 where one or both are true of x0 and val, 0 elsewhere."""

import numpy as np

from function.case import Case, floats


def reference(x0, val):
    return np.logical_or(x0, val)


CASES = [
    Case(name="true", inputs=[floats(-1, 2, 2, 4)], args={"val": True}, elementwise=True, differentiable=False),
    Case(name="false", inputs=[floats(-1, 2, 2, 4)], args={"val": False}, differentiable=False),
    Case(name="number", inputs=[[np.nan, 0.0, -0.0, 0.3, np.inf]], args={"val": 2}, differentiable=False),
]
