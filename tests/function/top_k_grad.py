"""`top_k_grad`: x itself; the largest elements of the gradient flow back."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error, distinct
from function.top_k_data import reference as top_k_data


def reference(x: np.ndarray, k: int, abs: bool = False, base_axis: int = 1) -> np.ndarray:
    return x


def back(gy: np.ndarray, x: np.ndarray, k: int, abs: bool = False, base_axis: int = 1) -> Any:
    return top_k_data(gy, k, abs, False, base_axis)


CASES = [
    Case(inputs=[distinct(3, 6)], args={"k": 2}, grad=back, second=False, reshaped=[distinct(2, 4)]),
    Case(inputs=[distinct(2, 2, 3)], args={"k": 3, "abs": True}, grad=back, second=False, name="abs"),
    Case(inputs=[distinct(2, 6)], args={"k": 3, "base_axis": 0}, grad=back, second=False, name="base axis"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"k": 4}, match="argument 'k'.*from 1 to 3"),
    Error(inputs=[(2, 3)], args={"k": 1, "base_axis": 2}, match="argument 'base_axis'", name="axis"),
]
