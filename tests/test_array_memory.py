"""NdArray: memory shared with NumPy and among views.

Expected values are NumPy's, or were asked of NNabla 1.39 where a comment says so.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
from nnrs import NdArray

DTYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()


def array(values, dtype="float32") -> NdArray:
    return NdArray.from_numpy_array(np.array(values, dtype=dtype))


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


# Memory shared with NumPy


@pytest.mark.parametrize("dtype", DTYPES)
def test_data_is_the_arrays_own_memory(dtype):
    a = NdArray.from_numpy_array(np.zeros((3, 4), dtype))
    d = a.data
    d[1, 2] = 1
    assert a.data[1, 2] == 1 and np.shares_memory(d, a.data)
    assert d.flags.c_contiguous and d.flags.writeable and address(d) == a.data_ptr(dtype)


def test_read_only_access_cannot_write():
    d = array([1.0]).get_data("r")
    with pytest.raises(ValueError):
        d[0] = 2


def test_get_data_refuses_other_modes():
    with pytest.raises(ValueError, match="mode"):
        array([1.0]).get_data("x")


@pytest.mark.parametrize("source", ["a.data[::-1]", "a.data", "a.data[:]", "np.roll(a.data, 1)", "a.data[:1]"])
def test_assigning_parts_of_the_own_memory(source):
    a = array([1, 2, 3])
    expected = eval(source).tolist()
    a.data = eval(source)
    assert a.data.tolist() == np.broadcast_to(expected, 3).tolist()


def test_assigning_memory_that_overlaps():
    a = array([1, 2, 3, 4])
    a.narrow(0, 1, 3).data = a.data[:3]
    assert a.data.tolist() == [1, 1, 2, 3]
    a.narrow(0, 0, 3).data = a.data[1:]
    assert a.data.tolist() == [1, 2, 3, 3]


def test_data_keeps_the_memory_alive():
    d = NdArray.from_numpy_array(np.arange(1000.0)).data
    gc.collect()
    churn = [NdArray((1000,)) for _ in range(50)]
    for c in churn:
        c.cast("float64")[:] = -1
    assert np.array_equal(d, np.arange(1000.0))


def test_data_is_pinned_memory_that_no_other_array_gets():
    a = NdArray((4096,))
    d = a.data
    place = address(d)
    d[:] = 5
    del a
    others = [NdArray((4096,)) for _ in range(64)]
    assert all(address(o.data) != place for o in others)
    for o in others:
        o.data = -1
    assert np.all(d == 5)


@pytest.mark.parametrize("drop", ["clear", "zero", "fill", "cast", "reassign"])
def test_a_numpy_array_survives_what_the_array_goes_through(drop):
    a = array(np.arange(1000))
    d = a.data
    if drop == "cast":
        a.cast("float64")
    elif drop == "reassign":
        a.data = np.arange(1000)
    else:
        getattr(a, drop)(*([3] if drop == "fill" else []))
    NdArray((1000,)).data = -7
    assert d.shape == (1000,) and (np.array_equal(d, np.arange(1000)) or drop in ("zero", "fill"))
    d[:] = 4


def test_memory_comes_back_with_the_last_numpy_array():
    before = nn.memory.stats().live
    d = NdArray((1000, 100)).data
    part = d[10:20, ::7].T
    del d
    gc.collect()
    assert nn.memory.stats().live >= before + 400_000
    part[:] = 3
    del part
    gc.collect()
    assert nn.memory.stats().live == before


def test_memory_is_aligned_for_vectors():
    for n in (1, 3, 17, 1000, 100_000):
        assert address(NdArray((n,)).data) % 64 == 0


def test_not_contiguous_numpy_arrays_are_taken_by_their_values():
    values = np.arange(24.0).reshape(2, 3, 4)
    for v in (values.T, values[:, ::-1], values[::2, 1:], values[..., ::3], np.asfortranarray(values)):
        assert np.array_equal(NdArray.from_numpy_array(v).data, v)
    assert np.array_equal(NdArray.from_numpy_array(values.astype(">f8")).data, values)
    read_only = np.arange(3.0)
    read_only.setflags(write=False)
    assert np.array_equal(NdArray.from_numpy_array(read_only).data, read_only)


def test_array_protocol():
    a = array([[1, 2], [3, 4]])
    assert np.shares_memory(np.asarray(a), a.data)
    assert not np.shares_memory(np.array(a, copy=True), a.data)
    assert np.asarray(a, dtype="float64").dtype == np.float64
    assert np.sum(a) == 10 and np.array_equal(np.stack([a, a]), np.stack([a.data, a.data]))
    assert np.shares_memory(a.__array__(copy=False), a.data)
    with pytest.raises(ValueError):
        a.__array__("float64", copy=False)  # NumPy 2: never a copy, or an error


# Views and parts


def test_view_shares_memory_both_ways():
    a = array(np.arange(12))
    v = a.view((3, 4))
    v.data[1, 1] = 99
    assert a.data[5] == 99
    a.data[0] = -1
    assert v.data[0, 0] == -1
    a.fill(3)
    assert np.all(v.data == 3)
    a.cast("int32")
    assert v.dtype == np.int32
    with pytest.raises(ValueError, match="12"):
        a.view((5,))


def test_narrow_shares_memory():
    a = array(np.arange(12).reshape(3, 4))
    part = a.narrow(0, 1, 2)
    assert part.shape == (2, 4) and np.array_equal(part.data, np.arange(4, 12).reshape(2, 4))
    part.data[0, 0] = 99
    assert a.data[1, 0] == 99
    part.fill(7)
    assert np.array_equal(a.data[0], np.arange(4)) and np.all(a.data[1:] == 7)
    a.zero()
    assert np.all(part.data == 0)
    assert np.array_equal(part.narrow(0, 1, 1).data, np.zeros((1, 4)))
    b = array(np.arange(6).reshape(1, 6)).narrow(1, 2, 3)
    assert np.array_equal(b.data, [[2, 3, 4]])


def test_fill_of_a_part_leaves_the_rest_of_a_lazy_array():
    a = array([5, 5, 5], "int32")
    a.zero()
    a.narrow(0, 1, 2).fill(4)
    assert np.array_equal(a.data, [0, 4, 4]) and a.dtype == np.int32


def test_narrow_outlives_its_origin():
    a = array(np.arange(1000))
    part = a.narrow(0, 500, 3)
    del a
    NdArray((1000,)).data = -1
    assert np.array_equal(part.data, [500, 501, 502])


@pytest.mark.parametrize(
    "where", [(0, 2, 2), (0, 4, 1), (0, 0, 4), (2, 0, 1), (-3, 0, 1), (1, 0, 2), (0, 0, -1), (0, -5, 1)]
)
def test_narrow_beyond_the_array_or_not_contiguous(where):
    with pytest.raises(ValueError):
        array(np.arange(12).reshape(3, 4)).narrow(*where)


def test_narrow_to_nothing():
    assert array(np.arange(12).reshape(3, 4)).narrow(0, 0, 0).shape == (0, 4)  # as NNabla


def test_copy_from_takes_values_and_type():
    a, b = array([0.5, 1.5, 2.5]), array([1, 2, 3], "int64")
    a.copy_from(b)
    assert a.dtype == np.int64 and np.array_equal(a.data, [1, 2, 3])  # as NNabla
    b.data[0] = 9
    assert a.data[0] == 1, "a copy"
    with pytest.raises(ValueError, match=r"\(2,\)"):
        NdArray((2,)).copy_from(b)


def test_copy_from_itself_and_from_a_view():
    a = array([1, 2, 3])
    a.copy_from(a)
    assert np.array_equal(a.data, [1, 2, 3])
    a.copy_from(a.view((3,)))
    assert np.array_equal(a.data, [1, 2, 3])
