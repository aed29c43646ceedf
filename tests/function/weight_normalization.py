"""`weight_normalization`: a weight over its norms, times a scale for each of them."""

import numpy as np

from function.case import Case, Error


def reference(w: np.ndarray, g: np.ndarray, dim: int = 0, eps: float = 1e-12) -> np.ndarray:
    others = tuple(a for a in range(w.ndim) if a != dim % w.ndim)
    shape = [n if a == dim % w.ndim else 1 for a, n in enumerate(w.shape)]
    return w * g.reshape(shape) / np.sqrt((w**2).sum(axis=others, keepdims=True) + eps)


CASES = [
    Case(inputs=[(3, 4), (3,)], reshaped=[(2, 5), (2,)], tolerance={"second": 1e-5}),
    Case(inputs=[(2, 3, 2), (3,)], args={"dim": 1}, tolerance={"second": 1e-5}, name="dim 1"),
    Case(inputs=[(2, 3), (3,)], args={"dim": -1, "eps": 0.5}, tolerance={"second": 1e-5}, name="dim -1"),
    Case(inputs=[np.zeros((2, 3)), (2,)], differentiable=False, name="zeros"),
]
ERRORS = [
    Error(inputs=[(2, 3), (3,)], match="argument 'g'", name="g"),
    Error(inputs=[(2, 3), (2, 1)], match="argument 'g'", name="ndim of g"),
    Error(inputs=[(2, 3), (2,)], args={"dim": 2}, match="argument 'dim'", name="dim"),
]
