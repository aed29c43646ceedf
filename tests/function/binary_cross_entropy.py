"""`binary_cross_entropy`: -t log(x) - (1 - t) log(1 - x) of probabilities; log(0) is log(1.2e-38)."""

import numpy as np

from function.case import Case, Error, floats, integers, uniform


def reference(x, target):
    # No comparison with NaN may lose it: np.maximum keeps NaN.
    tiny = np.finfo(np.float32).tiny
    return -(target * np.log(np.maximum(x, tiny)) + (1 - target) * np.log(np.maximum(1 - x, tiny)))


CASES = [
    Case(
        inputs=[uniform(0.2, 0.8, 2, 3), uniform(0.2, 0.8, 2, 3)],
        elementwise=True,
        oracle_grad=False,
        reason="nn.grad of NNabla gives zero for the target, backward does not",
    ),
    Case(name="hard_labels", inputs=[uniform(0.2, 0.8, 2, 3), floats(0, 2, 2, 3)], need_grad=[True, False]),
    Case(name="integer_labels", inputs=[uniform(0.2, 0.8, 2, 3), integers(0, 2, 2, 3)]),
    Case(
        name="certain",
        inputs=[[0.0, 0.0, 1.0, 1.0, np.nan], [0.0, 1.0, 0.0, 1.0, 0.0]],
        types=("float",),
        differentiable=False,
    ),
]

ERRORS = [
    Error(name="shapes", inputs=[(2, 3), (2, 1)], match="argument 'target'", kind=ValueError),
]
