"""`sort` along an axis: equal elements keep their order, NaN is the largest number."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, distinct, floats


def reference(
    x: np.ndarray, axis: int = -1, reverse: bool = False, with_index: bool = False, only_index: bool = False
) -> object:
    lines = np.moveaxis(x, axis, -1)
    keys = lines.reshape(int(np.prod(lines.shape[:-1])), lines.shape[-1]).tolist()
    largest = -1 if reverse else 1
    order = [
        sorted(
            range(len(line)),
            key=lambda i, line=line: (largest * (line[i] != line[i]), largest * line[i] if line[i] == line[i] else 0),
        )
        for line in keys
    ]
    index = np.array(order, int).reshape(lines.shape)
    y = np.moveaxis(np.take_along_axis(lines, index, -1), -1, axis)
    index = np.moveaxis(index, -1, axis)
    return index if only_index else (y, index) if with_index else y


WRONG = {"oracle": False, "reason": "NNabla's gradient goes to wrong places"}
TIES = floats(-2, 3, 3, 40)
CASES = [
    Case(inputs=[distinct(3, 5)], name="default", reshaped=[distinct(2, 7)], **WRONG),
    Case(inputs=[distinct(3, 5)], args={"reverse": True}, name="reverse", **WRONG),
    Case(inputs=[distinct(4, 3)], args={"axis": 0}, name="first axis", **WRONG),
    Case(
        inputs=[distinct(2, 5, 3)], args={"axis": 1, "with_index": True}, name="with index", grad_outputs=[0], **WRONG
    ),
    Case(inputs=[distinct(2, 5, 3)], args={"axis": -2, "only_index": True}, name="only index", differentiable=False),
    Case(
        inputs=[TIES],
        args={"with_index": True},
        name="ties",
        differentiable=False,
        oracle=False,
        reason="NNabla's order of ties is open",
    ),
    Case(
        inputs=[TIES],
        args={"with_index": True, "reverse": True},
        name="ties, reverse",
        differentiable=False,
        oracle=False,
        reason="as above",
    ),
    Case(
        inputs=[distinct(1, 2500, step=1)],
        args={"with_index": True},
        name="long",
        types=("float", "double"),
        second=False,
        grad_outputs=[0],
        **WRONG,
    ),
    Case(inputs=[distinct(40, 33, 2)], args={"axis": 1}, name="many lines", differentiable=False, types=("double",)),
    Case(inputs=[(3, 1)], name="one element a line", **WRONG),
    Case(inputs=[[[3, 1, 2], [6, 5, 4]]], name="integers", **WRONG),
    Case(
        inputs=[[[np.nan, 1.0, np.inf, -np.inf, -np.nan, 0.0, -0.0]]],
        args={"with_index": True},
        name="corners",
        differentiable=False,
        oracle=False,
        reason="NNabla leaves lines with NaN unsorted",
    ),
    Case(
        inputs=[[[1.0, np.nan, np.inf, -np.inf, np.nan, -0.0, 0.0]]],
        args={"with_index": True, "reverse": True},
        name="corners, reverse",
        differentiable=False,
        oracle=False,
        reason="NNabla leaves lines with NaN unsorted",
    ),
    Case(inputs=[(0, 3)], name="no rows", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(3, 0)], name="no columns", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axis": 2}, match="argument 'axis'"),
    Error(inputs=[()], match="argument 'axis'", name="0-d"),
]
