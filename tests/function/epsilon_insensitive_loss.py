"""`epsilon_insensitive_loss`: |x0 - x1| - epsilon where that is positive, 0 elsewhere (NaN too)."""

import numpy as np

from function.case import Case, Error, distinct, uniform


def reference(x0, x1, epsilon):
    return np.where(np.abs(x0 - x1) > epsilon, np.abs(x0 - x1) - epsilon, 0.0)


def grad(gy, x0, x1, epsilon):
    gx = np.where(np.abs(x0 - x1) > epsilon, np.sign(x0 - x1) * gy, 0.0)
    return gx, -gx


UNREDUCED = "nn.grad of NNabla does not sum over the stretched dimensions"


CASES = [
    Case(inputs=[distinct(2, 3, step=0.5), uniform(-0.1, 0.1, 2, 3)], args={"epsilon": 0.5}, elementwise=True),
    Case(
        name="broadcast",
        inputs=[distinct(2, 1, 3, step=0.5), uniform(-0.1, 0.1, 1, 4, 3)],
        args={"epsilon": 0.5},
        oracle_grad=False,
        reason=UNREDUCED,
    ),
    Case(
        name="broadcast_second",
        inputs=[distinct(2, 3, step=0.5), uniform(-0.1, 0.1, 1, 3)],
        args={"epsilon": 0.5},
        oracle_grad=False,
        reason=UNREDUCED,
    ),
    Case(
        name="edge",
        inputs=[[0.5, -0.5, 0.0, 3.0, -3.0], [0.0, 0.0, 0.0, 0.0, 0.0]],
        args={"epsilon": 0.5},
        grad=grad,
        second=False,
    ),
    Case(
        name="corners",
        inputs=[
            [np.nan, np.nan, 1.0, np.inf, np.inf, -np.inf, 0.0, 0.0, -0.0, -2.0, 2.0],
            [np.nan, 2.0, np.nan, np.inf, -np.inf, 1.0, 0.0, -2.0, 0.0, -0.0, 3.0],
        ],
        args={"epsilon": 0.5},
        differentiable=False,
    ),
]

ERRORS = [
    Error(name="shapes", inputs=[(2, 3), (2, 2)], args={"epsilon": 0.5}, match="argument 'x1'", kind=ValueError),
    Error(name="epsilon", inputs=[(2, 3), (2, 3)], kind=TypeError, match="argument: 'epsilon'"),
]
