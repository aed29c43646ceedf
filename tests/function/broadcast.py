"""`broadcast`: x repeated to a shape, by NumPy's rule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    return np.broadcast_to(x, shape)


CASES = [
    Case(inputs=[(1, 3)], args={"shape": (2, 3)}, name="row"),
    Case(inputs=[(2, 1)], args={"shape": [2, 3]}, name="column"),
    Case(
        inputs=[(3,)],
        args={"shape": (2, 3)},
        name="axis in front",
        oracle_grad=False,
        reason="NNabla's nn.grad is wrong",
    ),
    Case(inputs=[()], args={"shape": (2, 3)}, name="0-d", oracle_grad=False, reason="NNabla's nn.grad is wrong"),
    Case(inputs=[()], args={"shape": ()}, name="0-d to 0-d"),
    Case(inputs=[(2, 1, 3, 1)], args={"shape": (2, 4, 3, 2)}, name="inner axes"),
    Case(inputs=[(2, 3)], args={"shape": (2, 3)}, name="nothing to do"),
    Case(inputs=[(1, 3)], args={"shape": (0, 3)}, differentiable=False, name="to nothing"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"shape": (3, 3)}, match="argument 'shape'", name="size"),
    Error(inputs=[(2,)], args={"shape": (2, 3)}, match="argument 'shape'", name="not the last axis"),
    Error(inputs=[(1, 3)], args={"shape": (3,)}, match="argument 'shape'", name="fewer axes"),
    Error(inputs=[(1, 3)], args={"shape": (2, -1)}, match="argument 'shape'", name="negative"),
]
