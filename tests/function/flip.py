"""`flip`: the order of axes reversed; the last axis by default."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, axes: Sequence[int] | None = None) -> np.ndarray:
    return np.flip(x, axis=tuple({a % x.ndim for a in ([-1] if axes is None else axes)}))


CASES = [
    Case(
        inputs=[(2, 3)],
        reshaped=[(4, 2)],
        name="default is the last axis",
        oracle_grad=False,
        reason="NNabla has no nn.grad of flip",
    ),
    Case(inputs=[(2, 3)], args={"axes": [0]}, name="first", oracle_grad=False, reason="NNabla has no nn.grad of flip"),
    Case(
        inputs=[(2, 3, 2)],
        args={"axes": (0, -1)},
        name="two axes",
        oracle_grad=False,
        reason="NNabla has no nn.grad of flip",
    ),
    Case(inputs=[(2, 3)], args={"axes": []}, name="no axis", oracle_grad=False, reason="NNabla has no nn.grad of flip"),
    Case(
        inputs=[(2, 3)],
        args={"axes": [0, 0]},
        name="an axis twice counts once",
        oracle_grad=False,
        reason="NNabla has no nn.grad of flip",
    ),
    Case(inputs=[(0, 3)], differentiable=False, name="empty"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axes": [2]}, match="argument 'axes'", name="axis"),
    Error(inputs=[(2, 3)], args={"axes": [-3]}, match="argument 'axes'", name="negative axis"),
    Error(inputs=[(2, 3)], args={"axes": 1}, match="argument 'axes'", kind=(TypeError, ValueError), name="int"),
    Error(inputs=[()], match="argument 'x'", name="0-d"),
]
