"""`batch_inv`: inverses of many matrices."""

from __future__ import annotations

import numpy as np

from function.batch_det import WIDE, regular
from function.case import Case, Error


def reference(x: np.ndarray) -> np.ndarray:
    return np.array([np.linalg.inv(m) if np.linalg.matrix_rank(m) == len(m) else m * np.nan for m in x]).reshape(
        x.shape
    )


CASES = [
    Case(inputs=[regular(2, 3, 3)], reshaped=[regular(3, 2, 2)], tolerance=WIDE),
    Case(inputs=[regular(1, 1, 1)], name="numbers", tolerance=WIDE),
    Case(inputs=[[[[0.0, 1.0], [2.0, 0.0]]]], name="pivots", tolerance=WIDE),
    Case(inputs=[regular(2, 9, 9)], name="larger", differentiable=False, types=("float", "double")),
    Case(
        inputs=[[[[1.0, 2.0], [2.0, 4.0]]]],
        name="singular",
        differentiable=False,
        oracle=False,
        reason="NNabla gives infinities",
    ),
    Case(inputs=[(0, 2, 2)], name="none", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(2, 0, 0)], name="no rows", oracle=False, reason="NNabla dies"),
    Case(inputs=[(0, 0, 0)], name="nothing", oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3)], match="argument 'x'.*square"),
    Error(inputs=[(1, 2, 3)], match="argument 'x'.*square", name="sizes"),
]
