"""`gather`: slices of x along an axis at the indices."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, integers


def reference(x: np.ndarray, indices: np.ndarray, axis: int | None = None, batch_dims: int | None = None) -> np.ndarray:
    axis, batch = (axis or 0) % x.ndim, batch_dims or 0
    indices = indices.astype(int)
    if not batch:
        return np.take(x, indices, axis=axis)
    rows = [reference(part, index, axis - 1, batch - 1) for part, index in zip(x, indices, strict=True)]
    return np.stack(rows)


CASES = [
    Case(
        inputs=[(3, 4), integers(0, 3, 5)], name="default", oracle_grad=False, reason="NNabla has no nn.grad of gather"
    ),
    Case(
        inputs=[(2, 3, 4), integers(0, 3, 2)],
        args={"axis": 1},
        name="axis",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(
        inputs=[(2, 3, 4), integers(0, 4, 2, 2)],
        args={"axis": -1},
        name="negative axis",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(
        inputs=[(2, 3, 4), integers(0, 3, 2, 2)],
        args={"axis": 1},
        name="matrix of indices",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(inputs=[(3,), [1, 1, 0]], name="repeated", oracle_grad=False, reason="NNabla has no nn.grad of gather"),
    Case(
        inputs=[(2, 3), np.asarray(1, np.int32)],
        name="0-d index",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(
        inputs=[(3, 2), [0.0, 1.6]],
        need_grad=(True, False),
        name="floats are truncated",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(
        inputs=[(2, 3, 4), integers(0, 3, 2, 2)],
        args={"axis": 1, "batch_dims": 1},
        name="batch",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(
        inputs=[(2, 3, 4), integers(0, 4, 2, 2)],
        args={"axis": 2, "batch_dims": 1},
        name="batch, axis 2",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(
        inputs=[(2, 3, 4), integers(0, 4, 2, 3, 1)],
        args={"axis": 2, "batch_dims": 2},
        name="two batch axes",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(
        inputs=[(2, 3, 4), [1, 2]],
        args={"axis": 1, "batch_dims": 1},
        name="one index a batch",
        oracle_grad=False,
        reason="NNabla has no nn.grad of gather",
    ),
    Case(inputs=[(3, 2), integers(0, 3, 0)], differentiable=False, name="no index"),
]
ERRORS = [
    Error(inputs=[(3, 2), [3]], match="argument 'Indices'", name="out of range", host=True),
    Error(inputs=[(3, 2), [-1]], match="argument 'Indices'", name="negative index", host=True),
    Error(inputs=[(3, 2), [0]], args={"axis": 2}, match="argument 'axis'", name="axis"),
    Error(inputs=[(3, 2), [0]], args={"axis": -3}, match="argument 'axis'", name="negative axis"),
    Error(inputs=[(2, 3), [[0]]], args={"axis": 1, "batch_dims": 1}, match="argument 'Indices'", name="batch sizes"),
    Error(inputs=[(), [0]], match="argument 'axis'", name="0-d"),
    Error(
        inputs=[(2, 3), [[0], [1]]],
        args={"batch_dims": 1},
        match="argument 'batch_dims'",
        oracle=False,
        reason="NNabla dies",
        name="axis in the batch",
    ),
    Error(
        inputs=[(2, 3), [0]],
        args={"batch_dims": -1},
        match="argument 'batch_dims'",
        oracle=False,
        reason="NNabla dies",
        name="negative batch_dims",
    ),
]
