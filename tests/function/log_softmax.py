"""`log_softmax`: logarithm of softmax along an axis; the last axis by default."""

from __future__ import annotations

import numpy as np

from function import softmax


def reference(x: np.ndarray, axis: int | None = None) -> np.ndarray:
    axis = x.ndim - 1 if axis is None else axis
    top = x.max(axis=axis, keepdims=True)
    return x - top - np.log(np.exp(x - top).sum(axis=axis, keepdims=True))


CASES = softmax.CASES
ERRORS = softmax.ERRORS
