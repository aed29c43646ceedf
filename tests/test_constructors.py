"""Constructors of Context, Variable and NdArray: wrong calls are errors of nnrs that say what was expected; right ones,
subclasses and pickles work."""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import nnrs as nn

CALLS = {
    "Context": "Context(backend=['cpu:float'], array_class='', device_id='0')",
    "Variable": "Variable(shape=None, need_grad=None, info=None)",
    "NdArray": "NdArray(shape=None)",
}


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: nn.Context(zzz=1), "Context: got an unexpected keyword argument 'zzz'"),
        (lambda: nn.Variable((2,), zzz=1), "Variable: got an unexpected keyword argument 'zzz'"),
        (lambda: nn.NdArray(zzz=1), "NdArray: got an unexpected keyword argument 'zzz'"),
        (lambda: nn.Context(["cpu:float"], "", "0", 1), "Context: expected at most 3 arguments, got 4"),
        (lambda: nn.Variable(2, 3, 4, 5), "Variable: expected at most 3 arguments, got 4"),
        (
            lambda: nn.Variable((2,), shape=(3,)),
            "Variable: argument 'shape': expected one value, got one by position and one by keyword",
        ),
        (
            lambda: nn.Context(["cpu:float"], backend=[]),
            "Context: argument 'backend': expected one value, got one by position and one by keyword",
        ),
        (
            lambda: nn.NdArray((2,), shape=None),
            "NdArray: argument 'shape': expected one value, got one by position and one by keyword",
        ),
    ],
)
def test_calls_that_do_not_fit(make, message):
    with pytest.raises(nn.Error) as e:
        make()
    assert isinstance(e.value, TypeError)
    assert str(e.value) == f"{message}\n  hint: {CALLS[message.split(':')[0]]}"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: nn.Context(5), "Context: argument 'backend': expected a list of str, got int 5"),
        (lambda: nn.Context(None), "Context: argument 'backend': expected a list of str, got NoneType None"),
        (lambda: nn.Context(array_class=5), "Context: argument 'array_class': expected str, got int 5"),
        (lambda: nn.Context(device_id=0), "Context: argument 'device_id': expected str, got int 0"),
        (lambda: nn.Variable("x"), "Variable: argument 'shape': expected a sequence of int, got str 'x'"),
        (
            lambda: nn.Variable((2,), np.ones(2)),
            "Variable: argument 'need_grad': expected bool, got ndarray array([1., 1.])",
        ),
        (lambda: nn.NdArray(2, "a"), "NdArray: argument 'shape': expected a sequence of int, got tuple (2, 'a')"),
        (lambda: nn.NdArray("x"), "NdArray: argument 'shape': expected a sequence of int, got str 'x'"),
    ],
)
def test_values_of_a_wrong_type(make, message):
    with pytest.raises(nn.Error) as e:
        make()
    assert isinstance(e.value, TypeError) and str(e.value) == message


@pytest.mark.parametrize("field, value", [("backend", 5), ("array_class", 5), ("device_id", 0)])
def test_fields_of_a_context_of_a_wrong_type(field, value):
    context = nn.Context()
    with pytest.raises(nn.Error, match=f"^Context: argument '{field}': expected .*str, got int {value}$"):
        setattr(context, field, value)
    assert (context.backend, context.array_class, context.device_id) == (["cpu:float"], "", "0")


def test_right_calls():
    assert nn.Variable().shape == nn.NdArray().shape == ()
    assert nn.Variable(None).shape == nn.NdArray(None).shape == ()
    assert nn.Variable((2, 3)).shape == nn.Variable(shape=[2, 3]).shape == nn.NdArray(shape=(2, 3)).shape == (2, 3)
    assert nn.NdArray(2, 3).shape == (2, 3)
    assert nn.Variable((2,), True).need_grad and nn.Variable(need_grad=True).need_grad
    assert not nn.Variable((2,), None, None).need_grad and nn.Variable(info="i").info == "i"
    context = nn.Context(["cpu:half"], device_id="1", array_class="CpuArray")
    assert (context.backend, context.array_class, context.device_id) == (["cpu:half"], "CpuArray", "1")
    assert nn.Context(("cpu:float",), "", "0") == nn.Context()


def test_signatures_are_shown():
    for name, call in CALLS.items():
        shown = call.replace(")", ", *sizes)") if name == "NdArray" else call
        assert name + str(inspect.signature(getattr(nn, name))) == shown


class Tagged(nn.Variable):
    def __new__(cls, *args, tag=None, **kw):
        return super().__new__(cls, *args, **kw)

    def __init__(self, *args, tag=None, **kw):
        self.tag = tag


class Plain(nn.NdArray):
    pass


class Place(nn.Context):
    pass


def test_subclasses():
    v = Tagged((2, 3), need_grad=True, tag="t")
    assert isinstance(v, nn.Variable) and v.shape == (2, 3) and v.need_grad and v.tag == "t"
    assert Plain((4,)).size == 4 and Place(device_id="2").device_id == "2"
    with pytest.raises(nn.Error, match="^Variable: got an unexpected keyword argument 'zzz'"):
        Tagged(zzz=1)
    assert Plain(1, 2).shape == (1, 2)


def test_pickles_and_copies():
    v = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    a = nn.NdArray.from_numpy_array(np.float64([3, 4]))
    context = nn.Context(["cpu:half"], "CpuArray", "1")
    for again in (lambda o: pickle.loads(pickle.dumps(o)), copy.deepcopy):
        w = again(v)
        assert w.need_grad and w.d.tolist() == [1, 2] and again(a).data.tolist() == [3, 4]
        assert again(context) == context
