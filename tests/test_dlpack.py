"""DLPack: other libraries share the memory of an NdArray or Variable, and the other way round."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs.utils.dlpack import from_dlpack, to_dlpack

pytestmark = pytest.mark.host
TYPES = [np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.bool_]


class Weak(np.ndarray):
    """An array of which it can be told whether it lives."""


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


def test_what_is_taken_is_the_same_memory():
    s = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = from_dlpack(s.__dlpack__())
    s[0, 0] = 50
    assert a.data[0, 0] == 50 and np.shares_memory(a.data, s)
    a.data = np.full((3, 4), 7, np.float32)
    assert (s == 7).all()
    a.fill(3)  # from here on it has memory of its own, as always
    assert a.data[0, 0] == 3 and s[0, 0] == 7
    assert from_dlpack(np.zeros(()).__dlpack__()).shape == ()
    assert from_dlpack(np.zeros((0, 2)).__dlpack__()).shape == (0, 2)


def test_the_memory_taken_lives_as_long_as_the_array():
    s = np.arange(4.0)
    holder = s.view(Weak)
    lives = weakref.ref(holder)
    a = from_dlpack(holder.__dlpack__())
    del s, holder
    gc.collect()
    assert lives() is not None and a.data.tolist() == [0, 1, 2, 3]
    a.cast(np.float32)  # memory of its own from here on
    gc.collect()
    assert lives() is None and a.data.tolist() == [0, 1, 2, 3]


def test_a_graph_computes_with_memory_of_others():
    """As leaf, as output, as gradient; what the other side writes between runs counts."""
    s, g = np.float32([1, 2]), np.zeros(2, np.float32)
    x = nn.Variable((2,), need_grad=True)
    x.data, x.grad = from_dlpack(s.__dlpack__()), from_dlpack(g.__dlpack__())
    h = F.exp(x)
    y = F.sum(h * h)
    for scale in 1, 2:
        s[:] = [0.5 * scale, 1]
        g[:] = 0
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)
        assert np.allclose(g, 2 * np.exp(2 * s), rtol=1e-5)
    into = np.zeros(2, np.float32)
    h.data = from_dlpack(into.__dlpack__())
    y.forward()
    assert np.allclose(into, np.exp(s), rtol=1e-6)
    s[:] = 0
    y.forward()
    assert np.allclose(into, 1)


def test_what_cannot_be_shared_is_copied():
    s = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(from_dlpack(s.T.__dlpack__()).data, s.T)
    assert np.array_equal(from_dlpack(s[::2]).data, s[::2])
    flags = np.array([True, False])
    a = from_dlpack(flags.__dlpack__())
    flags[1] = True
    assert a.data.tolist() == [True, False]
    b = array()
    view = b.data
    from_dlpack(s[:2, :3].copy().__dlpack__(), arr=b)
    assert np.array_equal(view, s[:2, :3]) and np.shares_memory(view, b.data)
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        s.flags.writeable = False
        a = from_dlpack(s)
        a.data = 1
        assert s[0, 1] == 1 and s[2, 3] == 11


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
    ours = from_dlpack(torch.utils.dlpack.to_dlpack(t))
    ours.data = np.full((2, 3), 8, np.float32)
    assert t[0, 0] == 8
    with pytest.raises((ValueError, TypeError), match="from_dlpack: argument 'dlp'"):
        from_dlpack(torch.ones(3, dtype=torch.bfloat16))
