"""`clip_grad_by_norm`: x itself; the gradient gets a norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, clip_norm: float | None = None, axes: Any = None) -> np.ndarray:
    return x


def back(gy: np.ndarray, x: np.ndarray, clip_norm: float | None = None, axes: Any = None) -> np.ndarray:
    over = None if axes is None else tuple(axes)
    norm = np.sqrt((gy**2).sum(over, keepdims=True))
    return (1.0 if clip_norm is None else clip_norm) * gy / norm


ONLY = {"grad": back, "second": False}
CASES = [
    Case(inputs=[(2, 3)], **ONLY, reshaped=[(4, 2)]),
    Case(inputs=[(2, 3)], args={"clip_norm": 5.0}, name="more", **ONLY),
    Case(inputs=[(2, 3)], args={"clip_norm": 0.5, "axes": [1]}, name="axis", **ONLY),
    Case(inputs=[(2, 3, 2)], args={"axes": [-1, 0]}, name="axes", oracle=False, reason="NNabla refuses it", **ONLY),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"axes": [2]}, match="argument 'axes'", oracle=False, reason="it goes on"),
    Error(
        inputs=[(2, 3)],
        args={"axes": [1, -1]},
        match="argument 'axes'.*once",
        name="twice",
        oracle=False,
        reason="it goes on",
    ),
]
