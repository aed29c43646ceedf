"""Operators of Variable and NdArray with each other, with numbers and with NumPy's numbers and arrays.

What the oracle (NNabla 1.39) answers is written as NumPy formulas here.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import NdArray, Variable

OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]


def leaf(values) -> Variable:
    return Variable.from_numpy_array(np.array(values, "float32"), need_grad=True)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_a_variable_without_axes_is_no_number(op, shape):
    a, b = leaf(np.full(shape, 2.0)), leaf(4.0)
    y = op(a, b)
    b.d = 3
    a.g = b.g = 0
    y.forward()
    F.sum(y).forward()
    y.backward()
    np.testing.assert_allclose(y.d, op(a.d.astype("float64"), 3.0), rtol=1e-6)
    h = 1e-6
    slope = (op(2.0, 3.0 + h) - op(2.0, 3.0 - h)) / (2 * h)
    np.testing.assert_allclose(b.g, slope * max(a.size, 1), rtol=1e-4)


def test_sums_of_losses_are_graphs():
    u, v = leaf([1.0, 2.0]), leaf([3.0, 5.0])
    loss = F.mean(u) + 0.5 * F.sum(v)
    u.d = [5, 7]
    for x in (u, v):
        x.g = 0
    loss.forward()
    loss.backward()
    assert loss.d == 6 + 4
    np.testing.assert_array_equal(u.g, [0.5, 0.5])
    np.testing.assert_array_equal(v.g, [0.5, 0.5])


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    "number", [np.float32(2), np.float64(2), np.int64(2), np.array(2.0)], ids=lambda n: type(n).__name__
)
def test_numpy_numbers_on_both_sides(op, number):
    x = leaf([1.0, 3.0])
    for args in ((number, x), (x, number)):
        y = op(*args)
        assert isinstance(y, Variable)
        x.g = 0
        y.forward()
        y.backward()
        assert x.g.any()
        expected = op(*(np.float64(2) if a is number else x.d for a in args))
        np.testing.assert_allclose(y.d, expected, rtol=1e-6)
        z = op(*(x.data if a is x else a for a in args))
        assert isinstance(z, NdArray)
        np.testing.assert_allclose(z.data, expected, rtol=1e-6)


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
def test_numpy_arrays_are_refused(op):
    x, array = leaf([1.0, 2.0]), np.ones(2, "float32")
    for a, b in ((x, array), (array, x), (x.data, array), (array, x.data)):
        with pytest.raises(TypeError):
            op(a, b)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "int32", "int64"])
@pytest.mark.parametrize("given", ["float32", "float64", "float16"])
def test_floats_become_integers_as_in_c(dtype, given):
    with np.errstate(invalid="ignore"):
        values = np.array([-2.5, 2.5, 300.2, -129.0, 255.9, 0.0, -0.9, 65.0], given)
        expected = values.astype("int32").astype(dtype)
        array = NdArray.from_numpy_array(values)
        np.testing.assert_array_equal(array.cast(dtype), expected)
    beyond = NdArray.from_numpy_array(np.array([np.nan, np.inf, -np.inf], given))
    lowest = np.iinfo(dtype).min if dtype in ("int32", "int64") else 0  # the oracle's, and x86-64's
    np.testing.assert_array_equal(beyond.cast(dtype), [lowest] * 3)


@pytest.mark.parametrize("f", [F.gelu, F.mish], ids=lambda f: f.__name__)
def test_nan_stays_nan_in_forward_and_backward(f):
    x = leaf([np.nan, 1.0])
    y = f(x)
    x.g = 0
    y.forward()
    y.backward()
    assert np.isnan(y.d[0]) and np.isnan(x.g[0]) and np.isfinite(x.g[1])


def test_nothing_is_read_while_a_graph_is_built():
    x = Variable(())
    assert (x * 2 + x).parent.name == "Add2"
    assert nn.get_auto_forward() is False
