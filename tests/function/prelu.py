"""`prelu`: x where not negative, a learned slope times x elsewhere: one slope, or one for each place of an axis."""

import numpy as np

from function.case import Case, Error, distinct


def reference(x0, x1, base_axis=1):
    if x1.size == 1:
        slope = x1.reshape(())
    else:
        shape = [1] * x0.ndim
        shape[base_axis] = x1.size
        slope = x1.reshape(shape)
    return np.where(x0 >= 0, x0, slope * x0)


CASES = [
    Case(inputs=[distinct(2, 3), (3,)], reshaped=[distinct(4, 3), (3,)]),
    Case(name="one_slope", inputs=[distinct(2, 3), (1,)], oracle_grad=False, reason="NNabla gives (3,) for (1,)"),
    Case(name="0-d_slope", inputs=[distinct(2, 3), ()]),
    Case(name="channels", inputs=[distinct(2, 3, 2), (3,)]),
    Case(name="axis_0", inputs=[distinct(2, 3), (2,)], args={"base_axis": 0}),
    Case(name="negative_axis", inputs=[distinct(2, 3, 2), (2,)], args={"base_axis": -1}),
    Case(
        name="kink",
        inputs=[[0.0, -0.0, 2.0, -2.0], [0.5]],
        args={"base_axis": 0},
        grad=lambda gy, x, w, base_axis: (
            np.where(x >= 0, gy, w * gy),
            np.sum(np.where(x < 0, gy * x, 0.0), keepdims=True),
        ),
        second=False,
    ),
    Case(
        name="corners",
        inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0], [0.25]],
        args={"base_axis": 0},
        differentiable=False,
    ),
]

ERRORS = [
    Error(name="slopes", inputs=[(2, 3), (2,)], match="argument 'x1'", kind=ValueError),
    Error(name="rank_of_slopes", inputs=[(2, 3), (2, 3)], match="argument 'x1'", kind=ValueError),
    Error(name="axis", inputs=[(2, 3), (1,)], args={"base_axis": 5}, kind=ValueError, match="argument 'base_axis'"),
    Error(name="axis_of_1-d", inputs=[(3,), (1,)], kind=ValueError, match="argument 'base_axis'"),
]
