"""`where`: x_true where the condition is not 0, x_false elsewhere; the condition may lack the last dimensions."""

import numpy as np

from function.case import Case, Error, floats


def reference(condition, x_true, x_false):
    condition = condition.reshape(condition.shape + (1,) * (x_true.ndim - condition.ndim))
    return np.where(condition != 0, x_true, x_false)


CASES = [
    Case(inputs=[floats(0, 2, 2, 3), (2, 3), (2, 3)], need_grad=[False, True, True]),
    Case(name="rows", inputs=[[1.0, 0.0], (2, 3), (2, 3)], need_grad=[False, True, True]),
    Case(name="scalar_condition", inputs=[np.array(1.0), (2, 3), (2, 3)], need_grad=[False, True, True]),
    Case(name="0-d", inputs=[np.array(0.0), (), ()], need_grad=[False, True, True]),
    Case(name="integer_condition", inputs=[[3, 0, -1], (3,), (3,)], reshaped=[[0, 1], (2,), (2,)]),
    Case(
        name="condition_gradient",
        inputs=[floats(0, 2, 2, 3), (2, 3), (2, 3)],
        grad=lambda gy, c, t, f: (np.zeros_like(gy), np.where(c != 0, gy, 0.0), np.where(c != 0, 0.0, gy)),
        second=False,
    ),
    Case(
        name="branch_not_taken_is_nan",
        inputs=[[1.0, 0.0, np.nan, np.inf, -0.0], [1.0, np.nan, 3.0, 4.0, np.inf], [np.nan, 2.0, np.nan, 8.0, 9.0]],
        need_grad=[False, True, True],
    ),
    Case(
        name="empty",
        inputs=[np.zeros((2, 0)), np.zeros((2, 0)), np.zeros((2, 0))],
        need_grad=[False, True, True],
        oracle=False,
        reason="NNabla dies of SIGFPE",
    ),
]

ERRORS = [
    Error(name="branches", inputs=[(2, 3), (2, 3), (2, 1)], match="argument 'x_false'", kind=ValueError),
    Error(
        name="condition_not_a_prefix", inputs=[(1, 3), (2, 3), (2, 3)], match="argument 'condition'", kind=ValueError
    ),
    Error(name="condition_of_higher_rank", inputs=[(2, 3), (2,), (2,)], match="argument 'condition'", kind=ValueError),
]
