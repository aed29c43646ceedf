"""`tile`: x repeated, as numpy.tile does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, reps: int | Sequence[int]) -> np.ndarray:
    return np.tile(x, reps)


CASES = [
    Case(inputs=[(2, 3)], args={"reps": 2}, reshaped=[(1, 4)], name="int"),
    Case(inputs=[(2, 3)], args={"reps": (2,)}, name="last axis"),
    Case(inputs=[(2, 3)], args={"reps": [2, 1]}, name="first axis"),
    Case(inputs=[(2, 3)], args={"reps": (2, 3)}, name="both"),
    Case(inputs=[(2, 3)], args={"reps": (2, 1, 2)}, name="axis in front"),
    Case(inputs=[(2, 3)], args={"reps": ()}, name="nothing"),
    Case(inputs=[()], args={"reps": (2,)}, name="0-d"),
    Case(inputs=[(0, 2)], args={"reps": (2, 1)}, differentiable=False, name="empty"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"reps": (0, 1)}, name="zero"),
    Error(inputs=[(2, 3)], args={"reps": (-1, 1)}, name="negative"),
]
