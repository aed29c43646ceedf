"""`deformable_convolution`: each element of a kernel reads at a distance from its place, times a mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error, Maker


def read(x: np.ndarray, i: float, j: float) -> np.ndarray:
    """Channels of an image (C, H, W) between its elements; zeros lie beyond it."""
    total = np.zeros(len(x))
    if not (np.isfinite(i) and np.isfinite(j)):
        return total + (np.nan if np.isnan(i + j) else 0)
    for a in (np.floor(i), np.floor(i) + 1):
        for b in (np.floor(j), np.floor(j) + 1):
            if 0 <= a < x.shape[1] and 0 <= b < x.shape[2]:
                total += x[:, int(a), int(b)] * (1 - abs(i - a)) * (1 - abs(j - b))
    return total


def first(x: np.ndarray, channel_last: bool) -> np.ndarray:
    return np.moveaxis(x, -1, 1) if channel_last else x


def reference(
    x: np.ndarray,
    weight: np.ndarray,
    offset: np.ndarray,
    mask: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    base_axis: int = 1,
    pad: Sequence[int] = (0, 0),
    stride: Sequence[int] = (1, 1),
    dilation: Sequence[int] = (1, 1),
    group: int = 1,
    deformable_group: int = 1,
    channel_last: bool = False,
) -> np.ndarray:
    x, w, offset = (first(v, channel_last) for v in (x, weight, offset))
    mask = None if mask is None else first(mask, channel_last)
    (n, channels, *size), (maps, each, *kernel) = x.shape, w.shape
    taps = kernel[0] * kernel[1]
    out = [
        (s + 2 * p - d * (k - 1) - 1) // t + 1
        for s, p, d, k, t in zip(size, pad, dilation, kernel, stride, strict=True)
    ]
    columns = np.zeros((n, channels, taps, *out))
    wide = channels // deformable_group
    for b, g, k, i, j in np.ndindex(n, deformable_group, taps, *out):
        at = (b, slice(None), i * stride[0], j * stride[1])
        down, right = offset[at][(g * taps + k) * 2 : (g * taps + k) * 2 + 2]
        row = i * stride[0] - pad[0] + k // kernel[1] * dilation[0] + down
        column = j * stride[1] - pad[1] + k % kernel[1] * dilation[1] + right
        factor = 1 if mask is None else mask[at][g * taps + k]
        columns[b, g * wide : (g + 1) * wide, k, i, j] = factor * read(x[b, g * wide : (g + 1) * wide], row, column)
    y = np.zeros((n, maps, *out))
    for o in range(maps):
        c = o // (maps // group) * each
        y[:, o] = np.einsum("nckij,ck->nij", columns[:, c : c + each], w[o].reshape(each, taps))
        y[:, o] += 0 if bias is None else bias[o]
    return np.moveaxis(y, 1, -1) if channel_last else y


def distances(*shape: int, reach: int = 1) -> Maker:
    """Numbers that are no whole ones, so that no element's place is met."""
    return lambda rng: rng.integers(-reach - 1, reach + 1, shape) + rng.choice([0.2, 0.3, 0.7, 0.85], shape)


HALF = {"half": 5e-2, "bfloat16": 4e-1}
# Its values and first gradients are these, when all inputs want one.
ONCE = {"tolerance": HALF, "oracle": False, "reason": "NNabla ends the process where one input wants a gradient"}
LAST = {"tolerance": HALF, "oracle": False, "reason": "NNabla has channels last on a GPU alone"}
CASES = [
    Case(
        inputs=[(1, 2, 3, 4), (2, 2, 2, 2), distances(1, 8, 3, 4)],
        reshaped=[(2, 2, 2, 3), (2, 2, 2, 2), distances(2, 8, 2, 3)],
        **ONCE,
    ),
    Case(inputs=[(1, 2, 3, 3), (2, 2, 2, 2), distances(1, 8, 3, 3), None, (2,)], name="bias", **ONCE),
    Case(inputs=[(1, 2, 3, 3), (2, 2, 2, 2), distances(1, 8, 3, 3), (1, 4, 3, 3)], name="mask", **ONCE),
    Case(
        inputs=[(2, 4, 3, 4), (2, 2, 2, 2), distances(2, 16, 3, 4), (2, 8, 3, 4), (2,)],
        args={"pad": (1, 0), "stride": (2, 2), "group": 2, "deformable_group": 2},
        name="groups and strides",
        **ONCE,
    ),
    Case(
        inputs=[(1, 2, 4, 5), (1, 2, 3, 2), distances(1, 12, 4, 5, reach=3)],
        args={"pad": (1, 1), "stride": (1, 2), "dilation": (1, 2)},
        name="dilated, far away",
        **ONCE,
    ),
    Case(
        inputs=[(1, 3, 4, 4), (2, 2, 2, 2), distances(1, 3, 4, 16), (1, 3, 4, 8), (2,)],
        args={"channel_last": True, "deformable_group": 2, "group": 2, "stride": (2, 1), "pad": (1, 0)},
        name="channels last",
        **LAST,
    ),
    Case(
        inputs=[(1, 3, 3, 2), (2, 2, 2, 2), distances(1, 3, 3, 8)],
        args={"channel_last": True, "base_axis": -3},
        name="channels last, no mask",
        **LAST,
    ),
    Case(
        inputs=[(1, 1, 2, 2), (1, 1, 1, 1), np.array([0, np.nan, np.inf, -np.inf, 0, 0, 0, 0.0]).reshape(1, 2, 2, 2)],
        name="no number",
        differentiable=False,
        oracle=False,
        reason="NNabla reads zeros",
        types=("float", "double"),
    ),
    Case(
        inputs=[(3, 20, 9, 30), (12, 10, 3, 3), distances(3, 36, 9, 30, reach=3), (3, 18, 9, 30)],
        args={"pad": (1, 1), "group": 2, "deformable_group": 2},
        name="many places",
        types=("float", "double"),
        tolerance={"float": 1e-4},
        differentiable=False,
    ),
    Case(
        inputs=[(0, 2, 3, 3), (2, 2, 2, 2), (0, 8, 3, 3)],
        name="empty",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
]
GOOD = [(1, 2, 3, 3), (2, 2, 2, 2), (1, 8, 3, 3)]
ERRORS = [
    Error(inputs=[(1, 2, 3, 3), (2, 2, 2, 2), (1, 7, 3, 3)], match="argument 'offset'", name="distances"),
    Error(inputs=[(1, 2, 3, 3), (2, 2, 2, 2), (1, 8, 2, 2)], match="argument 'offset'", name="sizes"),
    Error(inputs=[*GOOD, (1, 3, 3, 3)], match="argument 'mask'"),
    Error(inputs=[*GOOD, None, (3,)], match="argument 'bias'"),
    Error(inputs=[(1, 2, 3), (2, 2, 2), (1, 4, 3)], match="argument 'x'", name="lines"),
    Error(inputs=GOOD, args={"base_axis": 2}, match="argument 'base_axis'"),
    Error(inputs=GOOD, args={"deformable_group": 3}, match="argument 'deformable_group'"),
    Error(inputs=GOOD, args={"deformable_group": 0}, match="argument 'deformable_group'", oracle=False, reason="dies"),
    Error(inputs=GOOD, args={"group": 3}, match="argument 'group'"),
    Error(inputs=GOOD, args={"pad": (2, 2)}, match="argument 'pad'", oracle=False, reason="reads beyond offset"),
]
