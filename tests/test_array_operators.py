"""NdArray: operators, copies.

Expected values are NumPy's, or were asked of NNabla 1.39 where a comment says so.
"""

from __future__ import annotations

import copy
import pickle
import weakref

import numpy as np
import pytest

import nnrs as nn
from nnrs import NdArray

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
VALUES = np.array([[0, 1, 2], [3, 100, 7]])


def array(values, dtype="float32") -> NdArray:
    return NdArray.from_numpy_array(np.array(values, dtype=dtype))


# Operators


@pytest.mark.parametrize(
    "formula",
    ["x + y", "x - y", "x * y", "x / y", "x ** y", "x + 2", "2 + x", "x - 2", "2 - x", "x * 3", "3 * x", "x / 2"]
    + ["2 / x", "x ** 2", "2 ** x", "-x", "+x", "x @ y", "x + np.float32(2)", "x * np.int64(3)", "True + x"],
)
def test_operators(formula):
    nx, ny = np.array([1, 2, 3], "float32"), np.array([0.5, 3, 2], "float32")
    expected = eval(formula, {"x": nx, "y": ny, "np": np})
    result = eval(formula, {"x": array(nx), "y": array(ny), "np": np})
    assert isinstance(result, NdArray) and result.dtype == np.float32
    np.testing.assert_allclose(result.data, expected, rtol=1e-6)


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "**"])
@pytest.mark.parametrize("right", [2, 0.5, "array", "itself"])
def test_in_place_operators_write_into_the_arrays_memory(symbol, right):
    values = np.array([1, 2, 3], "float32")
    a = alias = array(values)
    memory = a.data
    other = array([2, 3, 0.5]) if right == "array" else a if right == "itself" else right
    expected = eval(f"v {symbol} o", {"v": values, "o": other.data.copy() if isinstance(other, NdArray) else other})
    names = {"a": a, "o": other}
    exec(f"a {symbol}= o", names)
    assert names["a"] is alias and np.shares_memory(alias.data, memory)
    np.testing.assert_allclose(memory, expected, rtol=1e-6)


def test_in_place_operators_of_integers_give_float32():
    a = array([1, 2, 3], "int32")
    a += 1.5
    assert a.dtype == np.float32 and np.array_equal(a.data, [2.5, 3.5, 4.5])  # as NNabla


def test_in_place_broadcast_and_its_limits():
    a = array([[1, 2, 3], [4, 5, 6]])
    a += array([[10], [20]])
    assert np.array_equal(a.data, [[11, 12, 13], [24, 25, 26]])
    b = array([[1], [2]])
    with pytest.raises(ValueError):
        b += a
    assert np.array_equal(b.data, [[1], [2]])


@pytest.mark.parametrize("operand", ["a", None, [1], object(), np.array([1, 2, 3]), {}])
@pytest.mark.parametrize("symbol", ["+", "+=", "*", "**", "@"])
def test_operands_that_are_no_arrays(operand, symbol):
    a = array([1, 2, 3])
    if isinstance(operand, np.ndarray) and symbol in ("+", "*", "**", "@"):
        return  # NumPy's own operators take over
    with pytest.raises(TypeError):
        exec(f"a {symbol} b", {"a": a, "b": operand})
    assert np.array_equal(a.data, [1, 2, 3])


def test_arithmetic_of_integer_arrays_is_float32():
    y = array([200, 255], "uint8") + 1
    assert y.dtype == np.float32 and np.array_equal(y.data, [201, 256])


def test_hash_and_membership_go_by_identity():
    a, b = array([1.0]), array([1.0])
    assert hash(a) == hash(a) and len({a: 1, b: 2}) == 2


def test_indexing_and_assignment_by_index():
    a = array(np.arange(12).reshape(3, 4))
    a[0] = 5
    a[1:, ::2] = np.array([[1, 2], [3, 4]])
    a[2, 3] = array([7.0])[0] if hasattr(nn.functions, "slice") else 7
    expected = np.arange(12).reshape(3, 4)
    expected[0] = 5
    expected[1:, ::2] = [[1, 2], [3, 4]]
    expected[2, 3] = 7
    assert np.array_equal(a.data, expected)
    with pytest.raises((IndexError, ValueError)):
        a[3] = 1


# Copies


@pytest.mark.parametrize("dtype", DTYPES)
def test_pickle_and_copies_are_independent(dtype):
    a = NdArray.from_numpy_array(VALUES.astype(dtype))
    for b in (pickle.loads(pickle.dumps(a)), copy.deepcopy(a), copy.copy(a)):
        assert b.dtype == np.dtype(dtype) and np.array_equal(b.data, VALUES.astype(dtype))
        b.data[0, 0] = 1
        assert a.data[0, 0] == 0


def test_pickle_of_bfloat16():
    a = array([1.0, 2.5])
    a.cast("bfloat16")
    b = pickle.loads(pickle.dumps(a))
    assert b.dtype == "bfloat16" and np.array_equal(b.get_data("r", "float32"), [1.0, 2.5])


def test_weak_references():
    a = array([1.0])
    w = weakref.ref(a)
    assert w() is a
    del a
    assert w() is None


SHAPES = [((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 2, 3), (2, 3, 4)), ((2, 2, 3), (3,))]


@pytest.mark.parametrize("a, b", SHAPES)
def test_matrix_products_with_one_array_are_computed_at_once(a, b):
    x, y = np.arange(np.prod(a)).reshape(a) + 1.0, np.cos(np.arange(np.prod(b))).reshape(b)
    for kinds in ((nn.Variable, nn.NdArray), (nn.NdArray, nn.Variable), (nn.NdArray, nn.NdArray)):
        made = kinds[0].from_numpy_array(x) @ kinds[1].from_numpy_array(y)
        assert isinstance(made, nn.NdArray)
        np.testing.assert_allclose(made.data, x @ y, rtol=1e-6)
