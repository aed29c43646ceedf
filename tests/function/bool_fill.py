"""`bool_fill`: a number where a mask is not zero."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(data: np.ndarray, mask: np.ndarray, value: float = 0.0) -> np.ndarray:
    return np.where(mask != 0, value, data)


CASES = [
    Case(inputs=[(2, 3), [[1, 0, 1], [0, 0, 1]]], name="default is zero"),
    Case(inputs=[(2, 3), [[1, 0, 1], [0, 0, 1]]], args={"value": 5}, name="value"),
    Case(inputs=[(2, 3), [1, 0, 1]], args={"value": 5}, name="broadcast"),
    Case(inputs=[(2, 3), [[1], [0]]], args={"value": 5}, name="column"),
    Case(inputs=[(2, 3), [0.5, 0.0, -0.5]], need_grad=(True, False), args={"value": 5}, name="floats"),
    Case(
        inputs=[(2, 3), [np.nan, 0.0, 0.0]], differentiable=False, args={"value": 5}, name="NaN in the mask is not zero"
    ),
    Case(
        inputs=[[np.inf, np.nan, 1.0], [1, 1, 0]], differentiable=False, args={"value": 5}, name="infinity is replaced"
    ),
]
ERRORS = [
    Error(inputs=[(2, 3), [1, 0]], match="argument 'mask'", name="shapes"),
    Error(inputs=[(3,), [[1, 0, 1]]], match="argument 'mask'", oracle=False, reason="NNabla dies", name="larger mask"),
]
