"""`matrix_diag_part`: diagonals of matrices."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray) -> np.ndarray:
    return np.diagonal(x, axis1=-2, axis2=-1)


CASES = [
    Case(inputs=[(3, 3)], reshaped=[(2, 2)], name="2-d"),
    Case(inputs=[(2, 3, 3)], name="3-d"),
    Case(inputs=[(2, 2, 2, 2)], name="4-d"),
]
ERRORS = [
    Error(inputs=[(3,)], match="argument 'x'", name="1-d"),
    Error(inputs=[()], match="argument 'x'", name="0-d"),
    Error(
        inputs=[(2, 3)], match="argument 'x'", oracle=False, reason="NNabla reads the wrong memory", name="not square"
    ),
]
