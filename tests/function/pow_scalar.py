"""`pow_scalar`: x to the power val; 0.5 is the square root (NaN of -inf)."""

import numpy as np

from function.case import Case, positive
from function.families import VAL


def reference(x, val=1, inplace=False):
    return np.sqrt(x) if val == 0.5 else np.power(x, val)


CASES = [
    Case(inputs=[positive(2, 3)], elementwise=True),
    Case(name="val_2.5", inputs=[positive(2, 3)], args={"val": 2.5}),
    Case(name="val_-1", inputs=[positive(2, 3)], args={"val": -1}),
    Case(name="val_0", inputs=[positive(2, 3)], args={"val": 0}),
    Case(name="val_0.5", inputs=[positive(2, 3)], args={"val": 0.5}),
    Case(name="val_2", inputs=[positive(2, 3)], args={"val": 2}),
    Case(name="inplace", inputs=[positive(2, 3)], args={"val": 2, "inplace": True}),
    Case(name="negative_base", inputs=[[-2.0, -0.5, 1.5]], args={"val": 3}),
    Case(
        name="one",
        inputs=[[np.nan, np.inf, 0.0, -1.0]],
        args={"val": 1},
        grad=lambda gy, x, val: gy,
        second=False,
    ),
    Case(
        name="corners",
        inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]],
        args={"val": 0.5},
        differentiable=False,
    ),
]

ERRORS = VAL
