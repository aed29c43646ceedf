"""`eye_like`: a matrix with ones on a diagonal."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, k: int = 0) -> np.ndarray:
    return np.eye(*x.shape, k)


CASES = [
    Case(inputs=[(3, 3)], differentiable=False, reshaped=[(2, 4)]),
    Case(inputs=[(2, 3)], args={"k": 1}, name="above", differentiable=False),
    Case(inputs=[(4, 3)], args={"k": -2}, name="below", differentiable=False),
    Case(inputs=[(2, 3)], args={"k": 3}, name="beyond", differentiable=False),
    Case(inputs=[(2, 3)], args={"k": -5}, name="before", differentiable=False),
    Case(inputs=[(0, 3)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]

ERRORS = [Error(inputs=[(2, 3, 3)], match="argument 'x'.*two axes")]
