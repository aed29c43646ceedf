"""`max_pooling_backward`: each number of dy added at the place of its window's first maximum in x."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from function.case import Case, Error, distinct
from function.max_pooling import spans


def reference(
    dy: np.ndarray,
    x: np.ndarray,
    kernel: Sequence[int],
    stride: Sequence[int] | None = None,
    ignore_border: bool = True,
    pad: Sequence[int] | None = None,
    channel_last: bool = False,
) -> np.ndarray:
    n = len(kernel)
    stride, pad = stride or kernel, pad or [0] * n
    if channel_last:
        dy, x = np.moveaxis(dy, -1, -n - 1), np.moveaxis(x, -1, -n - 1)
    windows = [spans(x.shape[i - n], kernel[i], stride[i], pad[i], ignore_border) for i in range(n)]
    dx = np.zeros(x.shape)
    for at in np.ndindex(*dy.shape):
        lead, chosen = at[:-n], [spans_of_axis[i] for spans_of_axis, i in zip(windows, at[-n:], strict=True)]
        window = (*lead, *[slice(low, high) for low, high, _ in chosen])
        # A view: adding to it adds to dx.
        to = dx[window]
        to[np.unravel_index(np.argmax(x[window]), to.shape)] += dy[at]
    return np.moveaxis(dx, -n - 1, -1) if channel_last else dx


def case(dy: Sequence[int], x: Sequence[int], **more: object) -> Case:
    """Only dy has a gradient: moving x a little moves no maximum to another place."""
    return Case(inputs=[tuple(dy), distinct(*x)], **{"need_grad": (True, False), **more})


def borders() -> list[Case]:
    """All of stride, pad and ignore_border over one small image."""
    made = []
    for stride, pad, border in product([(2, 2), (1, 2)], [(0, 0), (1, 1)], [True, False]):
        shape = [len(spans(size, 2, stride[i], pad[i], border)) for i, size in enumerate((5, 4))]
        args = {"kernel": (2, 2), "stride": stride, "pad": pad, "ignore_border": border}
        made.append(
            case((1, 2, *shape), (1, 2, 5, 4), args=args, name=f"stride {stride} pad {pad} border {not border}")
        )
    return made


LAST = {"oracle": False, "reason": "NNabla has no channel_last on the CPU"}
ZEROS = {"oracle": False, "reason": "NNabla gives zeros"}
CHECKS = {"oracle": False, "reason": "NNabla does not check"}
CASES = [
    case((2, 3, 2, 3), (2, 3, 5, 6), args={"kernel": (2, 2)}, name="defaults"),
    case((2, 2), (5, 6), args={"kernel": (2, 3)}, name="just an image", **ZEROS),
    case((2, 2, 2, 2, 1), (2, 2, 2, 4, 3), args={"kernel": [2, 2]}, name="many leading axes"),
    case((1, 2, 2, 1, 2), (1, 2, 4, 3, 4), args={"kernel": (2, 2, 2)}, name="3-D"),
    case(
        (1, 1, 5, 2, 3),
        (1, 1, 4, 3, 5),
        args={"kernel": (3, 2, 2), "stride": (1, 2, 2), "pad": (1, 1, 0), "ignore_border": False},
        name="3-D all",
    ),
    *borders(),
    # nn.grad of nnrs has None for x, no variable of zeros: only backward() is looked at.
    case(
        (1, 1, 2, 2),
        (1, 1, 4, 5),
        args={"kernel": (2, 2)},
        need_grad=(True, True),
        second=False,
        name="gradient of x is zero",
    ),
    case((2, 2, 3, 3), (2, 5, 6, 3), args={"kernel": (2, 2), "channel_last": True}, name="channel_last", **LAST),
    Case(
        inputs=[(1, 2, 2), np.ones((1, 3, 3))],
        need_grad=(True, False),
        args={"kernel": (2, 2), "stride": (1, 1)},
        name="ties go to the first",
    ),
    Case(
        inputs=[(1, 2, 2), -np.ones((1, 2, 2))],
        need_grad=(True, False),
        args={"kernel": (2, 2), "pad": (1, 1)},
        name="padding never wins",
    ),
    case((0, 1, 1, 1), (0, 1, 2, 2), args={"kernel": (2, 2)}, differentiable=False, name="no images"),
]
ERRORS = [
    Error(inputs=[(1, 2, 2), (1, 5, 6)], args={"kernel": (2, 2)}, match="argument 'dy'", name="shape of dy", **CHECKS),
    Error(
        inputs=[(2, 3), (2, 6)],
        args={"kernel": (2,)},
        match="argument 'kernel'",
        kind=(ValueError, NotImplementedError),
        name="1-D",
        **CHECKS,
    ),
    Error(
        inputs=[(1, 2, 3), (1, 5, 6)],
        args={"kernel": 2},
        match="argument 'kernel'",
        kind=TypeError,
        name="kernel is an int",
    ),
    Error(
        inputs=[(1, 2, 3), (1, 5, 6)],
        args={"kernel": (2, 2), "stride": (1,)},
        match="argument 'stride'",
        name="stride is short",
        **CHECKS,
    ),
    Error(
        inputs=[(1, 2, 3), (1, 5, 6)],
        args={"kernel": (2, 2), "pad": (1, 1, 1)},
        match="argument 'pad'",
        name="pad is long",
        **CHECKS,
    ),
]
