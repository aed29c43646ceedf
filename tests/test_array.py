"""NdArray: element types, assignment, lazy content, shapes.

Expected values are NumPy's, or were asked of NNabla 1.39 where a comment says so.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import NdArray

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
VALUES = np.array([[0, 1, 2], [3, 100, 7]])


def array(values, dtype="float32") -> NdArray:
    return NdArray.from_numpy_array(np.array(values, dtype=dtype))


# Element types


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_round_trip_keeps_the_type(dtype):
    values = VALUES.astype(dtype)
    a = NdArray.from_numpy_array(values)
    assert a.dtype == np.dtype(dtype)
    assert a.data.dtype == np.dtype(dtype)
    assert np.array_equal(a.data, values)
    values[0, 0] = 1
    assert a.data[0, 0] == 0, "from_numpy_array copies"


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_of_any_kind_is_taken(dtype):
    values = VALUES.astype(dtype)
    bytes_ = np.zeros(values.nbytes + 1, "uint8")
    unaligned = bytes_[1:].view(dtype).reshape(VALUES.shape)
    unaligned[:] = values
    other_order = values.astype(values.dtype.newbyteorder())
    for given in unaligned, other_order, np.asfortranarray(values), values[::-1, ::-1][::-1, ::-1]:
        given.flags.writeable = False
        a = NdArray(VALUES.shape)
        a.data = given
        for data in a.data, NdArray.from_numpy_array(given).data:
            assert data.dtype == np.dtype(dtype) and np.array_equal(data, values)


@pytest.mark.parametrize("dtype", [np.longlong, np.ulonglong, np.intc, np.uintc])
def test_types_that_are_others_for_c_alone_are_taken(dtype):
    assert np.array_equal(NdArray.from_numpy_array(np.array([1, 2], dtype)).data, [1, 2])


def test_more_axes_than_numpy_has_are_an_error():
    a = NdArray((1,) * 65)
    a.fill(3)
    for use in (lambda: a.data, lambda: np.asarray(a), lambda: a.get_data("r"), lambda: setattr(a, "data", np.ones(1))):
        with pytest.raises(ValueError, match="dimensions|broadcasts"):
            use()
    assert float(a) == 3


def test_no_type_is_numpys_default():
    assert array([1.0]).cast(None).dtype == np.dtype(None)


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("origin", DTYPES)
def test_access_in_another_type_converts_as_numpy(origin, to):
    values = VALUES.astype(origin)
    a = NdArray.from_numpy_array(values)
    read = a.get_data("r", to)
    assert read.dtype == np.dtype(to) and np.array_equal(read, values.astype(to))
    assert a.dtype == np.dtype(origin), "reading in another type leaves the array's own"
    written = a.get_data("rw", to)
    assert written.dtype == np.dtype(to) and np.array_equal(written, values.astype(to))
    assert a.dtype == np.dtype(to), "access for writing changes the type"


@pytest.mark.parametrize("to", ["uint8", "int8", "uint16", "int16", "int32", "uint32"])
def test_integers_wrap_into_narrower_ones_as_numpy(to):
    values = np.array([300, -1, 70000, 2**40 + 5, -(2**33) - 7])
    assert np.array_equal(NdArray.from_numpy_array(values).cast(to), values.astype(to))


def test_fractions_are_cut_and_infinity_and_nan_pass_between_floats():
    values = np.array([2.5, -2.5, 0.999, -0.999, 1e9])
    assert np.array_equal(NdArray.from_numpy_array(values).cast("int64"), [2, -2, 0, 0, 10**9])
    special = np.array([np.inf, -np.inf, np.nan, -0.0])
    half = NdArray.from_numpy_array(special).cast("float16")
    assert np.array_equal(half, special.astype("float16"), equal_nan=True) and np.signbit(half[3])
    assert np.array_equal(NdArray.from_numpy_array(special).cast(bool), [True, True, True, False])


def test_large_numbers_round_to_nearest_even():
    integers = np.array([2**24 + 1, 2**24 + 3, 2**53 + 1])
    assert np.array_equal(NdArray.from_numpy_array(integers).cast("float32"), integers.astype("float32"))
    floats = np.array([65504, 65519, 65520, 1e-7, 6e-8, 5.9604645e-08, 2049, 2051])
    with np.errstate(over="ignore"):
        expected = floats.astype("float16")
    assert np.array_equal(NdArray.from_numpy_array(floats).cast("float16"), expected)


def test_dtype_is_a_numpy_dtype_object():
    assert array([1]).dtype.name == "float32"
    assert array([1], "int16").dtype.itemsize == 2


def test_a_new_array_is_float32_of_zeros():
    a = NdArray((2, 3))
    assert a.dtype == np.float32 and np.array_equal(a.data, np.zeros((2, 3)))


def test_bfloat16_keeps_eight_bits():
    a = array([1.0, 1.00390625, 3.14159, -2.5, 1e30])
    a.cast("bfloat16")
    assert a.dtype == "bfloat16"
    bits = np.array([1.0, 1.00390625, 3.14159, -2.5, 1e30], "float32").view("uint32").astype("uint64")
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("uint32").view("float32")
    assert np.array_equal(a.get_data("r", "float32"), rounded)
    assert np.array_equal(np.asarray(a), rounded)


def test_cast_returns_the_memory_of_the_array():
    a = array([1.5, 2.5])
    view = a.cast("float64")
    view[0] = 7.25
    assert a.dtype == np.float64 and a.data[0] == 7.25


@pytest.mark.parametrize("values", [np.array([1j]), np.array(["a"]), np.array([None]), np.array([object()])])
def test_elements_that_are_no_numbers_are_refused(values):
    with pytest.raises(TypeError, match="dtype"):
        NdArray.from_numpy_array(values)


@pytest.mark.parametrize("dtype", ["complex64", "no such type", "U3", object])
def test_cast_to_what_is_no_element_type_is_refused(dtype):
    a = array([1.0])
    with pytest.raises(TypeError):
        a.cast(dtype)
    assert a.dtype == np.float32 and a.data[0] == 1.0


# Assignment: as NNabla, a scalar keeps the type, an array brings its own.


@pytest.mark.parametrize("value", [3, 1.5, True, np.int64(3), np.float64(0.5)])
def test_assigning_a_number_keeps_the_type(value):
    a = array([1, 2])
    a.data = value
    assert a.dtype == np.float32 and np.array_equal(a.data, np.full(2, value, "float32"))


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "float16", "uint8"])
def test_assigning_an_array_takes_its_type(dtype):
    a = array([1, 2])
    a.data = np.array([1, 0], dtype)
    assert a.dtype == np.dtype(dtype) and np.array_equal(a.data, np.array([1, 0], dtype))


def test_assigning_large_integers_loses_nothing():
    a = NdArray((2,))
    a.data = np.array([2**24 + 1, 2**53 + 1])
    assert a.data.tolist() == [2**24 + 1, 2**53 + 1]


def test_assignment_broadcasts_as_numpy():
    a = NdArray((2, 3))
    a.data = np.arange(3)
    assert np.array_equal(a.data, np.broadcast_to(np.arange(3), (2, 3)))
    with pytest.raises(ValueError):
        a.data = np.ones(4)
    assert np.array_equal(a.data, np.broadcast_to(np.arange(3), (2, 3))), "nothing changed"


# Lazy content


def test_zero_and_fill_are_lazy_and_keep_the_type():
    before = nn.memory.stats().live
    a = NdArray((1000, 1000))
    a.zero()
    assert a.zeroing
    assert nn.memory.stats().live == before, "no memory yet"
    a.fill(3)
    assert not a.zeroing and nn.memory.stats().live == before
    assert np.all(a.data == 3) and nn.memory.stats().live >= before + 4_000_000
    b = array([1, 2, 3], "int32")
    b.zero()
    assert b.dtype == np.int32 and np.array_equal(b.data, [0, 0, 0])
    b.fill(1.5)
    assert b.dtype == np.int32 and np.array_equal(b.data, [1, 1, 1])


def test_fill_read_in_another_type():
    a = NdArray((3,))
    a.fill(2)
    assert np.array_equal(a.cast("int32"), [2, 2, 2])
    b = NdArray((3,))
    b.fill(np.nan)
    assert np.all(np.isnan(b.get_data("r", "float64")))


def test_zeroing_ends_when_the_array_is_taken_for_writing():
    a = array([1.0, 2.0])
    a.zero()
    assert a.zeroing
    a.data  # noqa: B018
    assert not a.zeroing


def test_clear_gives_memory_back_and_says_so():
    before = nn.memory.stats().live
    a = NdArray((1000,))
    a.data = 1
    assert not a.clear_called
    a.clear()
    assert a.clear_called and nn.memory.stats().live == before
    a.data  # noqa: B018
    assert not a.clear_called


def test_modification_count_rises_with_every_write_and_not_with_reads():
    a = array([1, 2, 3])

    def rises(action):
        old = a.modification_count
        action()
        return a.modification_count > old

    b = array([4, 5, 6])
    writes = {
        "zero": a.zero,
        "fill": lambda: a.fill(2),
        "data": lambda: setattr(a, "data", 5),
        "item": lambda: a.__setitem__(0, 1),
        "get_data rw": lambda: a.get_data("rw"),
        "get_data w": lambda: a.get_data("w"),
        "copy_from": lambda: a.copy_from(b),
        "iadd": lambda: a.__iadd__(1),
        "clear": a.clear,
        "data again": lambda: a.data,
    }
    assert {k: rises(w) for k, w in writes.items()} == dict.fromkeys(writes, True)
    reads = [
        lambda: a.get_data("r"),
        lambda: a.shape,
        lambda: a.dtype,
        lambda: a.zeroing,
        lambda: a + 1,
        lambda: repr(a),
    ]
    assert not any(rises(r) for r in reads)


def test_views_share_the_modification_count():
    a = array(np.arange(6))
    v = a.view((2, 3))
    old = a.modification_count
    v.fill(1)
    assert a.modification_count > old


# Shapes


def test_shape_attributes():
    a = NdArray((2, 3, 4))
    assert (a.shape, a.ndim, a.size, tuple(a.strides)) == ((2, 3, 4), 3, 24, (12, 4, 1))
    assert [a.size_from_axis(k) for k in (-1, 0, 1, 2, 3)] == [24, 24, 12, 4, 1]
    assert repr(a).startswith("<NdArray((2, 3, 4)) at 0x")
    with pytest.raises(ValueError, match="axis"):
        a.size_from_axis(4)


def test_zero_dimensions():
    for a in (NdArray(), NdArray(())):
        assert a.shape == () and a.size == 1 and a.ndim == 0
        a.data = 2.5
        assert a.data.shape == () and float(a) == 2.5 and int(a) == 2
        assert bool(a) and bool(NdArray((0,)))
        assert (a * 2).data == 5 and (a + a).shape == ()
    with pytest.raises(TypeError):
        len(NdArray())


def test_one_element_is_a_number_and_more_are_not():
    assert float(array([[3.5]])) == 3.5
    with pytest.raises((ValueError, TypeError), match="one element"):
        float(array([1, 2]))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 5)])
def test_empty(shape):
    a = NdArray(shape)
    assert a.size == 0 and a.data.shape == shape
    a.zero(), a.fill(1), a.cast("int32")
    assert (a + 1).shape == shape and (a * a).data.shape == shape
    assert NdArray.from_numpy_array(np.empty(shape)).data.shape == shape
    assert pickle.loads(pickle.dumps(a)).shape == shape
    assert a.view((0,)).shape == (0,)


def test_shape_may_be_any_sequence_of_whole_numbers():
    for shape in ([2, 3], (np.int64(2), 3), (2.0, 3), np.array([2, 3]), iter([2, 3])):
        assert NdArray(shape).shape == (2, 3)


@pytest.mark.parametrize("shape", [(-1,), (2, -3), (2**63,), (2.5,), "ab", object(), (None,), (2**31, 2**31, 2**31)])
def test_bad_shapes(shape):
    with pytest.raises((ValueError, TypeError)) as e:
        NdArray(shape)
    assert isinstance(e.value, nn.Error)


def test_a_huge_array_costs_nothing_until_it_is_used():
    before = nn.memory.stats().live
    a = NdArray((2**20, 2**20))
    assert a.size == 2**40 and a.shape == (2**20, 2**20)
    a.zero()
    assert a.zeroing and nn.memory.stats().live == before
    assert a.view((2**40,)).shape == (2**40,)
    with pytest.raises(MemoryError):
        NdArray((2**28, 2**26)).data  # noqa: B018
    assert nn.memory.stats().live == before


def test_a_constant_has_no_type_until_it_is_asked_for():
    a = nn.NdArray((2,))
    a.cast(np.int32)
    a.fill(0.3)
    np.testing.assert_array_equal(a.get_data("r", dtype=np.float32), np.float32([0.3, 0.3]))
    for dtype in (np.int32, np.float16):
        x = nn.Variable((2,))
        x.data.cast(dtype)
        for function in (F.identity, F.sin, lambda v: F.softmax(v, axis=0)):
            x.data.fill(0.3)
            y = function(x)
            y.forward()
            with nn.auto_forward():
                now = function(x)
            expected = {F.identity: 0.3, F.sin: np.sin(0.3)}.get(function, 0.5)
            np.testing.assert_allclose(y.d, [expected] * 2, rtol=1e-6)
            np.testing.assert_allclose(now.d, [expected] * 2, rtol=1e-6)
        a.cast(dtype)
        a.fill(0.3)
        a *= 2
        np.testing.assert_allclose(a.data, [0.6, 0.6], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.float32])
def test_in_place_operators_give_the_contexts_type(dtype):
    a = nn.NdArray.from_numpy_array(np.array([1, 2], dtype))
    a += 1
    assert a.dtype == np.float32
    a *= nn.NdArray.from_numpy_array(np.array([3, 4], dtype))
    assert a.dtype == np.float32
    np.testing.assert_array_equal(a.data, [6, 12])


def test_booleans_from_outside_are_0_or_1():
    odd = np.array([0, 255, 2, 1], "u1").view(bool)
    leaf = nn.Variable.from_numpy_array(odd)
    assigned = nn.Variable((4,))
    assigned.d = odd
    viewed = nn.Variable.from_numpy_array(np.zeros(4, bool))
    viewed.d[...] = odd
    for v in (leaf, assigned, viewed):
        y = F.sum(v)
        y.forward()
        assert y.d == 3
    for v in (leaf, assigned):
        assert v.d.view("u1").tolist() == [0, 1, 1, 1]
    array = nn.NdArray.from_numpy_array(np.zeros(4, bool))
    array.data[...] = odd
    assert F.add_scalar(array, 0.0).data.tolist() == [0, 1, 1, 1]
    array.cast(np.int32)
    assert array.data.tolist() == [0, 1, 1, 1]
