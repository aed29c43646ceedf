"""`assign`: writes src into dst and gives a copy."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(dst: np.ndarray, src: np.ndarray) -> np.ndarray:
    return src


def to_dst(gy: np.ndarray, dst: np.ndarray, src: np.ndarray) -> tuple[np.ndarray, None]:
    return gy, None


CASES = [
    Case(
        inputs=[(2, 3), (2, 3)],
        need_grad=(True, False),
        grad=to_dst,
        second=False,
        mutates=True,
        name="plain",
        oracle_grad=False,
        reason="NNabla has no nn.grad of assign",
    )
]
ERRORS = [
    Error(inputs=[(3,), (4,)], match="argument 'src'", name="sizes"),
    Error(inputs=[(2, 3), (6,)], match="argument 'src'", name="shapes"),
]
