"""`matrix_diag`: matrices with x on their diagonals."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray) -> np.ndarray:
    return x[..., None] * np.eye(x.shape[-1])


CASES = [
    Case(inputs=[(3,)], reshaped=[(5,)], name="1-d"),
    Case(inputs=[(2, 3)], name="2-d"),
    Case(inputs=[(1, 2, 2)], name="3-d"),
    Case(inputs=[(2, 1)], name="1x1"),
    Case(inputs=[(0,)], differentiable=False, name="empty"),
]
ERRORS = [
    Error(inputs=[()], match="argument 'x'", oracle=False, reason="NNabla dies", name="0-d"),
]
