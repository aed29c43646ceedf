"""`batch_det`: determinants of many matrices."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, Maker


def reference(x: np.ndarray) -> np.ndarray:
    return np.linalg.det(x) if x.size else np.ones(x.shape[0])


def regular(*shape: int) -> Maker:
    """Matrices that are far from singular ones."""
    return lambda rng: rng.uniform(-0.5, 0.5, shape) + 2 * np.eye(shape[-1])


def singular(rng: np.random.Generator) -> np.ndarray:
    """Five rows: of rank 5, of rank 4 by a row and by a column of zeros, and of rank 3."""
    x = np.round(rng.uniform(-2, 2, (4, 5, 5)))
    x[0] += 5 * np.eye(5)
    x[1, 2], x[2, :, 1], x[3, :, [0, 2]] = 0, 0, 0
    return x


WIDE = {"half": 3e-2}
# Rounding makes of a 0 a tiny number, in NumPy too.
SINGULAR = {"second": False, "tolerance": {**WIDE, "grad": 1e-5}, "oracle": False, "reason": "NNabla's gradient is NaN"}
CASES = [
    Case(inputs=[regular(2, 3, 3)], reshaped=[regular(3, 2, 2)], tolerance=WIDE),
    Case(inputs=[regular(1, 1, 1)], name="numbers", tolerance=WIDE),
    Case(inputs=[[[[0.0, 1.0], [2.0, 0.0]]]], name="pivots", tolerance=WIDE),
    Case(inputs=[[[[1.0, 2.0], [2.0, 4.0]]]], name="singular", **SINGULAR),
    Case(inputs=[np.zeros((1, 2, 2))], name="zeros", **SINGULAR),
    Case(inputs=[[[[0.0, 2.0, 1.0], [0.0, 3.0, -1.0], [0.0, 1.0, 4.0]]]], name="no first column", **SINGULAR),
    Case(inputs=[np.tile([1.0, 2.0, -1.0], (1, 3, 1))], name="rank 1", **SINGULAR),
    Case(inputs=[singular], name="singular, larger", **SINGULAR),
    Case(inputs=[np.tile([1.0, 2.0, -1.0, 3.0, 1.0], (1, 5, 1))], name="rank 1, larger", **SINGULAR),
    Case(inputs=[regular(2, 9, 9)], name="larger", differentiable=False, types=("float", "double")),
    Case(inputs=[(0, 2, 2)], name="none", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(2, 0, 0)], name="no rows", oracle=False, reason="NNabla dies"),
    Case(inputs=[(0, 0, 0)], name="nothing", oracle=False, reason="NNabla dies"),
    Case(inputs=[[[[1.0, np.nan], [2.0, 4.0]]]], name="NaN", differentiable=False),
]
ERRORS = [
    Error(inputs=[(2, 3)], match="argument 'x'.*square"),
    Error(inputs=[(1, 2, 3)], match="argument 'x'.*square", name="sizes"),
]
