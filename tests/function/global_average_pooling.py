"""`global_average_pooling`: mean over all axes after the first two; the output is (N, C, 1, 1)."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray) -> np.ndarray:
    return x.reshape(*x.shape[:2], -1).mean(axis=-1)[..., None, None]


CASES = [
    Case(inputs=[(2, 3, 4, 5)], reshaped=[(1, 2, 3, 3)], name="2-D"),
    Case(inputs=[(2, 3, 4)], name="1-D"),
    Case(inputs=[(2, 3, 2, 2, 2)], name="3-D", oracle=False, reason="NNabla averages the wrong elements"),
    Case(inputs=[(2, 3)], name="nothing to average"),
]
ERRORS = [Error(inputs=[(3,)], match="argument 'x'")]
