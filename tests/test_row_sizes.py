"""Functions of rows, channels and reductions at sizes of several blocks, teams and parts of their kernels, forward and
backward, against plain formulas. (The cases of every function are small; with NNRS_TEST_BACKEND=cudnn these run on a
GPU.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F

Array = np.ndarray


def numbers(*shape: int, seed: int = 0) -> Array:
    """Small multiples of 1/16: exact in float."""
    return np.random.default_rng(seed).integers(-40, 41, shape) / 16.0


def run(f: Callable[..., nn.Variable], *inputs: Array) -> tuple[Array, Array, list[Array]]:
    """y, the gradient that goes in, and those that come out."""
    x = [nn.Variable.from_numpy_array(v.astype(np.float32), need_grad=True) for v in inputs]
    y = f(*x)
    y.forward()
    gy = numbers(*y.shape, seed=9)
    for v in x:
        v.g = 0
    y.backward(nn.NdArray.from_numpy_array(gy.astype(np.float32)))
    return y.d.astype(np.float64), gy, [v.g.astype(np.float64) for v in x]


def near(got: Array, want: Array, tolerance: float = 3e-5) -> None:
    """Equal but for roundings, measured by the largest number."""
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, float(np.abs(want).max(initial=0))))


# Rows that are shorter than a few vectors, in more than one group of those that are turned together.
SHORT = [(210, n) for n in (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 23, 24, 31, 32, 33, 47, 63, 64, 65, 100)]
ROWS = [((3, 5000), 1), ((2000, 10), 1), ((2, 50, 300), 1), ((300, 4), 0), ((5000, 3), 0), ((40, 1024), 1)]
ROWS += [(shape, 1) for shape in SHORT]


@pytest.mark.parametrize(("shape", "axis"), ROWS)
def test_softmax(shape: tuple[int, ...], axis: int) -> None:
    x = numbers(*shape) * 3
    y, gy, (gx,) = run(lambda v: F.softmax(v, axis=axis), x)
    e = np.exp(x - x.max(axis, keepdims=True))
    p = e / e.sum(axis, keepdims=True)
    near(y, p)
    near(gx, p * (gy - (p * gy).sum(axis, keepdims=True)))
    y, gy, (gx,) = run(lambda v: F.log_softmax(v, axis=axis), x)
    near(y, np.log(p))
    near(gx, gy - p * gy.sum(axis, keepdims=True), 2e-4)


@pytest.mark.parametrize(("shape", "axis"), ROWS)
def test_cross_entropy(shape: tuple[int, ...], axis: int) -> None:
    x = numbers(*shape) * 3
    n, rows = shape[axis], tuple(1 if a == axis else n for a, n in enumerate(shape))
    labels = np.random.default_rng(1).integers(-1, n, rows)
    target = nn.Variable.from_numpy_array(labels)
    y, gy, (gx,) = run(lambda v: F.softmax_cross_entropy(v, target, axis=axis), x)
    e = np.exp(x - x.max(axis, keepdims=True))
    p = e / e.sum(axis, keepdims=True)
    hit = np.arange(n).reshape([n if a == axis else 1 for a in range(x.ndim)]) == labels
    near(y, -(np.log(p) * hit).sum(axis, keepdims=True))
    near(gx, gy * (p - hit) * (labels >= 0))


def test_softmax_of_infinities() -> None:
    inf = np.inf
    x = np.zeros((5, 70))
    x[0, :] = -inf
    x[1, :40] = -inf
    x[2, 69], x[3, 3], x[4, [0, 69]] = inf, np.nan, [-inf, 5]
    x = nn.Variable.from_numpy_array(x.astype(np.float32))
    y = F.softmax(x)
    y.forward()
    assert np.isnan(y.d[[0, 2, 3]]).all() and np.isfinite(y.d[[1, 4]]).all()
    np.testing.assert_allclose(y.d[1], np.r_[np.zeros(40), np.full(30, 1 / 30)], rtol=1e-5)


REDUCED: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 100_000), (1,)),
    ((40_000, 3), (0,)),
    ((2, 100, 70), (1,)),
    ((2, 100, 70), (0, 2)),
    ((100, 257), (0,)),
    ((3, 40, 5, 20), (1, 3)),
    ((300, 100), (1,)),
    *((shape, (1,)) for shape in SHORT),
]


def rows_of(x: Array, axes: tuple[int, ...]) -> Array:
    """The reduced elements as rows, in their order."""
    kept = [a for a in range(x.ndim) if a not in axes]
    n = int(np.prod([x.shape[a] for a in axes]))
    return x.transpose([*kept, *axes]).reshape(-1, n)


@pytest.mark.parametrize(("shape", "axes"), REDUCED)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes(shape: tuple[int, ...], axes: tuple[int, ...], name: str) -> None:
    x = numbers(*shape)
    y, gy, (gx,) = run(lambda v: getattr(F, name)(v, axis=axes), x)
    rows = rows_of(x, axes)
    best = getattr(rows, f"arg{name}")(1)
    np.testing.assert_array_equal(y.reshape(-1), rows[np.arange(len(rows)), best])
    want = np.zeros(rows.shape)
    want[np.arange(len(rows)), best] = gy.reshape(-1)
    np.testing.assert_array_equal(rows_of(gx, axes), want)
    v = nn.Variable.from_numpy_array(x.astype(np.float32))
    index = getattr(F, name)(v, axis=axes, only_index=True)
    index.forward()
    np.testing.assert_array_equal(index.d.reshape(-1), best)


@pytest.mark.parametrize(("shape", "axes"), REDUCED)
def test_means_and_norms(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = numbers(*shape)
    y, gy, (gx,) = run(lambda v: F.mean(v, axis=axes, keepdims=True), x)
    near(y, x.mean(axes, keepdims=True))
    near(gx, np.broadcast_to(gy * y.size / x.size, shape), 1e-6)
    for p, want in (
        (1, np.abs(x).sum(axes)),
        (2, np.sqrt((x * x).sum(axes))),
        (3, (np.abs(x) ** 3).sum(axes) ** (1 / 3)),
        (np.inf, np.abs(x).max(axes)),
    ):
        near(run(lambda v, p=p: F.norm(v, p=p, axis=axes), x)[0], want)


@pytest.mark.parametrize(("shape", "axes"), REDUCED)
def test_product(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = 2.0 ** (np.random.default_rng(0).integers(0, 2, shape) * 2 - 1)  # never far from 1 in the end
    ones = np.random.default_rng(1).random(shape) < 0.9
    x = np.where(ones, 1.0, x)
    if np.log2(np.prod(rows_of(x, axes), axis=1)).__abs__().max() > 100:
        x = np.ones(shape)
    y, gy, (gx,) = run(lambda v: F.prod(v, axis=axes, keepdims=True), x)
    want = np.prod(x, axis=axes, keepdims=True)
    near(y / want, np.ones_like(want))
    near(gx / (gy * want / x + (gy == 0)), np.broadcast_to(gy != 0, shape).astype(float))


LINES = [(shape, 1) for shape in SHORT] + [((n, 210), 0) for _, n in SHORT]
LINES += [((3, 17, 40), 1), ((7, 9, 3), 1), ((2, 3000), 1), ((1, 3000), 1)]


@pytest.mark.parametrize(("shape", "axis"), LINES)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative(shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> None:
    x = np.abs(numbers(*shape)) / 8 + 0.2
    x[x > 2] = 1 / x[x > 2]
    if shape[axis] > 100:
        x = np.where(x < 0.6, 1.0, x) ** 0.01

    def turned(v: Array) -> Array:
        return np.flip(v, axis) if reverse else v

    def scanned(v: Array, op: np.ufunc, start: float) -> Array:
        y = op.accumulate(turned(v), axis)
        if exclusive:
            y = np.concatenate([np.full_like(y.take([0], axis), start), y.take(range(shape[axis] - 1), axis)], axis)
        return turned(y)

    def behind(v: Array) -> Array:
        """The sum of those from each on, or behind it."""
        y = np.flip(np.flip(v, axis).cumsum(axis), axis)
        return y - v if exclusive else y

    x = x.astype(np.float32).astype(np.float64)
    y, gy, (gx,) = run(lambda v: F.cumsum(v, axis=axis, exclusive=exclusive, reverse=reverse), x)
    near(y, scanned(x, np.add, 0))
    near(gx, turned(behind(turned(gy))), 1e-4)
    y, gy, (gx,) = run(lambda v: F.cumprod(v, axis=axis, exclusive=exclusive, reverse=reverse), x)
    want = scanned(x, np.multiply, 1)
    near(y, want)
    near(gx, turned(behind(turned(gy * want))) / x, 1e-4)


CHANNELS = [
    ((8, 5, 40, 40), 1),
    ((3000, 40), 1),
    ((6, 4, 3, 2), 1),
    ((3, 70, 9, 16), 1),
    ((9, 7, 4), 2),
    ((2, 3, 50_000), 1),
]


def normalized(x: Array, gy: Array, gamma: Array, axes: tuple[int, ...]) -> tuple[Array, Array, Array]:
    """The normalized numbers, the gradient of x, and what the gradient of gamma is summed of."""
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    inverse = 1 / np.sqrt(variance + 1e-5)
    z, g = (x - mean) * inverse, gy * gamma
    gx = inverse * (g - g.mean(axes, keepdims=True) - z * (g * z).mean(axes, keepdims=True))
    return z, gx, gy * z


@pytest.mark.parametrize(("shape", "axis"), CHANNELS)
def test_batch_normalization(shape: tuple[int, ...], axis: int) -> None:
    one = [n if a == axis else 1 for a, n in enumerate(shape)]
    reduced = tuple(a for a in range(len(shape)) if a != axis)
    x, beta, gamma = numbers(*shape) + 7, numbers(*one, seed=1), numbers(*one, seed=2)
    mean, variance = numbers(*one, seed=3), np.abs(numbers(*one, seed=4)) + 0.5
    running = [nn.Variable.from_numpy_array(v.astype(np.float32)) for v in (mean, variance)]
    f = F.batch_normalization
    y, gy, (gx, gb, gg) = run(lambda v, b, g: f(v, b, g, *running, axes=[axis], decay_rate=0.75), x, beta, gamma)
    z, want, parts = normalized(x, gy, gamma, reduced)
    near(y, z * gamma + beta, 1e-5)
    near(gx, want, 1e-5)
    near(gb, gy.sum(reduced, keepdims=True), 1e-5)
    near(gg, parts.sum(reduced, keepdims=True), 1e-5)
    n = x.size // x.shape[axis]
    near(running[0].d, 0.75 * mean + 0.25 * x.mean(reduced, keepdims=True), 1e-6)
    near(running[1].d, 0.75 * variance + 0.25 * x.var(reduced, keepdims=True) * n / (n - 1), 1e-6)
    fixed = [v.d.astype(np.float64) for v in running]
    y, gy, (gx, gb, gg) = run(lambda v, b, g: f(v, b, g, *running, axes=[axis], batch_stat=False), x, beta, gamma)
    z = (x - fixed[0]) / np.sqrt(fixed[1] + 1e-5)
    near(y, z * gamma + beta, 1e-5)
    near(gx, gy * gamma / np.sqrt(fixed[1] + 1e-5), 1e-5)
    near(gg, (gy * z).sum(reduced, keepdims=True), 1e-5)


def test_statistics_far_from_zero() -> None:
    """A large mean, and an outlier at the place that sums are shifted by, take nothing from the variance."""
    x = np.random.default_rng(0).standard_normal((64, 3, 20, 20)) + 3000
    x[:, 0, 0, 0] = -5000
    x = x.astype(np.float32).astype(np.float64)
    zeros, ones = np.zeros((1, 3, 1, 1)), np.ones((1, 3, 1, 1))
    y, *_ = run(lambda v, b, g: F.batch_normalization(v, b, g, None, None, axes=[1]), x, zeros, ones)
    z, *_ = normalized(x, np.zeros_like(x), ones, (0, 2, 3))
    near(y, z, 2e-4)


LAYERS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3, 5000), (0,)),
    ((300, 64), (0,)),
    ((4, 6, 50), (0, 1)),
    ((4, 6, 50), (1,)),
    ((1000, 3), (0,)),
    ((4000, 40), (0,)),
    *((shape, (0,)) for shape in SHORT[1:]),
]


@pytest.mark.parametrize(("shape", "axes"), LAYERS)
def test_layer_normalization(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    one = [1 if a in axes else n for a, n in enumerate(shape)]
    reduced = tuple(a for a in range(len(shape)) if a not in axes)
    x, beta, gamma = numbers(*shape) + 7, numbers(*one, seed=1), numbers(*one, seed=2)
    f = F.layer_normalization
    y, gy, (gx, gb, gg) = run(lambda v, b, g: f(v, b, g, batch_axis=list(axes)), x, beta, gamma)
    z, want, parts = normalized(x, gy, gamma, reduced)
    near(y, z * gamma + beta, 1e-5)
    near(gx, want, 1e-5)
    near(gb, gy.sum(axes, keepdims=True), 1e-5)
    near(gg, parts.sum(axes, keepdims=True), 1e-5)
