"""`celu`: elu of x and of -x, concatenated along an axis."""

import numpy as np

from function.case import Case, Error


def elu(x, alpha):
    return np.where(x >= 0, x, alpha * np.expm1(x))


def reference(x, alpha=1.0, axis=1):
    return np.concatenate([elu(x, alpha), elu(-x, alpha)], axis=axis)


CASES = [
    Case(inputs=[(2, 3)], kinks=[0], reshaped=[(4, 2)]),
    Case(name="axis_0", inputs=[(3,)], kinks=[0], args={"axis": 0}),
    Case(name="middle_axis", inputs=[(2, 3, 2)], kinks=[0]),
    Case(name="negative_axis", inputs=[(2, 3)], kinks=[0], args={"axis": -2}),
    Case(name="alpha", inputs=[(2, 3)], kinks=[0], args={"alpha": 2.0}),
    Case(name="long rows", inputs=[(2, 130)], args={"axis": 1}, kinks=[0], second=False),
    Case(
        name="kink",
        inputs=[[0.0, -0.0]],
        args={"axis": 0},
        grad=lambda gy, x, axis: gy[:2] - gy[2:],
        second=False,
    ),
    Case(
        name="corners",
        inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]],
        args={"axis": 0},
        differentiable=False,
    ),
    Case(
        name="empty",
        inputs=[np.zeros((2, 0))],
        oracle=False,
        reason="NNabla dies of SIGFPE",
    ),
]

ERRORS = [
    Error(name="axis", inputs=[(2, 3)], args={"axis": 2}, kind=ValueError, match="argument 'axis'"),
    Error(name="negative_axis", inputs=[(2, 3)], args={"axis": -3}, kind=ValueError, match="argument 'axis'"),
    Error(name="0-d", inputs=[()], args={"axis": 0}, kind=ValueError, match="argument 'axis'"),
]
