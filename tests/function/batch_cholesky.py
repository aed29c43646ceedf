"""`batch_cholesky`: Cholesky's decomposition of many matrices."""

from __future__ import annotations

import numpy as np

from function.batch_det import WIDE
from function.case import Case, Error, Maker


def reference(x: np.ndarray, upper: bool = False) -> np.ndarray:
    """Of the symmetric part, so that derivatives are symmetric too."""
    x = (x + np.swapaxes(x, -1, -2)) / 2
    definite = [np.linalg.cholesky(m) if (np.linalg.eigvalsh(m) > 0).all() else m * np.nan for m in x]
    y = np.array(definite).reshape(x.shape)
    return np.swapaxes(y, -1, -2) if upper else y


def definite(*shape: int) -> Maker:
    """Symmetric positive-definite matrices."""

    def make(rng: np.random.Generator) -> np.ndarray:
        a = np.round(rng.uniform(-1, 1, shape), 1)
        return np.round(a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1]), 2)

    return make


FIRST = {"oracle_grad": False, "reason": "NNabla has no rule for nn.grad"}
CASES = [
    Case(inputs=[definite(2, 3, 3)], reshaped=[definite(3, 2, 2)], tolerance=WIDE, **FIRST),
    Case(inputs=[definite(2, 2, 2)], args={"upper": True}, name="upper", tolerance=WIDE, **FIRST),
    Case(inputs=[definite(1, 1, 1)], name="numbers", tolerance=WIDE, **FIRST),
    Case(inputs=[definite(2, 9, 9)], name="larger", differentiable=False, types=("float", "double")),
    Case(
        inputs=[[[[1.0, 2.0], [2.0, 1.0]]]],
        name="not definite",
        differentiable=False,
        oracle=False,
        reason="NNabla gives what it has",
    ),
    Case(inputs=[(0, 2, 2)], name="none", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(2, 0, 0)], name="no rows", oracle=False, reason="NNabla dies"),
    Case(inputs=[(0, 0, 0)], name="nothing", oracle=False, reason="NNabla dies"),
]
ERRORS = [Error(inputs=[(1, 2, 3)], match="argument 'x'.*square")]
