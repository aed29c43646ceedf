"""`batch_logdet`: logarithms of the magnitudes of determinants."""

from __future__ import annotations

import numpy as np

from function.batch_det import WIDE, regular
from function.case import Case, Error


def reference(x: np.ndarray) -> np.ndarray:
    return np.linalg.slogdet(x)[1]


FIRST = {"oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}
CASES = [
    Case(inputs=[regular(2, 3, 3)], reshaped=[regular(3, 2, 2)], tolerance=WIDE, **FIRST),
    Case(inputs=[[[[1.0, 4.0], [2.0, 3.0]]]], name="negative", tolerance=WIDE, **FIRST),
    Case(inputs=[[[[1.0, 2.0], [2.0, 4.0]]]], name="singular", differentiable=False),
    Case(inputs=[(0, 2, 2)], name="none", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(2, 0, 0)], name="no rows", oracle=False, reason="NNabla dies"),
    Case(inputs=[(0, 0, 0)], name="nothing", oracle=False, reason="NNabla dies"),
]
ERRORS = [Error(inputs=[(1, 2, 3)], match="argument 'x'.*square")]
