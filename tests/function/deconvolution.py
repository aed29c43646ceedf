"""`deconvolution`: each element of x adds its multiple of the kernel to y, over any number of spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error
from function.convolution import part


def reference(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = None,
    base_axis: int = 1,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    group: int = 1,
    channel_last: bool = False,
    output_padding: Sequence[int] | None = None,
) -> np.ndarray:
    n = w.ndim - 2
    pad, stride, dilation, more = pad or [0] * n, stride or [1] * n, dilation or [1] * n, output_padding or [0] * n
    base_axis %= x.ndim
    if channel_last:
        x, w = np.moveaxis(x, -1, base_axis), np.moveaxis(w, -1, 1)
    batch = x.shape[:base_axis]
    x = x.reshape(int(np.prod(batch)), *x.shape[base_axis:])
    spans = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    # The extra numbers at the end may be reached by a kernel, where some padding is cut off there.
    sizes = [(x.shape[2 + i] - 1) * stride[i] + spans[i] + more[i] for i in range(n)]
    y = np.zeros((x.shape[0], w.shape[1] * group, *sizes))
    for at in np.ndindex(*x.shape[2:]):
        starts = [i * s for i, s in zip(at, stride, strict=True)]
        places = tuple(slice(i, i + span, d) for i, span, d in zip(starts, spans, dilation, strict=True))
        for g in range(group):
            inputs, outputs = part(x.shape[1], g, group), part(y.shape[1], g, group)
            numbers = x[(slice(None), inputs, *at)]
            y[(slice(None), outputs, *places)] += np.tensordot(numbers, w[inputs], axes=(1, 0))
    y = y[(..., *[slice(p, size - p) for p, size in zip(pad, sizes, strict=True)])]
    if b is not None:
        y = y + b.reshape(-1, *[1] * n)
    y = y.reshape(*batch, *y.shape[1:])
    return np.moveaxis(y, base_axis, -1) if channel_last else y


LAST = "NNabla has no channel_last on the CPU"
CASES = [
    Case(inputs=[(2, 3, 4, 3), (3, 4, 3, 2), (4,)], reshaped=[(1, 3, 2, 5), (3, 4, 3, 2), (4,)], name="2-D"),
    Case(inputs=[(2, 3, 4, 3), (3, 4, 3, 2)], name="no bias"),
    Case(
        inputs=[(2, 2, 4, 3), (2, 3, 3, 2), (3,)],
        args={"pad": (1, 2), "stride": (2, 1), "dilation": (2, 3)},
        name="2-D pad stride dilation",
    ),
    Case(inputs=[(1, 3, 4, 3), (3, 2, 1, 1)], name="1x1"),
    Case(inputs=[(1, 3, 4, 3), (3, 2, 1, 1)], args={"stride": (2, 2)}, name="1x1 stride"),
    Case(inputs=[(1, 2, 1, 1), (2, 2, 3, 2)], name="image of one element"),
    Case(inputs=[(1, 2, 3, 2), (2, 2, 2, 1)], args={"stride": (3, 2)}, name="stride larger than kernel"),
    Case(inputs=[(1, 2, 3, 3), (2, 2, 3, 3)], args={"pad": (2, 2)}, name="pad leaves one element"),
    Case(
        inputs=[(2, 2, 3, 2), (2, 3, 3, 2), (3,)],
        args={"stride": (2, 3), "output_padding": (1, 2)},
        name="output_padding",
    ),
    Case(
        inputs=[(1, 2, 3, 2), (2, 3, 3, 3), (3,)],
        args={"stride": (3, 3), "pad": (1, 1), "output_padding": [2, 1]},
        name="output_padding and pad",
    ),
    Case(inputs=[(2, 4, 3, 3), (4, 3, 3, 3), (6,)], args={"group": 2, "pad": (1, 1)}, name="groups"),
    Case(inputs=[(2, 4, 3, 3), (4, 1, 3, 3), (4,)], args={"group": 4, "pad": (1, 1)}, name="depthwise"),
    Case(inputs=[(1, 2, 3, 3), (2, 2, 3, 3)], args={"group": 2, "stride": (2, 1)}, name="depthwise, two a channel"),
    Case(inputs=[(2, 3, 4), (3, 4, 3), (4,)], name="1-D"),
    Case(
        inputs=[(2, 4, 4), (4, 2, 3)],
        args={"pad": (2,), "stride": (2,), "dilation": (2,), "group": 2, "output_padding": (1,)},
        name="1-D all",
    ),
    Case(inputs=[(1, 2, 2, 3, 2), (2, 3, 2, 2, 2), (3,)], second=False, name="3-D"),
    Case(
        inputs=[(1, 2, 2, 2, 3), (2, 1, 2, 3, 2)],
        args={"pad": (1, 1, 0), "stride": (2, 1, 2), "dilation": (1, 1, 2), "group": 2, "output_padding": (1, 0, 1)},
        second=False,
        name="3-D all",
    ),
    Case(inputs=[(1, 1, 2, 1, 2, 2), (1, 2, 2, 2, 2, 1)], second=False, name="4-D"),
    Case(inputs=[(2, 2, 3, 3, 2), (3, 2, 2, 2), (2,)], args={"base_axis": 2}, name="two batch axes"),
    Case(inputs=[(3, 3, 2), (3, 2, 2, 2), (2,)], args={"base_axis": 0}, name="no batch axis"),
    Case(
        inputs=[(2, 3, 3, 2), (3, 2, 2, 2)],
        args={"base_axis": -3, "pad": (0, 0), "stride": (1, 1), "dilation": (1, 1), "output_padding": (0, 0)},
        name="negative base_axis",
    ),
    Case(inputs=[(2, 17, 6, 5), (17, 19, 3, 3), (19,)], args={"pad": (1, 1)}, second=False, name="odd channels"),
    Case(
        inputs=[(2, 3, 3, 3), (3, 2, 3, 4), (4,)],
        args={"channel_last": True, "pad": (1, 0), "stride": (1, 2), "output_padding": (0, 1)},
        oracle=False,
        reason=LAST,
        name="channel_last",
    ),
    Case(
        inputs=[(2, 4, 4), (4, 2, 3)],
        args={"channel_last": True, "group": 2},
        oracle=False,
        reason=LAST,
        name="1-D channel_last groups",
    ),
    Case(inputs=[(0, 3, 4, 3), (3, 4, 3, 2)], differentiable=False, name="no images"),
]
X, W = (2, 4, 5, 6), (4, 6, 3, 2)
ERRORS = [
    Error(inputs=[X, W], args={"pad": 1}, match="argument 'pad'", kind=TypeError, name="pad is an int"),
    Error(inputs=[X, W], args={"pad": (1,)}, match="argument 'pad'", name="pad is short"),
    Error(inputs=[X, W], args={"stride": (1, 1, 1)}, match="argument 'stride'", name="stride is long"),
    Error(inputs=[X, W], args={"dilation": (1,)}, match="argument 'dilation'", name="dilation is short"),
    Error(
        inputs=[X, W],
        args={"output_padding": (0, 0, 0)},
        match="argument 'output_padding'",
        name="output_padding is long",
    ),
    Error(
        inputs=[X, W],
        args={"stride": (2, 3), "output_padding": (2, 2)},
        match="argument 'output_padding'",
        name="output_padding not below stride",
    ),
    Error(inputs=[X, W], args={"base_axis": 4}, match="argument 'base_axis'", name="base_axis"),
    Error(inputs=[X, (4, 6, 3)], match="argument 'weight'", name="weight ndim"),
    Error(
        inputs=[(2, 5, 5, 6), (5, 3, 3, 2)], args={"group": 2}, match="argument 'group'", name="inputs not divisible"
    ),
    Error(inputs=[X, W, (5,)], match="argument 'bias'", name="bias size"),
    Error(inputs=[X, W, (6, 1)], match="argument 'bias'", name="bias ndim"),
    Error(inputs=[X, W], args={"pad": (4, 4)}, match="argument 'x'", name="pad leaves nothing"),
    Error(inputs=[(2, 4), (4, 6)], match="argument 'base_axis'", name="no spatial axis"),
    Error(
        inputs=[X, (3, 6, 3, 2)], match="argument 'weight'", oracle=False, reason="NNabla accepts it", name="channels"
    ),
    Error(
        inputs=[X, W], args={"group": 0}, match="argument 'group'", oracle=False, reason="NNabla dies", name="group 0"
    ),
    Error(inputs=[X, W], args={"stride": (0, 1)}, match="argument 'stride'", name="stride 0"),
    Error(
        inputs=[X, W],
        args={"dilation": (0, 1)},
        match="argument 'dilation'",
        oracle=False,
        reason="NNabla accepts it",
        name="dilation 0",
    ),
    Error(
        inputs=[X, W],
        args={"pad": (-1, 0)},
        match="argument 'pad'",
        oracle=False,
        reason="NNabla accepts it",
        name="negative pad",
    ),
    Error(
        inputs=[X, W],
        args={"output_padding": (-1, 0)},
        match="argument 'output_padding'",
        oracle=False,
        reason="NNabla accepts it",
        name="negative output_padding",
    ),
]
