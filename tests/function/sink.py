"""`sink`: 0, whose gradient to each input is 1 or what the input's own gradient holds."""

from __future__ import annotations

import numpy as np

from function.case import Case


def reference(*x: np.ndarray) -> np.ndarray:
    return np.zeros(())


def ones(gy: np.ndarray, *x: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.ones_like(v) for v in x)


CASES = [
    Case(inputs=[(2, 3)], grad=ones, second=False, sets=True, name="one"),
    Case(inputs=[(2, 3), (4,), ()], grad=ones, second=False, sets=True, name="several"),
]
