"""`pad`: x with a border: a constant, its reflection or its edge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error

MODES = {"constant": "constant", "reflect": "reflect", "repeat": "edge"}


def reference(x: np.ndarray, pad_width: Sequence[int], mode: str = "constant", constant_value: float = 0) -> np.ndarray:
    pairs = list(zip(pad_width[::2], pad_width[1::2], strict=True))
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    if not widths:
        return x
    return np.pad(x, widths, MODES[mode], **({"constant_values": constant_value} if mode == "constant" else {}))


CASES = [
    Case(inputs=[(2, 3)], args={"pad_width": (1, 1, 2, 2)}, reshaped=[(1, 2)], name="default"),
    Case(inputs=[(2, 3)], args={"pad_width": (1, 2)}, name="last axis"),
    Case(inputs=[(2, 3)], args={"pad_width": [1, 0, 0, 2], "constant_value": 2.5}, name="constant"),
    Case(
        inputs=[(3, 4)],
        args={"pad_width": (1, 2, 3, 0), "mode": "reflect"},
        name="reflect",
        oracle_grad=False,
        reason="NNabla's nn.grad fails",
    ),
    Case(
        inputs=[(2, 3)],
        args={"pad_width": (5, 6), "mode": "reflect"},
        name="reflect back and forth",
        oracle_grad=False,
        reason="NNabla's nn.grad fails",
    ),
    Case(
        inputs=[(1,)],
        args={"pad_width": (1, 1), "mode": "reflect"},
        name="reflect one element",
        oracle_grad=False,
        reason="NNabla's nn.grad fails",
    ),
    Case(
        inputs=[(3, 4)],
        args={"pad_width": (1, 2, 3, 0), "mode": "repeat"},
        name="repeat",
        oracle_grad=False,
        reason="NNabla's nn.grad fails",
    ),
    Case(
        inputs=[(2, 2, 2, 2)],
        args={"pad_width": (1, 1, 2, 1), "mode": "reflect"},
        name="images, reflect",
        oracle_grad=False,
        reason="NNabla's nn.grad fails",
    ),
    Case(inputs=[(2, 2, 2, 2)], args={"pad_width": (1, 1, 2, 1)}, name="images"),
    Case(inputs=[(2, 1, 2)], args={"pad_width": (1, 0, 0, 1, 1, 1)}, name="all axes of three"),
    Case(inputs=[(2, 3)], args={"pad_width": ()}, name="nothing"),
    Case(inputs=[()], args={"pad_width": ()}, name="0-d"),
    Case(inputs=[(0, 2)], args={"pad_width": (1, 1, 1, 1)}, differentiable=False, name="empty"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"pad_width": (1, 0, 2)}, match="argument 'pad_width'", name="odd"),
    Error(inputs=[(2, 3)], args={"pad_width": (1,) * 6}, match="argument 'pad_width'", name="long"),
    Error(inputs=[(2, 3)], args={"pad_width": (-1, 0)}, match="argument 'pad_width'", name="negative"),
    Error(
        inputs=[(2, 3)],
        args={"pad_width": ((1, 1), (2, 2))},
        match="argument 'pad_width'",
        kind=(TypeError, ValueError),
        name="pairs",
    ),
    Error(inputs=[(2, 3)], args={"pad_width": (1, 1), "mode": "edge"}, match="argument 'mode'", name="mode"),
]
