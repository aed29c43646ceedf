"""`categorical_cross_entropy`: minus logarithm of x at the label; labels below zero are left out (loss 0)."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, floats, integers, positive


def reference(x: np.ndarray, target: np.ndarray, axis: int | None = None) -> np.ndarray:
    axis = x.ndim - 1 if axis is None else axis
    # The smallest normal float32 stands for what has no logarithm.
    scores = np.log(np.maximum(x, np.finfo(np.float32).tiny))
    label = target.astype(int)
    chosen = np.take_along_axis(scores, np.maximum(label, 0), axis)
    return np.where(label < 0, 0.0, -chosen)


CASES = [
    Case(
        inputs=[positive(3, 4), integers(0, 4, 3, 1)], reshaped=[positive(5, 4), integers(0, 4, 5, 1)], name="default"
    ),
    Case(inputs=[positive(2, 3, 4), integers(0, 4, 2, 3, 1)], name="default is the last axis"),
    Case(inputs=[positive(2, 3, 2, 2), integers(0, 3, 2, 1, 2, 2)], args={"axis": 1}, name="images"),
    Case(inputs=[positive(2, 3, 4), integers(0, 2, 1, 3, 4)], args={"axis": 0}, name="first"),
    Case(inputs=[positive(2, 3, 4), integers(0, 3, 2, 1, 4)], args={"axis": -2}, name="negative axis"),
    Case(inputs=[positive(4), integers(0, 4, 1)], name="1-d"),
    Case(inputs=[positive(3, 4), floats(0, 4, 3, 1)], need_grad=(True, False), name="labels as floats"),
    Case(inputs=[positive(3, 4), [[1.7], [-0.5], [2.0]]], need_grad=(True, False), name="labels are truncated"),
    Case(
        inputs=[positive(4, 3), [[-1], [2], [-7], [0]]],
        name="negative labels are ignored",
        oracle_grad=False,
        reason="NNabla's nn.grad forgets to leave them out",
    ),
    Case(inputs=[[[np.nan, 1.0, 2.0], [1.0, 2.0, 3.0]], [[0], [1]]], name="NaN", differentiable=False),
    Case(
        inputs=[[[0.0, 1.0, -1.0]] * 3, [[0], [1], [2]]],
        differentiable=False,
        types=("float", "double"),
        name="no logarithm",
    ),
    Case(
        inputs=[np.zeros((0, 3)), np.zeros((0, 1), np.int32)],
        differentiable=False,
        name="empty",
        oracle=False,
        reason="NNabla dies",
    ),
]
ERRORS = [
    Error(inputs=[positive(3, 4), integers(0, 4, 3)], match="argument 'target'", name="label without the axis"),
    Error(inputs=[positive(3, 4), integers(0, 4, 2, 1)], match="argument 'target'", name="other batch"),
    Error(inputs=[positive(3, 4), integers(0, 4, 3, 4)], match="argument 'target'", name="label of x's shape"),
    Error(
        inputs=[positive(2, 3, 4), integers(0, 3, 2, 1, 4)], match="argument 'target'", name="axis 1 is not the default"
    ),
    Error(inputs=[positive(3, 4), integers(0, 4, 3, 1)], args={"axis": 2}, match="argument 'axis'"),
    Error(
        inputs=[positive(1, 3), [[3]]],
        match="argument 'target'",
        name="label out of range",
        host=True,
        oracle=False,
        reason="NNabla reads the memory behind the row",
    ),
]
