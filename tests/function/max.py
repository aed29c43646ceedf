"""`max`: largest element over axes, and where it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from function.case import Case, Error, distinct


def extreme(place: Callable[..., Any]) -> tuple[Callable[..., object], list[Case]]:
    """The reference and the cases of `max` (place: np.argmax) and `min` (np.argmin)."""

    def reference(
        x: np.ndarray, axis: object = None, keepdims: bool = False, with_index: bool = False, only_index: bool = False
    ) -> object:
        every = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        reduced = sorted(a % x.ndim for a in every)
        kept = [a for a in range(x.ndim) if a not in reduced]
        # The index counts over the reduced axes, in ascending order whatever order was given.
        rows = x.transpose(kept + reduced).reshape(
            [x.shape[a] for a in kept] + [int(np.prod([x.shape[a] for a in reduced]))]
        )
        shape = [1 if a in reduced else x.shape[a] for a in range(x.ndim) if keepdims or a in kept]
        index = place(rows, axis=-1) if rows.size else np.zeros(rows.shape[:-1], int)
        value = np.take_along_axis(rows, index[..., None], -1) if rows.size else rows[..., :0]
        value, index = value.reshape(shape), index.reshape(shape)
        return index if only_index else (value, index) if with_index else value

    def first(gy: object, x: np.ndarray, **_: object) -> np.ndarray:
        """The gradient goes to the first of equal elements."""
        gy = gy[0] if isinstance(gy, tuple) else gy
        return np.where(np.arange(x.shape[1]) == place(x, axis=1)[:, None], np.asarray(gy)[:, None], 0.0)

    cases = [
        Case(inputs=[distinct(2, 3, 4)], name="all"),
        Case(inputs=[distinct(2, 3, 4)], args={"axis": 0}, name="axis"),
        Case(inputs=[distinct(2, 3, 4)], args={"axis": -1, "keepdims": True}, name="last axis, kept"),
        Case(inputs=[distinct(2, 3, 4)], args={"axis": (2, 0)}, name="two axes in any order"),
        Case(inputs=[distinct(2, 3, 4)], args={"axis": [0, 1, 2], "keepdims": True}, name="all axes, kept"),
        Case(inputs=[distinct(2, 3, 4)], args={"axis": ()}, name="no axis"),
        Case(inputs=[()], name="0-d"),
        Case(inputs=[[[1, 5, 2], [7, 3, 4]]], args={"axis": 1}, name="integers"),
        Case(inputs=[(0, 3)], args={"axis": 1}, name="no rows", differentiable=False),
        Case(inputs=[distinct(2, 3, 4)], args={"axis": 1, "with_index": True}, grad_outputs=[0], name="with index"),
        Case(
            inputs=[distinct(2, 3, 4)],
            args={"axis": (2, 0), "with_index": True},
            grad_outputs=[0],
            name="index over axes",
        ),
        Case(inputs=[distinct(2, 3)], args={"with_index": True}, grad_outputs=[0], name="index over all"),
        Case(
            inputs=[distinct(2, 3)],
            args={"axis": 0, "keepdims": True, "only_index": True},
            differentiable=False,
            name="only index",
        ),
        Case(
            inputs=[distinct(2, 3)],
            args={"axis": 1, "with_index": True, "only_index": True},
            differentiable=False,
            name="only wins over with",
        ),
        Case(
            inputs=[[[3.0, 1.0, 3.0, 1.0]]],
            args={"axis": 1, "with_index": True},
            grad=first,
            grad_outputs=[0],
            second=False,
            name="ties go to the first",
        ),
        Case(
            inputs=[[[-1e9, -2e9], [1e9, 2e9]]],
            args={"axis": 1},
            types=("float", "double"),
            differentiable=False,
            oracle=False,
            reason="NNabla starts from 1e8",
            name="huge",
        ),
        Case(
            inputs=[[[-np.inf, -np.inf], [np.inf, np.inf]]],
            args={"axis": 1},
            differentiable=False,
            oracle=False,
            reason="NNabla starts from 1e8",
            name="infinity",
        ),
    ]
    return reference, cases


reference, CASES = extreme(np.argmax)
ERRORS = [
    Error(inputs=[(2, 3)], args={"axis": 2}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": -3}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": (0, 0)}, match="argument 'axis'"),
    Error(inputs=[()], args={"axis": 0}, match="argument 'axis'"),
    Error(inputs=[(2, 3)], args={"axis": "a"}, match="argument 'axis'", kind=(TypeError, ValueError)),
    Error(inputs=[(3, 0)], args={"axis": 1}, match="argument 'x'", oracle=False, reason="NNabla dies"),
]
