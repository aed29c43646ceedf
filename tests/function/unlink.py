"""`unlink`: x itself, where gradients end."""

from __future__ import annotations

import numpy as np

from function.case import Case


def reference(x: np.ndarray) -> np.ndarray:
    return x


ELSEWHERE = {"oracle": False, "reason": "NNabla's does not write into outputs="}
CASES = [
    Case(inputs=[(2, 3)], differentiable=False, reshaped=[(4,)], name="plain", **ELSEWHERE),
    Case(inputs=[()], differentiable=False, name="0-d", **ELSEWHERE),
]
