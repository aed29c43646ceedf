"""`less_equal_scalar`: 1 where x0 <= val, 0 elsewhere."""

import numpy as np

from function.case import Case, floats


def reference(x0, val=1):
    return x0 <= val


CASES = [
    Case(inputs=[floats(-2, 3, 2, 4)], elementwise=True, differentiable=False),
    Case(name="val", inputs=[floats(-2, 3, 2, 4)], args={"val": -1}, differentiable=False),
    Case(name="fraction", inputs=[[0.5, 0.25, 0.75, np.nan, np.inf, -np.inf]], args={"val": 0.5}, differentiable=False),
    Case(name="nan", inputs=[[0.5, np.nan]], args={"val": np.nan}, differentiable=False),
]
