"""`affine_grid`: places of elements, mapped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(theta: np.ndarray, size: Sequence[int], align_corners: bool = False) -> np.ndarray:
    def line(n: int) -> np.ndarray:
        if align_corners:
            return np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
        return (2 * np.arange(n) + 1) / n - 1

    places = np.stack([*np.meshgrid(*map(line, size), indexing="ij")[::-1], np.ones(tuple(size))], -1)
    return np.einsum("bij,...j->b...i", theta, places)


NO_GRADIENT = {"oracle_grad": False, "reason": "NNabla has no gradient of the gradient"}
CASES = [
    Case(inputs=[(2, 2, 3)], args={"size": (2, 3)}, reshaped=[(1, 2, 3)], **NO_GRADIENT),
    Case(inputs=[(2, 2, 3)], args={"size": (2, 3), "align_corners": True}, name="corners", **NO_GRADIENT),
    Case(inputs=[(1, 3, 4)], args={"size": (2, 3, 2)}, name="volumes", **NO_GRADIENT),
    Case(inputs=[(1, 3, 4)], args={"size": (2, 3, 2), "align_corners": True}, name="volumes, corners", **NO_GRADIENT),
    Case(inputs=[(1, 2, 3)], args={"size": (1, 3)}, name="one row", oracle=False, reason="NNabla divides by 0"),
    Case(
        inputs=[(1, 2, 3)],
        args={"size": (3, 1), "align_corners": True},
        name="one column",
        oracle=False,
        reason="NNabla divides by 0",
    ),
    Case(
        inputs=[(0, 2, 3)],
        args={"size": (2, 2)},
        name="empty",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
]
ERRORS = [
    Error(inputs=[(1, 2, 3)], args={"size": (1, 2, 2)}, match="argument 'theta'"),
    Error(inputs=[(1, 3, 3)], args={"size": (2, 2)}, match="argument 'theta'"),
    Error(inputs=[(1, 2, 3)], args={"size": (2,)}, match="argument 'size'"),
    Error(inputs=[(1, 2, 3)], args={"size": (2, 0)}, match="argument 'size'", oracle=False, reason="no error"),
]
