"""Indexing of variables and arrays, slice assignment in a graph, filling by a mask."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def leaf(values, need_grad=True):
    v = nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=need_grad)
    v.g = 0
    return v


def run(y):
    y.forward()
    y.backward()


ALL = slice(None)
KEYS = [
    *(0, -1, (0, 1), (0, 1, 2), ..., (..., 0), None, (None, 0), (0, None), np.int64(1)),
    *(slice(1, None), (ALL, slice(None, None, -1)), slice(5, None)),
    *([0], [1, 0], [[0, 1]], [], ([0, 1], [1, 2]), ([0, 1], 0, [1, 2]), (0, [0, 1]), ([0, 1], None)),
    *((ALL, [0, 2]), ([0, 1], slice(1, None)), (..., [0, 3])),
    *(np.array([1, 0]), np.array([0, -1]), np.array([True, False]), (ALL, np.array([True, False, True]))),
    *(np.array([[True, False, True], [False, True, True]]), X > 5),
]


@pytest.mark.parametrize("key", KEYS, ids=lambda k: str(k).replace("\n", "")[:40])
def test_reading_by_key_is_numpy(key):
    x = leaf(X)
    expected = X[key]
    a = x.data[key]
    assert a.shape == expected.shape and np.array_equal(a.data, expected)
    y = x[key]
    assert y.shape == expected.shape
    if expected.size:
        y.forward()
        assert np.array_equal(y.d, expected)
        y.backward()
        g = np.zeros_like(X)
        np.add.at(g, key, 1)
        assert np.array_equal(x.g, g)


@pytest.mark.parametrize("key", KEYS, ids=lambda k: str(k).replace("\n", "")[:40])
def test_writing_by_key_is_numpy(key):
    expected = X.copy()
    expected[key] = -1
    a = nn.NdArray.from_numpy_array(X)
    a[key] = -1
    assert np.array_equal(a.data, expected)
    x = leaf(X)
    y = x * 1
    y[key] = -1
    z = F.sum(y * y)
    run(z)
    assert np.array_equal(y.d, expected)
    assert np.array_equal(x.g, np.where(expected == -1, 0, 2 * X))


@pytest.mark.parametrize("bad", [2, (0, 3), (0, 1, 2, 3), (..., ...), "a", 1.5, np.ones((3, 3), bool), [5]])
def test_bad_keys(bad):
    x = leaf(X)
    for attempt in (
        lambda: x[bad],
        lambda: x.data[bad],
        lambda: x.__setitem__(bad, 1),
        lambda: x.data.__setitem__(bad, 1),
    ):
        with pytest.raises((IndexError, TypeError, ValueError)):
            attempt()
    assert x.parent is None and np.array_equal(x.d, X)


def test_indices_in_the_graph_are_read_at_each_run():
    x, i = leaf(X), nn.Variable.from_numpy_array(np.array([1, 0]))
    y, z = x[i], x[i, nn.Variable.from_numpy_array(np.array([0, 2]))]
    nn.forward_all([y, z])
    assert np.array_equal(y.d, X[[1, 0]]) and np.array_equal(z.d, X[[1, 0], [0, 2]])
    i.d = [0, 0]
    y.forward()
    assert np.array_equal(y.d, X[[0, 0]])
    h = x * 1
    h[i] = 5
    h.forward()
    assert (h.d[0] == 5).all() and np.array_equal(h.d[1], X[1])


# Slice assignment in a graph


@pytest.mark.parametrize("auto", [False, True])
def test_assigned_values_get_their_gradient(auto):
    with nn.auto_forward(auto):
        x, w = leaf(np.arange(6).reshape(2, 3)), leaf([10, 20, 30])
        y = x * 2
        y[0] = w * 3
        z = y * y
    z.forward()
    z.backward()
    assert y.parent.name == "ScatterNd"
    assert z.d.tolist() == [[900, 3600, 8100], [36, 64, 100]]
    assert x.g.tolist() == [[0, 0, 0], [24, 32, 40]] and w.g.tolist() == [180, 360, 540]


@pytest.mark.parametrize("auto", [False, True])
def test_a_value_computed_from_the_variable_itself(auto):
    """y[0] = f(y[1]) makes no cycle: f reads what y was."""
    with nn.auto_forward(auto):
        x = leaf(np.arange(6).reshape(2, 3))
        y = x * 2
        k = y * y
        y[0] = y[1] * 3
        z = F.sum(y * y)
    z.forward()
    assert y.d.tolist() == [[18, 24, 30], [6, 8, 10]] and float(z.d) == 2000
    z.backward()
    assert x.g.tolist() == [[0, 0, 0], [240, 320, 400]]
    if auto:  # what ran already is the function of what it read
        x.g = 0
        k.backward()
        assert np.array_equal(x.g, 8 * np.arange(6).reshape(2, 3))


def test_earlier_readers_in_a_static_graph_see_the_new_value():
    x = leaf([0, 1, 2])
    h = x * 1
    k = h * 3
    h[0] = 9
    k.forward()
    assert k.d.tolist() == [27, 3, 6]


def test_assigning_twice_and_to_a_leaf():
    x = leaf(np.arange(6).reshape(2, 3))
    y = x * 2
    y[0] = 5
    y[:, 0] = -1
    run(y)
    assert y.d.tolist() == [[-1, 5, 5], [-1, 8, 10]] and x.g.tolist() == [[0, 0, 0], [0, 2, 2]]
    x.name = "w"
    old = x.d.copy()
    x[1, 1] = 7
    assert x.name == "w" and np.array_equal(x.d, old), "a static graph computes at forward"
    x.forward()
    assert x.d.tolist() == [[0, 1, 2], [3, 7, 5]]
    with pytest.raises((ValueError, TypeError), match="(broadcast|value)"):
        x[0] = np.ones(5)
    scalar = leaf(3.0)
    scalar[()] = 4
    scalar.forward()
    assert float(scalar.d) == 4


# Filling by a mask

MASK = np.array([[1, 0, 0], [0, 0, 1]], np.float32)


@pytest.mark.parametrize("name", ["masked_fill_", "bool_fill_"])
@pytest.mark.parametrize("mask", ["variable", "ndarray", "numpy", "row"])
def test_fill_in_a_graph(name, mask):
    x = leaf(np.arange(6).reshape(2, 3))
    y = x * 2
    values = MASK[0] if mask == "row" else MASK
    m = values if mask == "numpy" else nn.Variable.from_numpy_array(values)
    z = getattr(y, name)(m.data if mask == "ndarray" else m, -5)
    run(z)
    expected = np.where(values != 0, -5, 2 * np.arange(6).reshape(2, 3))
    assert z.parent.name == "BoolFill" and np.array_equal(z.d, expected) and np.array_equal(y.d, expected)
    assert np.array_equal(x.g, np.broadcast_to(np.where(values != 0, 0, 2), (2, 3)))
    with pytest.raises(TypeError, match="value"):
        y.masked_fill_(m, "a")


@pytest.mark.host
@pytest.mark.parametrize("name", ["masked_fill", "bool_fill"])
def test_fill_of_an_array_is_in_place(name):
    a = nn.NdArray.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3))
    memory = a.data
    b = getattr(a, name)(nn.NdArray.from_numpy_array(MASK), -5)
    assert memory.tolist() == [[-5, 1, 2], [3, 4, -5]] and np.shares_memory(b.data, memory)
    getattr(a, name)(MASK[:, :1], 8)
    assert memory.tolist() == [[8, 8, 8], [3, 4, -5]]


@pytest.mark.parametrize("key", [slice(2, 2), np.zeros(4, bool)])
def test_writing_to_nothing_makes_a_node_all_the_same(key):
    x = nn.Variable.from_numpy_array(np.ones((4, 3), np.float32))
    x[key] = 7
    assert x.parent is not None
    x.forward()
    np.testing.assert_array_equal(x.d, np.ones((4, 3)))


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.float64(2), np.int64(2), np.bool_(2)])
def test_a_number_fills_in_new_memory(number):
    """NNabla's: a view that was taken before keeps the old numbers."""
    for dtype in "float32", "int32":
        x = nn.Variable.from_numpy_array(np.zeros(2, dtype))
        view = x.d
        x.d = number
        assert view.tolist() == [0, 0] and (x.d == number).all() and x.d.dtype == dtype
    x.g = type(number)(0)
    assert x.grad.zeroing


@pytest.mark.parametrize("odd", [np.complex64(1), np.datetime64("2020"), np.timedelta64(3, "s")])
def test_numbers_of_other_kinds(odd):
    x = leaf([1])
    with pytest.raises(nn.Error):
        x.d = odd
    assert x.d == 1


def test_a_whole_number_that_no_double_has():
    a = nn.NdArray.from_numpy_array(np.array([1]))
    a.data = np.int64(2**60 + 1)
    assert a.data == 2**60 + 1
