"""DLPack: other libraries share the memory of an NdArray or Variable; what comes from them is copied."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs.utils.dlpack import from_dlpack, to_dlpack

pytestmark = pytest.mark.host
TYPES = [np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.bool_]


class Holder:
    """A capsule as consumers want it."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **kwargs):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


def array(dtype=np.float32):
    return nn.NdArray.from_numpy_array(np.arange(6).reshape(2, 3).astype(dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_there_and_back(dtype):
    a = array(dtype)
    b = from_dlpack(to_dlpack(a))
    assert b.dtype == dtype and b.shape == (2, 3)
    assert np.array_equal(a.data, b.data)
    assert np.array_equal(np.from_dlpack(a), a.data)


def test_the_memory_is_shared():
    a = array()
    view = np.from_dlpack(a)
    view[0, 0] = 9
    assert a.data[0, 0] == 9
    a.data[1, 2] = 7
    assert view[1, 2] == 7
    assert np.shares_memory(view, a.data)
    assert np.shares_memory(np.from_dlpack(Holder(to_dlpack(a))), a.data)
    x = nn.Variable.from_numpy_array(np.float32([1, 2]))
    view = np.from_dlpack(x)
    assert view.__array_interface__["data"] == x.d.__array_interface__["data"]
    assert x.__dlpack_device__() == x.data.__dlpack_device__() == (1, 0)


def test_what_the_graph_computed_may_be_shared():
    x = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    y = F.exp(x)
    y.forward()
    view = np.from_dlpack(y)
    assert np.shares_memory(view, y.d)
    assert np.allclose(view, np.exp([1, 2]))


def test_the_memory_outlives_its_array():
    a = array()
    capsule = to_dlpack(a)
    view = np.from_dlpack(Holder(capsule))
    del a, capsule
    gc.collect()
    others = [nn.NdArray.from_numpy_array(np.full((2, 3), i, np.float32)) for i in range(50)]
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]] and len(others) == 50
    to_dlpack(array())  # nobody takes it


def test_types_are_changed_in_place():
    a = array()
    capsule = to_dlpack(a, dtype=np.int32, ctx=nn.Context(["cpu:float"], "CpuCachedArray", "0"))
    assert a.dtype == np.int32
    assert np.from_dlpack(Holder(capsule)).dtype == np.int32


def test_what_is_taken_is_a_copy_in_any_order():
    s = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = from_dlpack(s.__dlpack__())
    s[0, 0] = 50
    assert a.data[0, 0] == 0
    assert np.array_equal(from_dlpack(s.T.__dlpack__()).data, s.T)
    assert np.array_equal(from_dlpack(s[::2]).data, s[::2])
    assert from_dlpack(np.zeros(()).__dlpack__()).shape == ()
    assert from_dlpack(np.zeros((0, 2)).__dlpack__()).shape == (0, 2)


def test_an_array_that_is_given_takes_shape_and_type():
    e = nn.NdArray((3,))
    assert from_dlpack(to_dlpack(array(np.int32)), arr=e) is e
    assert e.shape == (2, 3) and e.dtype == np.int32 and e.data[1, 2] == 5
    assert from_dlpack(to_dlpack(array()), arr=nn.NdArray()).shape == (2, 3)


def test_wrong_arguments():
    used = to_dlpack(array())
    from_dlpack(used)
    for call, kind in (
        (lambda: from_dlpack(used), ValueError),
        (lambda: from_dlpack([1.0]), TypeError),
        (lambda: from_dlpack(to_dlpack(array()), arr=np.zeros(3)), TypeError),
        (lambda: to_dlpack(np.zeros(3)), TypeError),
        (lambda: to_dlpack(array(), ctx="cpu"), TypeError),
    ):
        with pytest.raises(kind, match="_dlpack: argument") as caught:
            call()
        assert isinstance(caught.value, nn.Error)
    with pytest.raises(TypeError, match="give v.data"):
        to_dlpack(nn.Variable((2,)))


def test_torch():
    torch = pytest.importorskip("torch")
    a = array()
    t = torch.from_dlpack(a)
    t.add_(1)
    assert a.data[0, 0] == 1
    t = torch.utils.dlpack.from_dlpack(to_dlpack(a))
    t.mul_(2)
    assert a.data[0, 0] == 2
    assert from_dlpack(torch.utils.dlpack.to_dlpack(t)).data.tolist() == a.data.tolist()
    assert from_dlpack(torch.arange(3)).data.tolist() == [0, 1, 2]
    with pytest.raises((ValueError, TypeError), match="from_dlpack: argument 'dlp'"):
        from_dlpack(torch.ones(3, dtype=torch.bfloat16))
