"""`gather_nd`: elements or slices at coordinates."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(data: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return data[tuple(indices.astype(int))]


CASES = [
    Case(inputs=[(3, 4), [[0, 2]]], name="rows"),
    Case(inputs=[(2, 3, 4), [[0, 1], [2, 1]]], name="slices"),
    Case(inputs=[(2, 3, 4), [[0, 1], [2, 1], [3, 0]]], name="elements"),
    Case(inputs=[(2, 3), [[0, -1], [-3, 1]]], name="from the end"),
    Case(inputs=[(3, 2), [[[0, 1], [2, 0]]]], name="matrix of places"),
    Case(inputs=[(3,), [[1, 1, 0]]], name="repeated"),
    Case(inputs=[(3, 2), [[0.7, 1.9]]], need_grad=(True, False), name="floats are truncated"),
    Case(inputs=[(3, 2), np.zeros((1, 0), np.int32)], differentiable=False, name="no place"),
]
ERRORS = [
    Error(inputs=[(2, 3), [[0, 2]]], match="argument 'indices'", name="out of range", host=True),
    Error(inputs=[(2, 3), [[0, -3]]], match="argument 'indices'", name="out of range from the end", host=True),
    Error(inputs=[(2, 3), [1, 0]], match="argument 'indices'", name="1-d indices"),
    Error(inputs=[(2, 3), [[0], [0], [0]]], match="argument 'indices'", name="too many coordinates"),
]
