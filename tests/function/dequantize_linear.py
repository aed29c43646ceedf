"""`dequantize_linear`: back from whole multiples of a scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error, uniform


def reference(x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> np.ndarray:
    return (x - zero_point) * scale


def back(gy: np.ndarray, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray) -> Any:
    return np.broadcast_to(gy * scale, x.shape), None, None


ONLY = {"grad": back, "second": False, "need_grad": (True, False, False)}
CASES = [
    Case(inputs=[(2, 3), [[2.0]], [[1.0]]], **ONLY),
    Case(inputs=[(2, 3), [[2.0], [0.5]], [[1.0], [0.0]]], name="channels", **ONLY),
    Case(
        inputs=[np.array([[1, 2], [3, -4]], np.int8), [[2.0]], np.array([[1]], np.int8)],
        name="integers",
        differentiable=False,
    ),
    Case(
        inputs=[(2, 3), uniform(0.5, 1.0, 3), ()], name="axes", oracle=False, reason="NNabla wants equal axes", **ONLY
    ),
    Case(inputs=[[[np.nan, np.inf]], [[2.0]], [[1.0]]], name="corners", differentiable=False),
]
ERRORS = [Error(inputs=[(2, 3), (2,), (1,)], match="argument 'scale'")]
