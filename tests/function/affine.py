"""`affine`: matrix product of the axes from base_axis on with a weight, plus a bias."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, w: np.ndarray, b: np.ndarray | None = None, base_axis: int = 1) -> np.ndarray:
    base_axis %= x.ndim
    rows = x.reshape(int(np.prod(x.shape[:base_axis])), w.shape[0])
    y = (rows @ w.reshape(w.shape[0], int(np.prod(w.shape[1:])))).reshape(x.shape[:base_axis] + w.shape[1:])
    return y if b is None else y + b


CASES = [
    Case(inputs=[(2, 3), (3, 4), (4,)], reshaped=[(5, 3), (3, 4), (4,)], name="bias"),
    Case(inputs=[(2, 3), (3, 4)], name="no bias"),
    Case(inputs=[(2, 3), (3, 4), None], name="bias is None"),
    Case(inputs=[(2, 2, 3), (6, 4), (4,)], name="flattened"),
    Case(inputs=[(2, 6), (6, 2, 3), (2, 3)], name="shaped output"),
    Case(inputs=[(2, 4, 3), (3, 5), (5,)], args={"base_axis": 2}, name="base_axis 2"),
    Case(inputs=[(2, 2, 3), (3, 2)], args={"base_axis": -1}, name="base_axis -1"),
    Case(inputs=[(2, 2, 3), (6, 2)], args={"base_axis": -2}, name="base_axis -2"),
    Case(inputs=[(2, 3), (6, 2), (2,)], args={"base_axis": 0}, name="base_axis 0"),
    Case(inputs=[(1, 1), (1, 1), (1,)], name="ones"),
    Case(inputs=[(17, 33), (33, 19), (19,)], name="odd sizes", second=False),
    Case(inputs=[[[1, 2], [3, 4]], (2, 2)], name="integers"),
    Case(inputs=[(0, 3), (3, 4), (4,)], name="no rows", differentiable=False),
    Case(inputs=[(2, 0), (0, 4), (4,)], name="no columns", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3), (4, 2)], match="argument 'weight'", name="sizes"),
    Error(inputs=[(2, 3), (3,)], match="argument 'weight'", name="weight 1-d"),
    Error(inputs=[(2, 3), (3, 4), (3,)], match="argument 'bias'", name="bias size"),
    Error(inputs=[(2, 3), (3, 4), (1, 4)], match="argument 'bias'", name="bias ndim"),
    Error(inputs=[(2, 6), (6, 2, 3), (6,)], match="argument 'bias'", name="bias flat"),
    Error(inputs=[(2, 3), (3, 4)], args={"base_axis": 2}, match="argument 'base_axis'", name="base_axis"),
    Error(inputs=[(2, 3), (3, 4)], args={"base_axis": -3}, match="argument 'base_axis'", name="base_axis negative"),
    Error(inputs=[(3,), (3, 4)], match="argument 'base_axis'", name="x 1-d"),
    Error(inputs=[(), (1, 4)], args={"base_axis": 0}, match="argument 'base_axis'", name="x 0-d"),
]
