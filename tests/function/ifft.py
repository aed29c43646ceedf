"""`ifft`: inverse discrete Fourier transforms of pairs of numbers, by sums."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error
from function.fft import GPU, SIZES, WIDE, elements, transformed


def reference(x: np.ndarray, signal_ndim: int, normalized: bool = False) -> np.ndarray:
    n = elements(x, signal_ndim)
    return transformed(x, signal_ndim, 1) / (np.sqrt(n) if normalized else n)


CASES = [
    *(Case(inputs=[s], args={"signal_ndim": 1}, name=f"{s[-2]}", tolerance=WIDE, **GPU) for s in SIZES),
    Case(inputs=[(2, 3, 4, 2)], args={"signal_ndim": 2, "normalized": True}, name="images", tolerance=WIDE, **GPU),
    Case(inputs=[(2, 3, 2, 2)], args={"signal_ndim": 3}, name="volumes", tolerance=WIDE, **GPU),
]
ERRORS = [
    Error(inputs=[(4, 3)], args={"signal_ndim": 1}, match="argument 'x'", name="no pairs"),
    Error(inputs=[(4, 2)], args={"signal_ndim": 2}, match="argument 'signal_ndim'", name="too many axes"),
]
