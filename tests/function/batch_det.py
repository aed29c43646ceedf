"""`batch_det`: determinants of many matrices."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, Maker


def reference(x: np.ndarray) -> np.ndarray:
    return np.linalg.det(x) if x.size else np.ones(x.shape[0])


def regular(*shape: int) -> Maker:
    """Matrices that are far from singular ones."""
    return lambda rng: rng.uniform(-0.5, 0.5, shape) + 2 * np.eye(shape[-1])


WIDE = {"half": 3e-2}
CASES = [
    Case(inputs=[regular(2, 3, 3)], reshaped=[regular(3, 2, 2)], tolerance=WIDE),
    Case(inputs=[regular(1, 1, 1)], name="numbers", tolerance=WIDE),
    Case(inputs=[[[[0.0, 1.0], [2.0, 0.0]]]], name="pivots", tolerance=WIDE),
    Case(inputs=[[[[1.0, 2.0], [2.0, 4.0]]]], name="singular", differentiable=False),
    Case(inputs=[regular(2, 9, 9)], name="larger", differentiable=False, types=("float", "double")),
    Case(inputs=[(0, 2, 2)], name="none", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[[[[1.0, np.nan], [2.0, 4.0]]]], name="NaN", differentiable=False),
]
ERRORS = [
    Error(inputs=[(2, 3)], match="argument 'x'.*square"),
    Error(inputs=[(1, 2, 3)], match="argument 'x'.*square", name="sizes"),
]
