"""`batch_matmul`: matrix products over leading axes, which are broadcast."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(a: np.ndarray, b: np.ndarray, transpose_a: bool = False, transpose_b: bool = False) -> np.ndarray:
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return a @ b


CASES = [
    Case(inputs=[(2, 3, 4), (2, 4, 5)], reshaped=[(3, 2, 2), (3, 2, 1)], name="plain"),
    Case(inputs=[(2, 4, 3), (2, 4, 5)], args={"transpose_a": True}, name="a transposed"),
    Case(inputs=[(2, 3, 4), (2, 5, 4)], args={"transpose_b": True}, name="b transposed"),
    Case(inputs=[(2, 4, 3), (2, 5, 4)], args={"transpose_a": True, "transpose_b": True}, name="both transposed"),
    Case(inputs=[(1, 3, 4), (2, 4, 5)], name="a broadcast"),
    Case(inputs=[(2, 3, 4), (1, 4, 5)], name="b broadcast"),
    Case(inputs=[(2, 1, 3, 2), (1, 3, 2, 2)], name="both broadcast"),
    Case(inputs=[(1, 1, 1), (1, 1, 1)], name="ones"),
    Case(inputs=[(1, 17, 33), (1, 33, 5)], second=False, name="odd sizes"),
    Case(inputs=[(2, 3, 0), (2, 0, 5)], differentiable=False, name="nothing to sum"),
    Case(inputs=[(0, 3, 4), (0, 4, 5)], differentiable=False, name="empty", oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3, 4), (3, 4, 5)], match="argument 'b'", name="batch"),
    Error(inputs=[(2, 3, 4), (2, 5, 4)], match="argument 'b'", name="inner size"),
    Error(
        inputs=[(2, 3, 4), (2, 4, 5)], args={"transpose_a": True}, match="argument 'b'", name="transposed inner size"
    ),
]
