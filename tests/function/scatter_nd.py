"""`scatter_nd`: elements or slices written, or added, to coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from function.case import Case, Error


def reference(
    data: np.ndarray,
    indices: np.ndarray,
    out: np.ndarray | None = None,
    shape: Sequence[int] | None = None,
    add: bool = False,
) -> np.ndarray:
    y = np.zeros(shape) if out is None else out.copy()
    at = tuple(indices.astype(int))
    if add:
        np.add.at(y, at, data)
    else:
        y[at] = data
    return y


def onto(F: Any, data: Any, indices: Any, out: Any, **args: Any) -> Any:
    """What a function has made is not written, so the call can be repeated; leaves are: test_in_place_updates.py."""
    return F.scatter_nd(data, indices, out=F.mul_scalar(out, 1.0), **args)


WRITES = {"oracle": False, "reason": "NNabla writes into `out` and gives it no gradient"}
CASES = [
    Case(inputs=[(2,), [[0, 3]]], args={"shape": (5,)}, name="elements"),
    Case(inputs=[(2, 4), [[0, 2]]], args={"shape": [3, 4]}, name="rows"),
    Case(inputs=[(2,), [[0, 2], [1, 1]]], args={"shape": (3, 4)}, name="pairs"),
    Case(inputs=[(2,), [[-1, 0]]], args={"shape": (3,)}, name="from the end"),
    Case(inputs=[(2, 2), [[[0, 1], [2, 3]]]], args={"shape": (5,)}, name="matrix of places"),
    Case(inputs=[(3,), [[1, 1, 0]]], args={"shape": (3,), "add": True}, name="added"),
    Case(inputs=[(3,), [[1, 1, 0]]], args={"shape": (3,)}, differentiable=False, name="the last one stays"),
    Case(inputs=[(2,), [[1, 0]], (3,)], call=onto, name="onto an array", **WRITES),
    Case(inputs=[(2,), [[1, 1]], (3,)], args={"add": True}, call=onto, name="added to an array", **WRITES),
]
ERRORS = [
    Error(inputs=[(2,), [[3, 0]]], args={"shape": (3,)}, match="argument 'indices'", name="out of range", host=True),
    Error(inputs=[(3,), [[1, 0]]], args={"shape": (3,)}, match="argument 'data'", name="more data than places"),
    Error(inputs=[(2, 3), [[1, 0]]], args={"shape": (3, 4)}, match="argument 'data'", name="slices"),
    Error(inputs=[(2,), [[1, 0]]], match="argument 'shape'", name="neither shape nor out"),
    Error(
        inputs=[(2,), [[1, 0]]],
        args={"shape": (-1,)},
        match="argument 'shape'",
        oracle=False,
        reason="NNabla dies",
        name="negative size",
    ),
]
