"""`unpooling`: each element repeated over a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, kernel: Sequence[int], channel_last: bool = False) -> np.ndarray:
    first = x.ndim - len(kernel) - channel_last
    for a, k in enumerate(kernel, first):
        x = np.repeat(x, k, a)
    return x


CASES = [
    Case(inputs=[(2, 2, 3)], args={"kernel": (2, 3)}, name="images", reshaped=[(1, 3, 2)]),
    Case(inputs=[(2, 3)], args={"kernel": (3,)}, name="lines"),
    Case(inputs=[(1, 2, 1, 2)], args={"kernel": (1, 2, 2)}, name="volumes"),
    Case(
        inputs=[(2, 3, 2)],
        args={"kernel": (2,), "channel_last": True},
        name="channels last",
        oracle=False,
        reason="GPU alone",
    ),
    Case(inputs=[(2, 2)], args={"kernel": (2, 2)}, name="all axes"),
    Case(inputs=[[[np.nan, np.inf]]], args={"kernel": (2,)}, differentiable=False),
    Case(
        inputs=[(0, 2)], args={"kernel": (2,)}, name="empty", differentiable=False, oracle=False, reason="NNabla dies"
    ),
]
ERRORS = [
    Error(inputs=[(3,)], args={"kernel": (2, 2)}, match="argument 'x'"),
    Error(inputs=[(2, 3)], args={"kernel": (0,)}, match="argument 'kernel'", oracle=False, reason="no error"),
]
