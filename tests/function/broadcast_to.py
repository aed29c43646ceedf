"""`broadcast_to`: an array repeated to the shape of another one."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, y: np.ndarray, axis: int | None = None) -> np.ndarray:
    first = x.ndim - y.ndim if axis in (None, -1) else axis % x.ndim
    return np.broadcast_to(y.reshape(y.shape + (1,) * (x.ndim - first - y.ndim)), x.shape)


NO_GRADIENT = {"oracle": False, "reason": "NNabla has no gradient"}
CASES = [
    Case(inputs=[(2, 3, 4), (4,)], name="last axis", need_grad=(False, True), reshaped=[(2, 5), (5,)], **NO_GRADIENT),
    Case(inputs=[(2, 3, 4), (3, 4)], name="last axes", need_grad=(False, True), **NO_GRADIENT),
    Case(inputs=[(2, 3, 4), (3,)], args={"axis": 1}, name="middle", need_grad=(False, True), **NO_GRADIENT),
    Case(inputs=[(2, 3, 4), (2, 3)], args={"axis": 0}, name="first axes", need_grad=(False, True), **NO_GRADIENT),
    Case(
        inputs=[(2, 3, 4), (3,)],
        args={"axis": -2},
        name="from the end",
        need_grad=(False, True),
        oracle=False,
        reason="NNabla counts from the end in another way",
    ),
    Case(inputs=[(2, 3), ()], name="0-d", need_grad=(False, True), **NO_GRADIENT),
    Case(inputs=[(2, 3), (2, 3)], name="same", need_grad=(False, True), **NO_GRADIENT),
    Case(inputs=[(0, 3), (3,)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3), (2,)], match="argument 'y'.*sizes of x"),
    Error(inputs=[(2, 3), (1, 3)], match="argument 'y'", name="size 1"),
    Error(inputs=[(3,), (2, 3)], match="argument 'y'.*at most the 1 axes", name="too many"),
    Error(
        inputs=[(2, 3), (3,)], args={"axis": 2}, match="argument 'axis'", name="axis", oracle=False, reason="it goes on"
    ),
]
