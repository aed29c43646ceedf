"""Layers at sizes of several tiles, parts and chunks of their kernels, forward and backward, against plain formulas.
(The cases of every function are small; with NNRS_TEST_BACKEND=cudnn these run on a GPU.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from backend import BACKEND

Array = np.ndarray


@dataclass(frozen=True)
class Convolution:
    """Sizes of a convolution over two axes, channels first."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    args: dict[str, object] = field(default_factory=dict)
    group: int = 1
    channel_last: bool = False

    def arg(self, name: str, axis: int) -> int:
        """Pad, stride or dilation along an axis."""
        return self.args.get(name, (0, 0) if name == "pad" else (1, 1))[axis]

    def room(self, axis: int) -> int:
        """Places that a window can be moved by."""
        window = self.arg("dilation", axis) * (self.w[2 + axis] - 1) + 1
        return self.x[2 + axis] + 2 * self.arg("pad", axis) - window

    def output(self) -> list[int]:
        """Spatial sizes of y."""
        return [self.room(axis) // self.arg("stride", axis) + 1 for axis in (0, 1)]

    def places(self, axis: int, tap: int) -> tuple[Array, Array]:
        """Outputs along an axis whose tap lies in the image, and where it lies."""
        first = tap * self.arg("dilation", axis) - self.arg("pad", axis)
        at = np.arange(self.output()[axis]) * self.arg("stride", axis) + first
        seen = (at >= 0) & (at < self.x[2 + axis])
        return np.flatnonzero(seen), at[seen]


def convolved(c: Convolution, x: Array, w: Array, gy: Array) -> tuple[Array, Array, Array]:
    """y and the gradients of x and w, tap by tap."""
    y, gx, gw = np.zeros_like(gy), np.zeros_like(x), np.zeros_like(w)
    arrays = ((x, 1), (w, 0), (gy, 1), (y, 1), (gx, 1), (gw, 0))
    views = zip(*(np.split(a, c.group, axis=axis) for a, axis in arrays), strict=True)
    for xs, ws, gys, ys, gxs, gws in views:
        for i, j in product(range(w.shape[2]), range(w.shape[3])):
            (o0, at0), (o1, at1) = c.places(0, i), c.places(1, j)
            to, at = (slice(None), slice(None), o0[:, None], o1), (slice(None), slice(None), at0[:, None], at1)
            ys[to] += np.einsum("nchw,oc->nohw", xs[at], ws[..., i, j])
            gxs[at] += np.einsum("nohw,oc->nchw", gys[to], ws[..., i, j])
            gws[..., i, j] = np.einsum("nohw,nchw->oc", gys[to], xs[at])
    return y, gx, gw


def numbers(*shape: int, seed: int = 0) -> Array:
    """Small multiples of 1/8: exact in float."""
    return np.random.default_rng(seed).integers(-8, 9, shape) / 8.0


def last(a: Array, channel_last: bool) -> Array:
    """The channels as the last axis."""
    return np.ascontiguousarray(np.moveaxis(a, 1, -1)) if channel_last else a


CONVOLUTIONS = {
    "tiles": Convolution((2, 40, 9, 11), (70, 40, 3, 2), {"pad": (1, 1)}),
    "strides": Convolution((2, 6, 17, 19), (33, 6, 3, 4), {"pad": (2, 1), "stride": (2, 3)}),
    "strides and dilation": Convolution((1, 5, 21, 20), (7, 5, 3, 3), {"stride": (4, 2), "dilation": (2, 3)}),
    "stride beyond the kernel": Convolution((2, 6, 13, 12), (8, 6, 1, 2), {"stride": (3, 4)}),
    "parts": Convolution((2, 6, 37, 31), (5, 6, 2, 2), {"pad": (1, 0)}),
    "groups": Convolution((2, 20, 8, 9), (72, 10, 3, 3), {"pad": (1, 1)}, group=2),
    "channels last": Convolution((2, 18, 10, 9), (37, 18, 3, 2), {"stride": (2, 1)}, channel_last=True),
    "groups, channels last": Convolution((2, 36, 6, 7), (24, 12, 3, 3), {"pad": (1, 1)}, 3, True),
    "depthwise": Convolution((2, 5, 37, 33), (10, 1, 3, 3), {"pad": (1, 1), "stride": (2, 1)}, 5),
    "depthwise, channels last": Convolution((2, 35, 17, 33), (35, 1, 3, 3), {"pad": (1, 1)}, 35, True),
    "few channels": Convolution((3, 1, 28, 28), (16, 1, 5, 5), {}),
    "few points": Convolution((2, 3, 6, 7), (70, 3, 3, 2), {"pad": (2, 1), "stride": (1, 2)}),
    "few points, groups and dilation": Convolution((1, 10, 5, 9), (140, 5, 3, 3), {"dilation": (2, 3)}, group=2),
}


@pytest.mark.parametrize("c", CONVOLUTIONS.values(), ids=CONVOLUTIONS.keys())
@pytest.mark.parametrize("accumulate", [False, True])
def test_convolution(c: Convolution, accumulate: bool) -> None:
    xd, wd = numbers(*c.x, seed=1), numbers(*c.w, seed=2)
    bd, gyd = numbers(c.w[0], seed=3), numbers(c.x[0], c.w[0], *c.output(), seed=4)
    y, gx, gw = convolved(c, xd, wd, gyd)
    x, w = (nn.Variable.from_numpy_array(last(a, c.channel_last), need_grad=True) for a in (xd, wd))
    b = nn.Variable.from_numpy_array(bd, need_grad=True)
    out = F.convolution(x, w, b, group=c.group, channel_last=c.channel_last, **c.args)
    out.forward()
    np.testing.assert_allclose(out.d, last(y + bd[:, None, None], c.channel_last), rtol=1e-5, atol=1e-5)
    start = 1.0 if accumulate else 0.0
    for v in (x, w, b):
        v.g = start
        if not accumulate:
            v.grad.zero()
    out.backward(nn.NdArray.from_numpy_array(last(gyd, c.channel_last)))
    for v, g in ((x, last(gx, c.channel_last)), (w, last(gw, c.channel_last)), (b, gyd.sum((0, 2, 3)))):
        np.testing.assert_allclose(v.g, g + start, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("c", CONVOLUTIONS.values(), ids=CONVOLUTIONS.keys())
def test_deconvolution(c: Convolution) -> None:
    """The gradient of a convolution's x, and the convolution as the gradient of its x."""
    wd, xd, bd = numbers(*c.w, seed=2), numbers(c.x[0], c.w[0], *c.output(), seed=4), numbers(c.x[1], seed=3)
    _, y, _ = convolved(c, np.zeros(c.x), wd, xd)
    x, w = (nn.Variable.from_numpy_array(last(a, c.channel_last), need_grad=True) for a in (xd, wd))
    b = nn.Variable.from_numpy_array(bd, need_grad=True)
    more = [c.room(axis) % c.arg("stride", axis) for axis in (0, 1)]
    out = F.deconvolution(x, w, b, group=c.group, channel_last=c.channel_last, output_padding=more, **c.args)
    out.forward()
    np.testing.assert_allclose(out.d, last(y + bd[:, None, None], c.channel_last), rtol=1e-5, atol=1e-4)
    gyd = numbers(*c.x, seed=5)
    gx, _, gw = convolved(c, gyd, wd, xd)
    for v in (x, w, b):
        v.grad.zero()
    out.backward(nn.NdArray.from_numpy_array(last(gyd, c.channel_last)))
    for v, g in ((x, last(gx, c.channel_last)), (w, last(gw, c.channel_last)), (b, gyd.sum((0, 2, 3)))):
        np.testing.assert_allclose(v.g, g, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("n", "rows", "width"), [(5000, 700, 5), (3000, 300, 1), (600, 70000, 3), (2500, 3, 300)])
def test_embed(n: int, rows: int, width: int) -> None:
    """Many numbers, half of them the same one."""
    rng = np.random.default_rng(0)
    index = np.where(rng.random(n) < 0.5, rows // 2, rng.integers(0, rows, n))
    wd, gyd = numbers(rows, width), numbers(n, width, seed=1)
    w = nn.Variable.from_numpy_array(wd, need_grad=True)
    y = F.embed(nn.Variable.from_numpy_array(index), w)
    y.forward()
    np.testing.assert_array_equal(y.d, wd[index])
    want = np.zeros_like(wd)
    np.add.at(want, index, gyd)
    for start in (0.0, 0.5):
        w.g = start
        y.backward(nn.NdArray.from_numpy_array(gyd))
        np.testing.assert_allclose(w.g, want + start, rtol=1e-6, atol=1e-5)


def backward(y: nn.Variable, x: nn.Variable, start: float) -> Array:
    """Goes back from numbers, which it returns, to a gradient of x that is written, or added to `start`."""
    gyd = numbers(*y.shape, seed=1)
    x.g = start
    if not start:
        x.grad.zero()
    y.backward(nn.NdArray.from_numpy_array(gyd))
    return gyd


@pytest.mark.parametrize(("kernel", "stride", "pad"), [((3, 2), (2, 1), 1), ((17, 17), (2, 1), 1), ((2, 3), (3, 3), 0)])
@pytest.mark.parametrize("start", [0.0, 0.5])
def test_max_pooling(kernel: tuple[int, int], stride: tuple[int, int], pad: int, start: float) -> None:
    """Windows that overlap, of more than 256 places too, and such that leave places out."""
    xd = np.random.default_rng(0).permutation(2 * 30 * 29).reshape(1, 2, 30, 29) / 16.0
    x = nn.Variable.from_numpy_array(xd, need_grad=True)
    y = F.max_pooling(x, kernel, stride=stride, pad=(pad, pad))
    y.forward()
    gyd = backward(y, x, start)
    padded = np.pad(xd, [(0, 0), (0, 0), (pad, pad), (pad, pad)], constant_values=-np.inf)
    want, gx = np.zeros(y.shape), np.zeros_like(padded)
    for c, i, j in np.ndindex(*y.shape[1:]):
        top, left = i * stride[0], j * stride[1]
        window = padded[0, c, top : top + kernel[0], left : left + kernel[1]]
        want[0, c, i, j] = window.max()
        a, b = np.unravel_index(window.argmax(), window.shape)
        gx[0, c, top + a, left + b] += gyd[0, c, i, j]
    np.testing.assert_array_equal(y.d, want)
    np.testing.assert_allclose(x.g, gx[:, :, pad : 30 + pad, pad : 29 + pad] + start, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(50, 7, 7, 7), (3, 41, 8, 8), (2, 30, 5, 9), (2, 3, 20, 6), (2, 20, 16, 18)])
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 3), (3, 2)])
@pytest.mark.parametrize("start", [0.0, 0.5])
def test_max_pooling_of_many_planes(shape: tuple[int, ...], kernel: int, stride: int, start: float) -> None:
    xd = np.random.default_rng(0).permutation(int(np.prod(shape))).reshape(shape) / 16.0
    x = nn.Variable.from_numpy_array(xd, need_grad=True)
    y = F.max_pooling(x, (kernel, kernel), stride=(stride, stride))
    y.forward()
    gyd = backward(y, x, start)
    windows = np.lib.stride_tricks.sliding_window_view(xd, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
    windows = windows.reshape(*windows.shape[:4], -1)
    np.testing.assert_array_equal(y.d, windows.max(-1))
    place = windows.argmax(-1)
    n, c, i, j = np.indices(y.shape)
    gx = np.zeros(shape)
    np.add.at(gx, (n, c, i * stride + place // kernel, j * stride + place % kernel), gyd)
    np.testing.assert_allclose(x.g, gx + start, rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(BACKEND == "cpu", reason="the CPU raises an error")
def test_rows_that_the_table_does_not_have_are_nan_on_a_gpu() -> None:
    """Nothing outside the table is read or written."""
    w = nn.Variable.from_numpy_array(numbers(3, 4), need_grad=True)
    y = F.embed(nn.Variable.from_numpy_array(np.array([1, -1, 3, 2**40])), w)
    y.forward()
    np.testing.assert_array_equal(y.d[0], w.d[1])
    assert np.isnan(y.d[1:]).all()
    w.grad.zero()
    y.backward()
    np.testing.assert_array_equal(w.g, np.array([0.0, 1.0, 0.0])[:, None] * np.ones(4))


SHAPES = [
    ((3, 1, 70, 33), (1, 2, 33, 67)),
    ((70, 33), (4, 33, 67)),
    ((4, 70, 33), (1, 33, 67)),
    ((5000, 1, 2), (5000, 2, 1)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_batch_matmul(shapes: tuple[tuple[int, ...], ...]) -> None:
    """Several tiles, and matrices that are broadcast."""
    ad, bd = (numbers(*s, seed=i) for i, s in enumerate(shapes))
    a, b = (nn.Variable.from_numpy_array(v, need_grad=True) for v in (ad, bd))
    y = F.batch_matmul(a, b)
    y.forward()
    np.testing.assert_allclose(y.d, ad @ bd, rtol=1e-5, atol=1e-5)
