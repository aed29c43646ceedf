"""`trilu`: the upper or lower triangles of matrices."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, k: int = 0, upper: bool = True) -> np.ndarray:
    i, j = np.indices(x.shape[-2:])
    return np.where(j - i >= k if upper else j - i <= k, x, 0)


CASES = [
    Case(inputs=[(3, 3)], name="upper", reshaped=[(2, 4)]),
    Case(inputs=[(3, 4)], args={"upper": False}, name="lower"),
    Case(inputs=[(2, 4, 3)], args={"k": 1}, name="above"),
    Case(inputs=[(2, 2, 3, 4)], args={"k": -1, "upper": False}, name="below"),
    Case(inputs=[(2, 3)], args={"k": 9}, name="beyond"),
    Case(inputs=[(2, 3)], args={"k": -9}, name="before"),
    Case(inputs=[(2, 3)], args={"k": 2**62, "upper": False}, name="far", oracle=False, reason="it wraps"),
    Case(inputs=[(130, 140)], name="large", differentiable=False),
    Case(
        inputs=[[[np.nan, np.inf], [np.nan, -np.inf]]],
        name="corners",
        differentiable=False,
        oracle=False,
        reason="NNabla multiplies by 0",
    ),
    Case(inputs=[(0, 3)], name="no rows", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(2, 0)], name="no columns", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [Error(inputs=[(3,)], match="argument 'x'.*two axes")]
