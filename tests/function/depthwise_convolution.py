"""`depthwise_convolution`: each channel convolved for itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    base_axis: int = 1,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    multiplier: int = 1,
) -> np.ndarray:
    base_axis %= x.ndim
    n, lead = x.ndim - base_axis - 1, x.shape[:base_axis]
    pads, steps, gaps = pad or (0,) * n, stride or (1,) * n, dilation or (1,) * n
    x = x.reshape(-1, *x.shape[base_axis:])
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pads)])
    kernel = weight.shape[1:]
    sizes = [(s - d * (k - 1) - 1) // t + 1 for s, k, t, d in zip(x.shape[2:], kernel, steps, gaps, strict=True)]
    y = np.zeros((len(x), len(weight), *sizes))
    for o in range(len(weight)):
        for at in np.ndindex(*kernel):
            picks = [
                slice(a * d, a * d + (m - 1) * t + 1, t) for a, d, m, t in zip(at, gaps, sizes, steps, strict=True)
            ]
            y[:, o] += weight[(o, *at)] * x[(slice(None), o // multiplier, *picks)]
        y[:, o] += 0 if bias is None else bias[o]
    return y.reshape(*lead, *y.shape[1:])


HALF = {"half": 3e-2, "bfloat16": 2e-1}
ONCE = {"tolerance": HALF, "oracle_grad": False, "reason": "NNabla has no gradient of the gradient"}
CASES = [
    Case(inputs=[(2, 2, 4, 5), (2, 2, 3), (2,)], reshaped=[(1, 2, 3, 3), (2, 2, 3), (2,)], **ONCE),
    Case(inputs=[(2, 2, 3, 4), (6, 2, 2)], args={"multiplier": 3}, name="maps", **ONCE),
    Case(
        inputs=[(1, 2, 5, 6), (4, 3, 2), (4,)],
        args={"pad": (1, 2), "stride": (2, 1), "dilation": (1, 2), "multiplier": 2},
        name="all arguments",
        **ONCE,
    ),
    Case(inputs=[(1, 3, 6), (3, 3)], args={"pad": (1,)}, name="lines", **ONCE),
    Case(inputs=[(2, 3, 4), (2, 2, 2)], args={"base_axis": 0}, name="no leading axis", **ONCE),
    Case(
        inputs=[(1, 2, 2, 3, 3), (2, 2, 2, 2)],
        name="volumes",
        tolerance=HALF,
        oracle=False,
        reason="NNabla has lines and images",
    ),
    Case(
        inputs=[(2, 2, 3, 3), (2, 2, 2)],
        args={"base_axis": -3},
        name="negative axis",
        tolerance=HALF,
        oracle=False,
        reason="NNabla refuses",
    ),
    Case(inputs=[(0, 2, 3), (2, 2)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(1, 2, 3, 3), (4, 2, 2)], match="argument 'weight'", name="maps"),
    Error(inputs=[(1, 2, 3, 3), (2, 1, 2, 2)], match="argument 'weight'", name="axes"),
    Error(inputs=[(1, 2, 3, 3), (2, 2, 2), (3,)], match="argument 'bias'", oracle=False, reason="no error"),
    Error(
        inputs=[(1, 2, 3), (2, 2)], args={"multiplier": 0}, match="argument 'multiplier'", oracle=False, reason="dies"
    ),
    Error(inputs=[(1, 2, 3), (2, 2)], args={"pad": (1, 1)}, match="argument 'pad'"),
    Error(inputs=[(1, 2, 3), (2, 2)], args={"base_axis": 2}, match="argument 'base_axis'|argument 'weight'"),
    Error(inputs=[(1, 2, 3), (2, 2)], args={"base_axis": -(2**63)}, match="argument", oracle=False, reason="dies"),
    Error(inputs=[(1, 2, 3), (2, 4)], match="argument 'x'", name="kernel", oracle=False, reason="no error"),
]
