"""`kl_multinomial`: how far one multinomial distribution is from another."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, uniform

EPSILON = 1e-8


def reference(p: np.ndarray, q: np.ndarray, base_axis: int = 1) -> np.ndarray:
    base_axis %= p.ndim
    terms = p * (np.log(p + EPSILON) - np.log(q + EPSILON))
    return terms.sum(tuple(range(base_axis, p.ndim))).reshape(*p.shape[:base_axis], 1)


def share(*shape: int):
    return uniform(0.1, 0.5, *shape)


FIRST = {"oracle": False, "reason": "NNabla's result is not initialised"}
CASES = [
    Case(inputs=[share(3, 4), share(3, 4)], reshaped=[share(2, 5), share(2, 5)], tolerance={"half": 2e-2}),
    Case(inputs=[share(2, 3, 2), share(2, 3, 2)], name="axes"),
    Case(inputs=[share(2, 3, 2), share(2, 3, 2)], args={"base_axis": 2}, name="base axis"),
    Case(
        inputs=[share(2, 3), share(2, 3)],
        args={"base_axis": 0},
        name="one distribution",
        tolerance={"second": 1e-5},
        **FIRST,
    ),
    Case(inputs=[share(2, 3, 2), share(2, 3, 2)], args={"base_axis": -1}, name="from the end", **FIRST),
    Case(
        inputs=[[[0.0, 1.0], [0.5, 0.5]], [[0.5, 0.5], [0.0, 1.0]]],
        name="zeros",
        differentiable=False,
        types=("float", "double"),
    ),
    Case(inputs=[[[-1.0, np.nan]], [[0.5, 0.5]]], name="corners", differentiable=False, **FIRST),
    Case(inputs=[(0, 3), (0, 3)], name="no samples", differentiable=False, **FIRST),
]
ERRORS = [
    Error(inputs=[(2, 2), (2, 1)], match="argument 'q'"),
    Error(inputs=[(2, 2), (2, 2)], args={"base_axis": 2}, match="argument 'base_axis'", name="axis"),
]
