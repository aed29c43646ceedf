"""Members of Variable, NdArray and Context beyond arithmetic: surgery, notes, copies, sink, hooks."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def leaf(values, need_grad=True):
    v = nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=need_grad)
    v.g = 0
    return v


def run(y):
    y.forward()
    y.backward()


# Surgery


def test_rewire_on_is_the_example_of_the_manual():
    xa, xb = leaf(np.ones((2, 3))), leaf(np.full((2, 4), 0.5))
    ya = F.tanh(xa * 2)
    yb = F.sum(F.reshape(F.sin(xb), (2, 4, 1)) * nn.Variable.from_numpy_array(np.ones((2, 4, 3), np.float32)), axis=1)
    made = yb.parent
    xa.rewire_on(yb)
    assert xa.parent == made and yb.parent is None and xa in xa.parent.outputs
    assert np.shares_memory(xa.d, yb.d)
    run(ya)
    inner = 4 * np.sin(0.5)
    np.testing.assert_allclose(ya.d, np.full((2, 3), np.tanh(2 * inner)), rtol=1e-5)
    expected = 3 * 2 * (1 - np.tanh(2 * inner) ** 2) * np.cos(0.5)
    np.testing.assert_allclose(xb.g, np.full((2, 4), expected), rtol=1e-4)


def test_a_parent_can_be_set():
    x = leaf([1, 2])
    y = x * 2
    f = y.parent
    z = leaf([0, 0], need_grad=None)
    w = z + 1
    z.parent = f
    assert z.parent == y.parent == f and f.outputs == [y]
    run(w)
    assert w.d.tolist() == [3, 5] and x.g.tolist() == [2, 2]
    z.parent = None
    assert z.parent is None
    with pytest.raises(ValueError, match=r"parent.*\(3,\)"):
        nn.Variable((3,)).parent = f
    with pytest.raises(TypeError, match="Function"):
        z.parent = 3


def test_no_grad_of_a_network_leaves_the_network_alone():
    nn.clear_parameters()
    x = nn.Variable.from_numpy_array(np.ones((1, 3), np.float32))
    y = F.relu(PF.affine(x, 2))
    free = y.no_grad()
    assert y.need_grad and not free.need_grad and free != y
    w = nn.get_parameters()["affine/W"]
    assert free.parent.inputs[0].parent.inputs[1] == w and w.need_grad
    nn.forward_all([y, free])
    assert np.array_equal(y.d, free.d)
    nn.clear_parameters()


def test_no_grad_of_a_static_graph_keeps_flags_but_for_parameters():
    nn.clear_parameters()
    x = leaf(np.ones((1, 3)))
    with nn.no_grad():
        y = F.exp(x * 2)
        h = PF.affine(nn.Variable((1, 3)), 2)
    assert y.need_grad and not h.need_grad
    run(y)
    np.testing.assert_allclose(x.g, 2 * np.exp(2 * np.ones((1, 3))), rtol=1e-6)
    nn.clear_parameters()


# Notes


def test_info_stays_with_the_variable():
    x = leaf([1])
    y = x * 2
    assert y.info is None
    y.info = {"a": 1}
    z = y + 1
    del y
    assert z.parent.inputs[0].info == {"a": 1}
    x.apply(info="note", name="n", persistent=1)
    assert (x.info, x.name, x.persistent) == ("note", "n", True)


def test_references_are_the_variable_and_its_unlinked_copies():
    x = leaf([1])
    assert x.get_number_of_references == 1
    u = x.get_unlinked_variable()
    assert x.get_number_of_references == u.get_number_of_references == 2
    assert nn.Variable.EXCEPTIONS_AT_DEALLOC == []


def test_classes_can_be_derived_from():
    class Mine(nn.Variable):
        def twice(self):
            return self * 2

    assert Mine((2,)).twice().shape == (2,)
    assert type("A", (nn.NdArray,), {})((3,)).shape == (3,)
    assert type("C", (nn.Context,), {})().backend == ["cpu:float"]


@pytest.mark.parametrize("value", [1, np.bool_(True), np.int64(3), True])
def test_flags_take_what_python_takes_for_true(value):
    x = nn.Variable((2,))
    x.need_grad = x.persistent = x.recompute = value
    assert (x.need_grad, x.persistent, x.recompute) == (True, True, True)
    y = x * 2
    y.forward(value, value)
    with pytest.raises(TypeError):
        x.need_grad = np.ones(2)


# Copies have values, not history


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_copies(make):
    x = leaf([1, 2])
    y = x * 2
    run(y)
    c = make(y)
    assert c.parent is None and c != y and c.d.tolist() == [2, 4]
    c.d[0] = 9
    assert y.d.tolist() == [2, 4]
    assert (c.name, c.persistent, c.need_grad) == ("", False, False)  # that of y comes from x
    y.name, y.persistent, y.need_grad = "y", True, False
    c = make(y)
    assert (c.name, c.persistent, c.need_grad) == ("y", True, False)
    a = make(x.data)
    assert a != x.data and a.data.tolist() == [1, 2]


# Equality and NumPy


def test_arrays_are_equal_by_identity():
    v = leaf([1, 2])
    a, b = v.data, nn.NdArray.from_numpy_array(np.array([1, 2], np.float32))
    assert (a == v.data) is True and (a == b) is False and (a != b) is True
    assert a in [b, v.data] and a not in [b]
    assert (a == 1).data.tolist() == [1, 0] and (a < b).data.tolist() == [0, 0]


@pytest.mark.parametrize("number", [np.float32(2), np.float64(2), np.int64(2), np.array(2.0)])
def test_numbers_of_numpy_on_the_left(number):
    v = leaf([1, 2])
    y = number * v
    assert isinstance(y, nn.Variable) and isinstance(number - v.data, nn.NdArray)
    y.forward()
    assert y.d.tolist() == [2, 4]
    assert (number - v.data).data.tolist() == [1, 0]


def test_numpy_arrays_are_no_operands():
    for x in (leaf([1, 2]), leaf([1, 2]).data):
        for wrong in (lambda x=x: x + np.ones(2), lambda x=x: np.ones(2) + x):
            with pytest.raises(TypeError):
                wrong()


# sink, split


def test_sink_starts_one_backward_from_several_variables():
    x, w = leaf([1, 2]), leaf([3])
    a, b = x * 2, w * 3
    y = F.sink(a, b)
    y.forward()
    assert y.shape == () and float(y.d) == 0 and a.d.tolist() == [2, 4]
    y.backward(7)
    assert x.g.tolist() == [2, 2] and w.g.tolist() == [3], "whatever backward starts with"
    y = F.sink(a, b, one_input_grad=False)
    y.forward()
    a.g, b.g, x.g, w.g = [5, 7], 1, 0, 0
    y.backward()
    assert x.g.tolist() == [10, 14] and w.g.tolist() == [3]
    with pytest.raises(ValueError, match="sink"):
        F.sink()


def test_split_gives_a_tuple_also_of_one():
    (y,) = F.split(leaf([[1, 2]]), axis=0)
    y.forward()
    assert y.d.tolist() == [1, 2]
    assert [p.shape for p in F.split(leaf(X), axis=1)] == [(2, 4)] * 3


# Hooks


def test_hooks_see_the_gradient_that_backward_starts_with():
    x = leaf([1, 2])
    y = F.exp(x * 2)
    y.g = 5
    for clear in (False, True):
        seen = []
        y.forward()
        y.backward([1, 3] and np.array([1, 3]), clear, None, lambda f, seen=seen: seen.append(f.outputs[0].g.tolist()))
        assert seen[0] == [1, 3] and y.g.tolist() == [5, 5]


# Made with a note, and with arrays of its own shape alone


def test_a_note_as_third_argument():
    note = object()
    x = nn.Variable((2, 3), True, note)
    assert x.info is note and x.need_grad and x.shape == (2, 3)
    assert nn.Variable((2,), info="a").info == "a" and nn.Variable((2,), None, None).info is None


@pytest.mark.parametrize("member", ["data", "grad"])
@pytest.mark.parametrize("shape", [(3, 2), (6,), (1, 2, 3), (3, 3)], ids=str)
def test_arrays_of_another_shape_are_refused(member, shape):
    """As in NNabla ("Shape must match"), also where the size is the same."""
    x = nn.Variable((2, 3))
    before = getattr(x, member)
    with pytest.raises(ValueError, match=f"^Variable.{member}: argument '{member}': expected shape"):
        setattr(x, member, nn.NdArray(shape))
    assert getattr(x, member) == before
    setattr(x, member, nn.NdArray(shape).view((2, 3)) if shape != (3, 3) else nn.NdArray((2, 3)))


# Context


@pytest.mark.host
def test_contexts_as_text():
    """NNabla's: the context that was not chosen has no kind of arrays."""
    assert str(nn.get_current_context()) == "Context(backend=['cpu:float'], array_class='', device_id='0')"
    assert str(nn.get_current_context()) == str(nn.Context())
    cpu = nn.ext_utils.get_extension_context("cpu")
    assert str(cpu) == "Context(backend=['cpu:float'], array_class='CpuCachedArray', device_id='')"


