"""`depthwise_deconvolution`: the transpose of each channel's convolution, channels summed to maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error
from function.depthwise_convolution import HALF, ONCE


def reference(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    base_axis: int = 1,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    divisor: int = 1,
) -> np.ndarray:
    n, lead = x.ndim - base_axis - 1, x.shape[:base_axis]
    pads, steps, gaps = pad or (0,) * n, stride or (1,) * n, dilation or (1,) * n
    x = x.reshape(-1, *x.shape[base_axis:])
    kernel = weight.shape[1:]
    sizes = [t * (s - 1) + d * (k - 1) + 1 for s, k, t, d in zip(x.shape[2:], kernel, steps, gaps, strict=True)]
    y = np.zeros((len(x), x.shape[1] // divisor, *sizes))
    for c in range(len(weight)):
        for at in np.ndindex(*kernel):
            places = [
                slice(a * d, a * d + (m - 1) * t + 1, t)
                for a, d, m, t in zip(at, gaps, x.shape[2:], steps, strict=True)
            ]
            y[(slice(None), c // divisor, *places)] += weight[(c, *at)] * x[:, c]
    y = y[(slice(None), slice(None), *(slice(p, m - p) for p, m in zip(pads, sizes, strict=True)))]
    y = y if bias is None else y + bias.reshape(-1, *(1,) * n)
    return y.reshape(*lead, *y.shape[1:])


CASES = [
    Case(inputs=[(2, 2, 3, 2), (2, 2, 3), (2,)], reshaped=[(1, 2, 2, 2), (2, 2, 3), (2,)], **ONCE),
    Case(inputs=[(2, 4, 2, 3), (4, 2, 2)], args={"divisor": 2}, name="summed", **ONCE),
    Case(
        inputs=[(1, 4, 3, 3), (4, 3, 2), (2,)],
        args={"pad": (1, 1), "stride": (2, 1), "dilation": (1, 2), "divisor": 2},
        name="all arguments",
        **ONCE,
    ),
    Case(inputs=[(1, 3, 4), (3, 3)], args={"pad": (1,)}, name="lines", **ONCE),
    Case(
        inputs=[(1, 2, 2, 2, 2), (2, 2, 1, 2)],
        name="volumes",
        tolerance=HALF,
        oracle=False,
        reason="NNabla has lines and images",
    ),
]
ERRORS = [
    Error(inputs=[(1, 4, 2), (4, 2)], args={"divisor": 3}, match="argument 'divisor'", oracle=False, reason="no error"),
    Error(inputs=[(1, 4, 2), (4, 2)], args={"divisor": 0}, match="argument 'divisor'", oracle=False, reason="dies"),
    Error(inputs=[(1, 4, 2), (2, 2)], match="argument 'weight'", name="maps"),
    Error(inputs=[(1, 4, 2), (4, 1, 2)], match="argument 'weight'", name="axes"),
    Error(inputs=[(1, 4, 2), (4, 2), (2,)], match="argument 'bias'", oracle=False, reason="no error"),
]
