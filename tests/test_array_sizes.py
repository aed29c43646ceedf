"""Array functions at sizes of several tiles, words and chunks of their kernels, forward and backward, against NumPy.
(The cases of every function are small; with NNRS_TEST_BACKEND=cudnn these run on a GPU.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from backend import BACKEND
from nnrs.ext_utils import get_extension_context

Array = np.ndarray
on_gpu = pytest.mark.skipif(BACKEND == "cpu", reason="the CPU raises an error")


@pytest.fixture(autouse=True, params=["float", "half"])
def _type(request: pytest.FixtureRequest) -> Iterator[None]:
    with nn.context_scope(get_extension_context(BACKEND, type_config=request.param)):
        yield


def numbers(*shape: int, seed: int = 0) -> Array:
    """Small multiples of 1/8: exact in float, and sums of a few in half."""
    return np.random.default_rng(seed).integers(-8, 9, shape) / 8.0


def variable(x: Array) -> nn.Variable:
    return nn.Variable.from_numpy_array(x, need_grad=True)


def plain(x: Array) -> nn.Variable:
    """Indices, or a mask."""
    return nn.Variable.from_numpy_array(x)


def check(y: nn.Variable, want: Array, x: nn.Variable, back: Callable[[Array], Array]) -> None:
    """Compares y, and the gradient of x: written, and added to what is there."""
    y.forward()
    np.testing.assert_array_equal(y.d, want)
    gy = numbers(*y.shape, seed=1)
    for start in (0.0, 0.5):
        x.g = start
        if not start:
            x.grad.zero()
        y.backward(nn.NdArray.from_numpy_array(gy))
        np.testing.assert_array_equal(x.g, back(gy) + start)


@pytest.mark.parametrize(("shape", "axes"), [
    ((70, 45), (1, 0)),
    ((3, 64, 96), (0, 2, 1)),
    ((40, 5, 33), (2, 1, 0)),
    ((2, 9, 10, 11), (0, 3, 1, 2)),
    ((7, 300), (1, 0)),
    ((8, 6, 16), (1, 0, 2)),
])  # fmt: skip
def test_transpose(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    xd = numbers(*shape)
    x = variable(xd)
    check(F.transpose(x, axes), xd.transpose(axes), x, lambda g: g.transpose(np.argsort(axes)))


@pytest.mark.parametrize("key", [
    (slice(1, 30), slice(8, 40)),
    (slice(None), slice(3, 36)),
    (slice(None, None, -3), slice(None, None, 2)),
    (slice(4, 20), slice(None)),
])  # fmt: skip
def test_slice(key: tuple[slice, ...]) -> None:
    xd = numbers(33, 48)
    x = variable(xd)

    def back(g: Array) -> Array:
        gx = np.zeros_like(xd)
        gx[key] = g
        return gx

    check(x[key], xd[key], x, back)


@pytest.mark.parametrize("sizes", [(8, 16, 24), (3, 5, 70)])
def test_concatenate(sizes: tuple[int, ...]) -> None:
    parts = [numbers(37, n, seed=n) for n in sizes]
    x = [variable(p) for p in parts]
    first = sizes[0]
    check(F.concatenate(*x, axis=1), np.concatenate(parts, axis=1), x[1], lambda g: g[:, first : first + sizes[1]])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pad(mode: str) -> None:
    """Reflections of reflections, and a border on one side alone."""
    xd, widths = numbers(2, 3, 5, 40), [(12, 0), (3, 50)]
    flat = [w for pair in widths for w in pair]
    x = variable(xd)
    places = np.pad(np.arange(xd.size).reshape(xd.shape), [(0, 0), (0, 0), *widths], mode)
    if mode == "constant":
        places = np.pad(np.arange(xd.size).reshape(xd.shape), [(0, 0), (0, 0), *widths], constant_values=-1)
    want = np.where(places < 0, 0.25, xd.reshape(-1)[places])

    def back(g: Array) -> Array:
        gx = np.zeros(xd.size)
        np.add.at(gx, places[places >= 0], g[places >= 0])
        return gx.reshape(xd.shape)

    y = F.pad(x, flat, "repeat" if mode == "edge" else mode, 0.25)
    check(y, want, x, back)


@pytest.mark.parametrize(("shape", "axis", "batch", "picks"), [
    ((50, 8), 0, 0, (3, 40)),
    ((3, 50, 7), 1, 0, (90,)),
    ((300, 20), 1, 0, (30,)),
    ((4, 30, 5), 1, 1, (4, 60)),
    ((2, 3, 30, 4), 2, 1, (2, 50)),
    ((6, 9, 20), 2, 1, (6, 25)),
])  # fmt: skip
def test_gather(shape: tuple[int, ...], axis: int, batch: int, picks: tuple[int, ...]) -> None:
    """Several axes before the one that is picked from, and batches."""
    xd, index = numbers(*shape), np.random.default_rng(2).integers(0, shape[axis], picks)
    places = np.arange(xd.size).reshape(shape)
    if batch:
        places = np.stack([np.take(p, i, axis - 1) for p, i in zip(places, index, strict=True)])
    else:
        places = np.take(places, index, axis)

    def back(g: Array) -> Array:
        gx = np.zeros(xd.size)
        np.add.at(gx, places, g)
        return gx.reshape(shape)

    x = variable(xd)
    check(F.gather(x, plain(index), axis, batch), xd.reshape(-1)[places], x, back)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 17])
def test_gather_nd(width: int) -> None:
    """Rows of several lengths, many of them picked often, by coordinates from both ends."""
    xd, index = numbers(40, 30, width), np.random.default_rng(8).integers(-30, 30, (2, 700))

    def back(g: Array) -> Array:
        gx = np.zeros_like(xd)
        np.add.at(gx, tuple(index), g)
        return gx

    x = variable(xd)
    check(F.gather_nd(x, plain(index)), xd[tuple(index)], x, back)


@pytest.mark.parametrize("shape", [(2000, 3, 3), (700, 5, 2), (300, 31, 32), (40, 33, 34), (1, 3)])
@pytest.mark.parametrize(("k", "upper"), [(0, True), (-1, False), (1, True), (-40, False)])
def test_trilu(shape: tuple[int, ...], k: int, upper: bool) -> None:
    """Matrices that a mask goes over, and such as are copied row by row; NaN outside is left out."""
    xd, kept = numbers(*shape), (np.triu if upper else np.tril)(np.ones(shape[-2:]), k) > 0
    x = variable(np.where(kept, xd, np.nan))
    check(F.trilu(x, k, upper), np.where(kept, xd, 0), x, lambda g: g * kept)


@pytest.mark.parametrize("add", [False, True])
def test_scatter_nd(add: bool) -> None:
    """Many values for few places: the last one stays, or all are added."""
    data, index = numbers(300, 6), np.random.default_rng(3).integers(-9, 9, (1, 300))
    out = numbers(20, 6, seed=4)
    want = out.copy()
    for row, i in zip(data, index[0], strict=True):
        want[i] = row + (want[i] if add else 0)
    untouched = np.ones((20, 1)) * (add or ~np.isin(np.arange(20), index[0] % 20)[:, None])
    for which, back in ((0, lambda g: g[index[0]]), (2, lambda g: g * untouched)):
        x = [variable(data), plain(index), variable(out)]
        check(F.scatter_nd(x[0], x[1], out=x[2], add=add), want, x[which], back)


def test_scatter_add() -> None:
    x0, x1 = numbers(9, 40), numbers(70, 50, seed=5)
    index = np.random.default_rng(6).integers(0, 9, (60, 30))
    want = x0.copy()
    columns = np.broadcast_to(np.arange(30), index.shape)
    np.add.at(want, (index, columns), x1[:60, :30])

    def back(g: Array) -> Array:
        gx = np.zeros_like(x1)
        gx[:60, :30] = g[index, columns]
        return gx

    x = variable(x1)
    check(F.scatter_add(variable(x0), plain(index), x, 0), want, x, back)


def test_masks() -> None:
    """More places than a block of the sort takes."""
    xd = numbers(5000, 3)
    mask = np.random.default_rng(7).random(5000) < 0.3
    x = variable(xd)

    def back(g: Array) -> Array:
        gx = np.zeros_like(xd)
        gx[mask] = g
        return gx

    check(F.bool_gather(x, plain(mask)), xd[mask], x, back)
    rows = variable(xd[mask])
    check(F.bool_scatter(rows, plain(mask)), xd * mask[:, None], rows, lambda g: g[mask])


@on_gpu
def test_places_outside_are_nan_or_left_out_on_a_gpu() -> None:
    """Nothing outside the arrays is read or written."""
    far = np.array([1, -9, 3, 2**40])
    x = variable(numbers(3, 4))
    for y in (F.gather(x, plain(far)), F.gather_nd(x, plain(far[None]))):
        x.grad.zero()
        y.forward()
        np.testing.assert_array_equal(y.d[0], x.d[1])
        assert np.isnan(y.d[1:]).all()
        y.backward()
        np.testing.assert_array_equal(x.g, np.array([0.0, 1.0, 0.0])[:, None] * np.ones(4))
    rows = variable(numbers(4, 4))
    for add in (False, True):
        y = F.scatter_nd(rows, plain(far[None]), shape=(3, 4), add=add)
        y.forward()
        np.testing.assert_array_equal(y.d, np.array([[0.0], [1.0], [0.0]]) * rows.d[0])
    y = F.scatter_add(x, plain(np.broadcast_to(far[:, None], (4, 4))), rows)
    y.forward()
    np.testing.assert_array_equal(y.d, x.d + np.array([[0.0], [1.0], [0.0]]) * rows.d[0])
    mask = plain(np.array([0, 1, 1]))
    y = F.bool_gather(x, mask)
    mask.d = np.array([0, 1, 0])
    y.forward()
    np.testing.assert_array_equal(y.d[0], x.d[1])
    assert np.isnan(y.d[1]).all()
    y = F.bool_scatter(variable(numbers(1, 4)), plain(np.array([0, 1, 1])))
    y.forward()
    assert y.d[1].any()
    assert not y.d[2].any()
