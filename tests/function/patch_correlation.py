"""`patch_correlation`: sums of products of patches."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def pair(v: Any) -> tuple[int, ...]:
    return (v, v) if isinstance(v, int) else tuple(v)


def reference(
    x1: np.ndarray,
    x2: np.ndarray,
    patch: Any = (1, 1),
    shift: Any = (0, 0),
    patch_step: Any = (1, 1),
    shift_step: Any = (1, 1),
    padding: Any = (0, 0, 0, 0),
    channel_last: bool = False,
) -> np.ndarray:
    if channel_last:
        x1, x2 = np.moveaxis(x1, -1, 1), np.moveaxis(x2, -1, 1)
    (ph, pw), (sh, sw), (ih, iw), (jh, jw) = map(pair, (patch, shift, patch_step, shift_step))
    top, bottom, left, right = (
        (padding,) * 4
        if isinstance(padding, int)
        else padding
        if len(padding) == 4
        else (
            padding[0],
            padding[0],
            padding[1],
            padding[1],
        )
    )
    around = [(0, 0), (0, 0), (top, bottom), (left, right)]
    first = np.pad(x1, around)
    second = np.pad(x2, [(0, 0), (0, 0), (top + sh, bottom + sh), (left + sw, right + sw)])
    rows, columns = range(0, first.shape[2] - ph + 1, ih), range(0, first.shape[3] - pw + 1, iw)
    downs, rights = range(0, 2 * sh + 1, jh), range(0, 2 * sw + 1, jw)
    y = np.zeros((len(x1), len(downs), len(rights), len(rows), len(columns)))
    for (a, d), (b, r), (i, row), (j, column) in (
        (p, q, u, v)
        for p in enumerate(downs)
        for q in enumerate(rights)
        for u in enumerate(rows)
        for v in enumerate(columns)
    ):
        one = first[:, :, row : row + ph, column : column + pw]
        # Patches of the first image's border are zeros, and so is what they are multiplied with.
        other = second[:, :, row + d : row + d + ph, column + r : column + r + pw]
        y[:, a, b, i, j] = (one * other).sum((1, 2, 3))
    return np.moveaxis(y, (1, 2), (3, 4)) if channel_last else y


HALF = {"half": 3e-2, "bfloat16": 2e-1}


def case(name: str, shape: tuple[int, ...] = (2, 2, 3, 4), **args: object) -> Case:
    reason = "NNabla has no gradient of the gradient"
    return Case(inputs=[shape, shape], args=args, name=name, tolerance=HALF, oracle_grad=False, reason=reason)


CASES = [
    case("products"),
    case("patches", patch=(2, 3)),
    case("shifts", shift=(1, 2), patch=2),
    case("steps", patch=(2, 1), shift=2, patch_step=(1, 2), shift_step=(2, 1)),
    case("padding", patch=2, padding=(1, 0, 2, 1), shift=1),
    case("padding by two numbers", patch=2, padding=(1, 2), patch_step=2),
    case("padding by one", patch=3, padding=1),
    case("channels last", (1, 3, 4, 2), patch=2, shift=1, channel_last=True),
    case("one channel", (1, 1, 3, 3), shift=(0, 1)),
    Case(
        inputs=[(0, 1, 2, 2), (0, 1, 2, 2)],
        name="empty",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
]
ERRORS = [
    Error(inputs=[(1, 1, 2, 2), (1, 1, 2, 3)], match="argument 'x2'"),
    Error(inputs=[(1, 2, 2), (1, 2, 2)], match="argument 'x1'", oracle=False, reason="another error"),
    Error(inputs=[(1, 1, 2, 2)] * 2, args={"patch": (0, 1)}, match="argument 'patch'"),
    Error(inputs=[(1, 1, 2, 2)] * 2, args={"shift": (-1, 0)}, match="argument 'shift'"),
    Error(inputs=[(1, 1, 2, 2)] * 2, args={"patch_step": (0, 1)}, match="argument 'patch_step'"),
    Error(inputs=[(1, 1, 2, 2)] * 2, args={"shift_step": (0, 1)}, match="argument 'shift_step'"),
    Error(inputs=[(1, 1, 2, 2)] * 2, args={"padding": (0, -1)}, match="argument 'padding'"),
]
