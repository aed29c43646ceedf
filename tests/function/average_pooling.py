"""`average_pooling`: mean of each window, with its padding as zeros or without."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from function.case import Error, normal
from function.max_pooling import cases, pool


def reference(x: np.ndarray, kernel: Sequence[int], including_pad: bool = True, **args: object) -> np.ndarray:
    return pool(x, kernel, lambda window, n: window.sum(axis=-1) / (n if including_pad else window.shape[-1]), **args)


CASES = [
    *cases(normal),
    *[dataclasses.replace(case, name=f"{case.name}, without padding") for case in cases(normal, including_pad=False)],
]
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
