"""`embed`: rows of w at the indices."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, integers


def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return w[x.astype(int)]


CASES = [
    Case(inputs=[integers(0, 5, 2, 3), (5, 4)], reshaped=[integers(0, 5, 7), (5, 4)], name="matrix"),
    Case(inputs=[[2, 2, 0, 2], (3, 2)], name="repeated"),
    Case(inputs=[[0.0, 1.7, 2.0], (3, 2)], need_grad=(False, True), name="floats are truncated"),
    Case(inputs=[np.asarray(1, np.int32), (3, 2)], name="0-d index"),
    Case(inputs=[[1, 0], (3,)], name="w 1-d"),
    Case(inputs=[[1, 0], (3, 2, 2)], name="w 3-d"),
    Case(inputs=[integers(0, 3, 0), (3, 2)], differentiable=False, name="no index"),
]
ERRORS = [Error(inputs=[[0], ()], match="argument 'w'", name="w 0-d")]
