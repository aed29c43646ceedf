"""`tile`: x repeated, as numpy.tile does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, reps: int | Sequence[int]) -> np.ndarray:
    return np.tile(x, reps)


CASES = [
    Case(
        inputs=[(2, 3)],
        args={"reps": 2},
        reshaped=[(1, 4)],
        name="int",
        oracle_grad=False,
        reason="NNabla's nn.grad is wrong",
    ),
    Case(inputs=[(2, 3)], args={"reps": (2,)}, name="last axis", oracle_grad=False, reason="NNabla's nn.grad is wrong"),
    Case(
        inputs=[(2, 3)], args={"reps": [2, 1]}, name="first axis", oracle_grad=False, reason="NNabla's nn.grad is wrong"
    ),
    Case(inputs=[(2, 3)], args={"reps": (2, 3)}, name="both", oracle_grad=False, reason="NNabla's nn.grad is wrong"),
    Case(
        inputs=[(2, 3)],
        args={"reps": (2, 1, 2)},
        name="axis in front",
        oracle_grad=False,
        reason="NNabla's nn.grad is wrong",
    ),
    Case(inputs=[(2, 3)], args={"reps": ()}, name="nothing", oracle_grad=False, reason="NNabla's nn.grad is wrong"),
    Case(inputs=[()], args={"reps": (2,)}, name="0-d", oracle_grad=False, reason="NNabla's nn.grad is wrong"),
    Case(inputs=[(0, 2)], args={"reps": (2, 1)}, differentiable=False, name="empty"),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"reps": (0, 1)}, match="argument 'reps'", name="zero"),
    Error(inputs=[(2, 3)], args={"reps": (-1, 1)}, match="argument 'reps'", name="negative"),
]