def test_fields_of_a_context_can_be_set():
    c = nn.Context()
    assert (c.backend, c.array_class, c.device_id) == (["cpu:float"], "", "0")
    before = hash(c)
    c.backend, c.device_id, c.array_class = ["cpu:double"], "1", "CpuCachedArray"
    assert c == nn.Context(["cpu:double"], "CpuCachedArray", "1") and hash(c) != before
    assert c["backend"] == ["cpu:double"] and pickle.loads(pickle.dumps(c)) == c
    assert repr(c) == "Context(backend=['cpu:double'], array_class='CpuCachedArray', device_id='1')"
    with nn.context_scope(c):
        c.backend = ["cpu:float"]
        assert nn.get_current_context().backend == ["cpu:double"], "the scope has the context as it was"
    with pytest.raises(RuntimeError, match="no backend"):
        c.backend = ["tpu:float"]
    assert c.backend == ["cpu:float"]


def test_top_level_switches():
    assert "CpuCachedArray" in nn.array_classes() and "cpu" in nn.available_contexts
    nn.prefer_cached_array(True)
    nn.reset_array_preference()
    a = nn.NdArray((2,))
    assert a.copy_from(nn.NdArray.from_numpy_array(np.ones(2))) is a and a.strides == [1]


def test_apply_with_an_unknown_name_sets_nothing():
    x = leaf(X)
    with pytest.raises(TypeError, match=r"^Variable\.apply: got an unexpected keyword argument 'zzz'") as e:
        x.apply(persistent=True, zzz=3)
    assert isinstance(e.value, nn.Error) and not x.persistent
