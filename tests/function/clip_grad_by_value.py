"""`clip_grad_by_value`: x itself; the gradient is clipped."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error, uniform


def reference(x: np.ndarray, min: np.ndarray, max: np.ndarray) -> np.ndarray:
    return x


def back(gy: np.ndarray, x: np.ndarray, min: np.ndarray, max: np.ndarray) -> Any:
    return np.minimum(np.maximum(gy, min), max), None, None


ONLY = {"grad": back, "second": False, "need_grad": (True, False, False)}
CASES = [
    Case(inputs=[(2, 5), uniform(-0.6, -0.4, 2, 5), uniform(0.4, 0.6, 2, 5)], **ONLY),
    Case(
        inputs=[(2, 5), uniform(-0.6, -0.4, 5), uniform(0.4, 0.6, 2, 1)],
        name="broadcast",
        oracle=False,
        reason="NNabla reads foreign memory",
        **ONLY,
    ),
    Case(
        inputs=[(2, 5), -0.5 * np.ones(()), 0.5 * np.ones(())], name="numbers", oracle=False, reason="as above", **ONLY
    ),
]
ERRORS = [
    Error(inputs=[(2, 3), (2,), (3,)], match="argument 'min'", oracle=False, reason="it reads foreign memory"),
    Error(inputs=[(3,), (3,), (2, 3)], match="argument 'max'", name="larger", oracle=False, reason="it goes on"),
]
