"""`unique`: the different elements of an array, or its different slices."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(
    x: np.ndarray,
    flatten: bool = True,
    axis: int | None = None,
    sorted: bool = True,
    with_index: bool = False,
    with_inverse: bool = False,
    with_counts: bool = False,
) -> object:
    whole = flatten or axis is None
    rows = x.reshape(-1, 1) if whole else np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
    keys = [tuple((v != v, 0.0 if v != v else v + 0.0) for v in row) for row in rows.tolist()]
    firsts = [i for i, key in enumerate(keys) if key not in keys[:i]]
    if sorted:
        firsts.sort(key=lambda i: keys[i])
    y = x.reshape(-1)[firsts] if whole else np.take(x, firsts, axis)
    numbers = {keys[i]: k for k, i in enumerate(firsts)}
    more = [
        (with_index, firsts),
        (with_inverse, [numbers[key] for key in keys]),
        (with_counts, [keys.count(keys[i]) for i in firsts]),
    ]
    asked = [np.array(values, int) for wanted, values in more if wanted]
    return (y, *asked) if asked else y


ALL = {"with_index": True, "with_inverse": True, "with_counts": True}
ROWS = [[3.0, 1.0], [1.0, 3.0], [3.0, 1.0], [1.0, 2.0]]
NONE = {"differentiable": False, "oracle": False, "reason": "NNabla wants an axis, and data before there is any"}
CASES = [
    Case(inputs=[[3.0, 1.0, 2.0, 3.0, 1.0]], **NONE),
    Case(inputs=[[3.0, 1.0, 2.0, 3.0, 1.0]], args=ALL, name="all", **NONE),
    Case(inputs=[[3.0, 1.0, 2.0, 3.0, 1.0]], args={"sorted": False, **ALL}, name="not sorted", **NONE),
    Case(inputs=[[[3, 1], [1, 3]]], args={"with_counts": True}, name="integers", **NONE),
    Case(inputs=[ROWS], args={"flatten": False, "axis": 0, **ALL}, name="rows", **NONE),
    Case(
        inputs=[ROWS],
        args={"flatten": False, "axis": 0, "sorted": False, **ALL},
        name="rows, not sorted",
        **NONE,
    ),
    Case(
        inputs=[[ROWS, ROWS]],
        args={"flatten": False, "axis": 1, "with_inverse": True},
        name="middle",
        **NONE,
    ),
    Case(inputs=[[ROWS, ROWS]], args={"flatten": False, "axis": -3, "with_index": True}, name="from the end", **NONE),
    Case(inputs=[ROWS], args={"flatten": True, "axis": 0}, name="flat all the same", **NONE),
    Case(inputs=[[np.nan, 1.0, np.nan, 0.0, -0.0, np.inf]], args=ALL, name="corners", **NONE),
    Case(
        inputs=[[[np.nan, 0.0], [np.nan, -0.0]]],
        args={"flatten": False, "axis": 0, **ALL},
        name="rows of corners",
        **NONE,
    ),
    Case(inputs=[()], name="0-d", **NONE),
    Case(inputs=[(0, 3)], name="empty", **NONE),
]
ERRORS = [Error(inputs=[(2, 3)], args={"flatten": False, "axis": 2}, match="argument 'axis'")]
