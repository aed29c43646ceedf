"""`max_pooling`: largest element of each window; padding never wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from function.case import Case, Error, distinct


def reference(x: np.ndarray, kernel: Sequence[int], **args: object) -> np.ndarray:
    return pool(x, kernel, lambda window, _: window.max(axis=-1), **args)


def pool(
    x: np.ndarray,
    kernel: Sequence[int],
    combine: Callable[[np.ndarray, int], np.ndarray],
    stride: Sequence[int] | None = None,
    ignore_border: bool = True,
    pad: Sequence[int] | None = None,
    channel_last: bool = False,
) -> np.ndarray:
    """combine(elements, size of the window with its padding) for every window; also for the other poolings."""
    n = len(kernel)
    stride, pad = stride or kernel, pad or [0] * n
    x = np.moveaxis(x, -1, -n - 1) if channel_last else x
    windows = [spans(x.shape[i - n], kernel[i], stride[i], pad[i], ignore_border) for i in range(n)]
    lead, sizes = x.shape[:-n], [len(spans_of_axis) for spans_of_axis in windows]
    y = np.zeros((*lead, *sizes))
    for at in np.ndindex(*sizes):
        chosen = [spans_of_axis[i] for spans_of_axis, i in zip(windows, at, strict=True)]
        window = x[(..., *[slice(low, high) for low, high, _ in chosen])]
        size = int(np.prod([padded for _, _, padded in chosen]))
        y[(..., *at)] = combine(window.reshape(*lead, int(np.prod(window.shape[-n:]))), size)
    return np.moveaxis(y, -n - 1, -1) if channel_last else y


def spans(n: int, k: int, stride: int, pad: int, ignore_border: bool) -> list[tuple[int, int, int]]:
    """First element, end, and size with padding of the windows along an axis."""
    count = (n + 2 * pad - k) // stride + 1 if ignore_border else -(-(n + pad) // stride)
    starts = [i * stride - pad for i in range(count)]
    ends = [min(start + k, n + pad) for start in starts]
    return [(max(start, 0), min(end, n), end - start) for start, end in zip(starts, ends, strict=True)]


def cases(make: Callable[..., object], **more: object) -> list[Case]:
    """The cases of all poolings."""
    last = {"oracle": False, "reason": "NNabla has no channel_last on the CPU"}
    shapes = {(2, 2): (2, 3, 5, 6), (3, 2): (1, 2, 6, 7)}
    borders = [
        Case(
            inputs=[make(*shape)],
            args={"kernel": kernel, "stride": stride, "pad": pad, "ignore_border": border, **more},
            name=f"{kernel} stride {stride} pad {pad} border {not border}",
        )
        for (kernel, shape), stride, pad, border in product(
            shapes.items(), [(2, 2), (1, 2)], [(0, 0), (1, 1)], [True, False]
        )
    ]
    return [
        Case(inputs=[make(2, 3, 5, 6)], args={"kernel": (2, 2), **more}, reshaped=[make(1, 2, 4, 4)], name="defaults"),
        Case(
            inputs=[make(5, 6)],
            args={"kernel": (2, 3), **more},
            name="just an image",
            oracle_grad=False,
            reason="NNabla's nn.grad is wrong",
        ),
        Case(inputs=[make(2, 2, 2, 4, 3)], args={"kernel": [2, 2], **more}, name="many leading axes"),
        Case(inputs=[make(2, 2, 4, 3, 4)], args={"kernel": (2, 2, 2), **more}, name="3-D"),
        Case(
            inputs=[make(1, 1, 4, 3, 5)],
            args={"kernel": (3, 2, 2), "stride": (1, 2, 2), "pad": (1, 1, 0), "ignore_border": False, **more},
            name="3-D all",
        ),
        *borders,
        Case(
            inputs=[make(2, 5, 6, 3)],
            args={"kernel": (2, 2), "channel_last": True, **more},
            name="channel_last",
            **last,
        ),
        Case(inputs=[[[[1, 2], [3, 5]]]], args={"kernel": (2, 2), **more}, name="integers"),
        Case(inputs=[(0, 1, 2, 2)], args={"kernel": (2, 2), **more}, differentiable=False, name="no images"),
    ]


def first(gy: np.ndarray, x: np.ndarray, **_: object) -> np.ndarray:
    """All of the gradient to the first of the equal elements of the one window."""
    gx = np.zeros_like(x)
    gx.flat[0] = np.asarray(gy).item()
    return gx


CASES = [
    *cases(distinct),
    Case(
        inputs=[np.ones((1, 1, 2, 2))], args={"kernel": (2, 2)}, grad=first, second=False, name="ties go to the first"
    ),
    Case(inputs=[-np.ones((1, 1, 2, 2))], args={"kernel": (2, 2), "pad": (1, 1)}, name="padding never wins"),
    Case(inputs=[np.full((1, 2, 2), -np.inf)], args={"kernel": (2, 2)}, differentiable=False, name="minus infinity"),
]
ERRORS = [
    Error(
        inputs=[(2, 3, 6)],
        args={"kernel": (2,)},
        match="argument 'kernel'",
        kind=(ValueError, NotImplementedError),
        name="1-D",
    ),
    Error(
        inputs=[(2, 2, 2, 2, 2)],
        args={"kernel": (2,) * 4},
        match="argument 'kernel'",
        kind=(ValueError, NotImplementedError),
        name="4-D",
    ),
    Error(inputs=[(6,)], args={"kernel": (2, 2)}, match="argument 'x'", name="x has too few axes"),
    Error(
        inputs=[(2, 3, 6, 4)], args={"kernel": 2}, match="argument 'kernel'", kind=TypeError, name="kernel is an int"
    ),
    Error(
        inputs=[(2, 3, 6, 4)],
        args={"kernel": (2, 2), "stride": (1,)},
        match="argument 'stride'",
        name="stride is short",
    ),
    Error(inputs=[(2, 3, 6, 4)], args={"kernel": (2, 2), "pad": (1, 1, 1)}, match="argument 'pad'", name="pad is long"),
    Error(
        inputs=[(2, 3, 6, 4)],
        args={"kernel": (0, 2)},
        match="argument 'kernel'",
        oracle=False,
        reason="NNabla dies",
        name="kernel 0",
    ),
    Error(
        inputs=[(2, 3, 6, 4)],
        args={"kernel": (2, 2), "stride": (0, 1)},
        match="argument 'stride'",
        oracle=False,
        reason="NNabla dies",
    ),
    Error(inputs=[(2, 3, 6, 4)], args={"kernel": (-1, 2)}, match="argument 'kernel'", oracle=False, reason="not asked"),
    Error(
        inputs=[(2, 3, 2, 2)],
        args={"kernel": (4, 4), "stride": (1, 1)},
        match="argument 'x'",
        oracle=False,
        reason="NNabla makes a negative shape",
        name="no window",
    ),
]
