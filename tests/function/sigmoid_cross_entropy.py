"""`sigmoid_cross_entropy`: -t log(sigmoid(x)) - (1 - t) log(1 - sigmoid(x)); labels are cut to integers."""

import numpy as np

from function.case import Case, Error, floats, integers


def reference(x, target):
    # Labels become integers, also floating ones: 0.9 counts as 0.
    return np.logaddexp(0, x) - x * np.trunc(target)


CASES = [
    Case(inputs=[(2, 3), floats(0, 2, 2, 3)], need_grad=[True, False], elementwise=True),
    Case(name="integer_labels", inputs=[(2, 5), integers(-1, 3, 2, 5)]),
    Case(
        name="cut_labels",
        inputs=[(5,), [0.5, 0.9, -0.9, 1.7, -1.5]],
        need_grad=[True, False],
        oracle_grad=False,
        reason="nn.grad of NNabla does not cut the labels, backward does",
    ),
    Case(name="far", inputs=[[80.0, -80.0, 80.0, -80.0], [0, 1, 1, 0]]),
    Case(name="nan", inputs=[[np.nan, 0.0], [1, 0]], differentiable=False),
]

ERRORS = [
    Error(name="shapes", inputs=[(2, 3), (2, 1)], match="argument 'target'", kind=ValueError),
]
