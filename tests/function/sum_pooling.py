"""`sum_pooling`: sum of each window; padding counts as zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Error, normal
from function.max_pooling import cases, pool


def reference(x: np.ndarray, kernel: Sequence[int], **args: object) -> np.ndarray:
    return pool(x, kernel, lambda window, _: window.sum(axis=-1), **args)


CASES = cases(normal)
ERRORS = [
    Error(
        inputs=[(2, 3, 6)],
        args={"kernel": (2,)},
        match="argument 'kernel'",
        kind=(ValueError, NotImplementedError),
        name="1-D",
    ),
    Error(inputs=[(6,)], args={"kernel": (2, 2)}, match="argument 'x'", name="x has too few axes"),
    Error(
        inputs=[(2, 3, 6, 4)],
        args={"kernel": (2, 2), "stride": (1,)},
        match="argument 'stride'",
        name="stride is short",
    ),
    Error(
        inputs=[(2, 3, 6, 4)],
        args={"kernel": (0, 2)},
        match="argument 'kernel'",
        oracle=False,
        reason="NNabla dies",
        name="kernel 0",
    ),
]
