"""`bool_gather`: the rows where a mask is not zero."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(input: np.ndarray, mask: np.ndarray) -> np.ndarray:
    rows = input[mask != 0]
    return rows.reshape(len(rows), -1) if rows.size and mask.ndim < input.ndim else rows


BREAKS = {"oracle_grad": False, "reason": "NNabla corrupts its memory"}
CASES = [
    Case(inputs=[(2, 3), [[1, 0, 1], [0, 0, 1]]], name="elements", **BREAKS),
    Case(inputs=[(3, 2), [1, 0, 1]], name="rows", **BREAKS),
    Case(inputs=[(3, 2, 2), [0.5, 0.0, -2.0]], need_grad=(True, False), name="floats", **BREAKS),
    Case(inputs=[(2, 2, 2), [[1, 0], [1, 1]]], name="matrix of rows", **BREAKS),
    Case(inputs=[(2, 2, 2, 2), [[1, 0], [1, 1]]], name="rows are flat", **BREAKS),
    Case(inputs=[(2, 2), [0, 0]], oracle=False, reason="NNabla dies", name="none"),
]
ERRORS = [
    Error(inputs=[(3, 2), [1, 0]], match="mask", name="shapes", oracle=False, reason="NNabla reads foreign memory"),
]
