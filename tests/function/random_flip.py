"""`random_flip`: the order of axes reversed in half of the samples."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error
from moved_samples import repeated, same, shows, sources, stay


def reference(x: np.ndarray, axes: tuple[int, ...] | None = None, base_axis: int = 1, seed: int = -1) -> np.ndarray:
    if axes is None or any(x.shape[a] > 1 for a in axes):
        raise ValueError("only what has one element is not random")
    return x


GRAD = {"oracle_grad": False, "reason": "NNabla draws anew in graphs of gradients, or fails"}
NO = {"differentiable": False}
CASES = [
    Case(inputs=[(2, 3)], args={"axes": ()}, name="no axes", **GRAD, reshaped=[(3, 2)]),
    Case(inputs=[(2, 1)], args={"axes": (1,)}, name="one element", **GRAD),
    Case(
        inputs=[repeated(200, 3, 4)],
        check=shows([*stay(200, 3), sources(4, 4, "flip")], 1),
        **NO,
        name="default is the last axis",
    ),
    Case(
        inputs=[repeated(200, 3, 4)],
        args={"axes": (1, -1)},
        check=shows([*stay(200), sources(3, 3, "flip"), sources(4, 4, "flip")], 1),
        **NO,
        name="axes for themselves",
    ),
    Case(
        inputs=[np.arange(24.0).reshape(2, 3, 4)],
        args={"axes": (0, 2), "base_axis": 2},
        check=shows([sources(2, 2, "flip"), *stay(3), sources(4, 4, "flip")], 2),
        **NO,
        name="samples",
    ),
    Case(
        inputs=[np.arange(12.0).reshape(3, 4)],
        args={"base_axis": 0, "axes": (0, 1)},
        check=shows([sources(3, 3, "flip"), sources(4, 4, "flip")], 0),
        **NO,
        name="one sample",
    ),
    Case(
        inputs=[repeated(40, 9)],
        call=lambda F, x: [F.random_flip(x, seed=s) for s in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
    Case(inputs=[(0, 3, 4)], check=lambda y, x: None, **NO, oracle=False, reason="NNabla dies", name="empty"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axes": (2,)}, match="argument 'axes'", name="axes"),
    Error(inputs=[(2, 3)], args={"base_axis": 2}, match="argument 'base_axis'", name="base_axis"),
    Error(inputs=[()], args={"axes": ()}, match="argument 'base_axis'", name="0-d"),
]
