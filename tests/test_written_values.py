"""What the script writes over the data of an intermediate variable: between runs, in hooks, in PythonFunctions.

It stays until the function that makes the data runs again, whether or not a handle of the variable is alive, whatever
the clear flags say: no function could make it again. Backward reads it; what would have to be computed from it is an
error.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import close, leaf
from python_functions import OneToOne

X = np.float32([0.1, 0.2])
NEW = np.float32([5, 6])
FLAGS = [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}]


def exp_of(y):
    """The output of the exp behind y, of which the script may hold no handle."""
    while y.parent.name != "Exp":
        y = y.parent.inputs[0]
    return y


def by_d(v):
    v.d = NEW


def by_fill(v):
    v.data.fill(0)


def by_a_view(v):
    view = v.d
    view *= 0


def by_an_array(v):
    v.data = nn.NdArray.from_numpy_array(NEW)


def by_a_copy(v):
    v.data.copy_from(nn.NdArray.from_numpy_array(NEW))


WRITES = [by_d, by_fill, by_a_view, by_an_array, by_a_copy]
WRITTEN = {by_d: NEW, by_fill: 0 * NEW, by_a_view: 0 * NEW, by_an_array: NEW, by_a_copy: NEW}


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_between_the_runs(write, clear, held):
    x = leaf(X)
    y = F.sin(F.exp(x))
    h = exp_of(y) if held else None
    y.forward()
    write(exp_of(y))
    new = WRITTEN[write]
    for _ in range(2):
        x.g = 0
        y.backward(clear_buffer=clear)
        close(x.g, np.cos(new) * new)
        close(exp_of(y).d, new)
    y.forward()
    close(exp_of(y).d, np.exp(X))
    x.g = 0
    y.backward()
    close(x.g, np.cos(np.exp(X)) * np.exp(X))
    del h


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_what_was_made_of_it_cannot_be_made_again(write, held):
    x = leaf(X)
    y = F.sin(F.exp(x) * 2)
    h = exp_of(y) if held else None
    y.forward()
    write(exp_of(y))
    x.g = 0
    with pytest.raises(nn.Error, match="was not kept"):
        y.backward()
    assert not x.g.any()
    y.forward()
    y.backward()
    close(x.g, 2 * np.cos(2 * np.exp(X)) * np.exp(X))
    del h


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("need_grad", [True, False])
def test_in_a_hook(need_grad, flags, held, before):
    def after_exp(f):
        if f.name == "Exp":
            f.outputs[0].d = NEW

    def before_next(f):
        if f.name == "MulScalar":
            f.inputs[0].d = NEW

    x = leaf(X, need_grad=need_grad)
    y = F.sin(F.exp(x) * 2)
    h = exp_of(y) if held else None
    hooks = {"function_pre_hook": before_next} if before else {"function_post_hook": after_exp}
    for _ in range(2):
        y.forward(**flags, **hooks)
        close(y.d, np.sin(2 * NEW))
        close(exp_of(y).d, NEW)
        close(y.parent.inputs[0].d, 2 * NEW)
        if need_grad:
            x.g = 0
            y.backward(clear_buffer="clear_buffer" in flags)
            close(x.g, 2 * np.cos(2 * NEW) * NEW)
            close(exp_of(y).d, NEW)
    y.forward(**flags)
    close(y.d, np.sin(2 * np.exp(X)))
    close(exp_of(y).d, np.exp(X))
    del h


def test_in_a_hook_of_backward():
    x = leaf(X)
    y = F.sin(F.exp(F.tanh(x)))
    y.forward()

    def write(f):
        if f.name == "Sin":
            f.inputs[0].d = NEW

    y.backward(clear_buffer=True, function_post_hook=write)
    close(x.g, np.cos(np.exp(np.tanh(X))) * NEW * (1 - np.tanh(X) ** 2))
    close(y.parent.inputs[0].d, NEW)


@pytest.mark.parametrize("f, right", [(F.sigmoid, 0.09), (F.tanh, 0.19), (F.exp, 0.9)])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("when", ["function_pre_hook", "function_post_hook"])
def test_an_output_that_its_function_reads_in_backward(when, held, f, right):
    def write(g):
        if when == "function_pre_hook" and g.name != "MulScalar":
            g.outputs[0].data.fill(0.9)
        elif when == "function_post_hook" and g.name == "MulScalar":
            g.inputs[0].data.fill(0.9)

    x = leaf(X)
    h = f(x)
    z = h * 1.5
    if not held:
        del h
    z.forward()
    z.backward(**{when: write})
    close(x.g, [1.5 * right] * 2)
    close(z.parent.inputs[0].d, [0.9, 0.9])


def test_an_array_that_a_hook_exchanges_is_an_error():
    x = leaf(X)
    h = F.exp(x)
    y = F.sin(h)
    for run in (y.forward, y.backward):
        with pytest.raises(nn.Error, match="another data array"):
            run(function_pre_hook=lambda f: setattr(h, "data", nn.NdArray.from_numpy_array(NEW)))
        y.forward()
    close(y.d, np.sin(np.exp(X)))


def wanted(right, get):
    """The right value, or an error."""
    try:
        close(get(), right)
    except nn.Error as e:
        assert "not kept" in str(e)


def gradient(y, x):
    x.g = 0
    y.backward()
    return x.g


def test_a_leaf_that_a_hook_of_another_root_writes():
    x = leaf(X)
    h = x + x
    a, b = F.flip(F.sigmoid(h), [0]), F.cos(h)
    a.forward()
    b.forward(function_pre_hook=lambda f: f.name == "Add2" and f.inputs[0].data.fill(5))
    s = 1 / (1 + np.exp(-2 * X))
    wanted(s, lambda: a.parent.inputs[0].d)
    wanted(2 * s * (1 - s), lambda: gradient(a, x))
    a.forward()
    close(gradient(a, x), [2 * np.exp(-10) / (1 + np.exp(-10)) ** 2] * 2)


def test_what_a_hook_wrote_before_another_root_ran():
    x = leaf(X)
    h = F.exp(x)
    k = F.tanh(h)
    y, z = F.sin(k), F.cos(h)
    y.forward(clear_buffer=True, function_post_hook=lambda f: f.name == "Exp" and f.outputs[0].data.fill(0.3))
    z.forward()
    wanted(np.tanh([0.3, 0.3]), lambda: k.d)
    wanted(np.cos(np.tanh(0.3)) * (1 - np.tanh(0.3) ** 2) * np.exp(X), lambda: gradient(y, x))


def test_no_gradient_is_written_where_it_is_an_error():
    x, b = leaf(X), leaf(X)
    h = x * x
    y = F.tanh(h) - b
    y.forward()
    h.data.zero()
    b.g = 0
    for hooks in ({}, {"function_pre_hook": lambda f: None}):
        with pytest.raises(nn.Error, match="not kept"):
            y.backward(**hooks)
        assert not b.g.any()


def test_no_gradient_is_written_where_data_that_an_earlier_run_has_cleared_cannot_be_made_again():
    x, w = leaf(X), leaf(X)
    y = F.sum(F.broadcast(F.sum(F.softmax(F.exp(x)) * w), (2,)) + w)  # w.g is written before softmax is read

    def write(f):
        if f.name == "Softmax":
            f.inputs[0].d = NEW

    y.forward()
    y.backward(clear_buffer=True, function_post_hook=write)
    x.g, w.g = 3, 4
    with pytest.raises(nn.Error, match="cannot be computed again"):
        y.backward()
    assert x.g.tolist() == [3, 3] and w.g.tolist() == [4, 4]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("f", [F.max, F.min, lambda x: F.sum(F.max_pooling(x, (1, 2)))])
def test_no_gradient_is_written_where_what_a_function_saved_cannot_be_made_again(f, flags):
    x, w = leaf([1, 2]), leaf([[1, 2], [3, 4]])
    y = F.sum(F.sin(F.sin(F.sin(F.sin(F.sin(x)))))) + f(F.transpose(w, (1, 0)))  # x.g comes before w.g
    y.forward(**flags)
    y.backward(clear_buffer=True)
    w.d = 0
    x.g, w.g = 3, 4
    with pytest.raises(nn.Error, match="cannot be computed again"):
        y.backward()
    assert (x.g == 3).all() and (w.g == 4).all()


def test_a_write_before_an_error_stays():
    x = leaf(X)
    y = F.tanh(x + 0.5) + 0.5

    def write(f):
        if f.name == "Tanh":
            f.inputs[0].d = 0.75

    y.forward()
    with pytest.raises(nn.Error, match="not kept"):
        y.backward(function_pre_hook=write)
    close(y.parent.inputs[0].parent.inputs[0].d, [0.75, 0.75])
    y.forward()
    close(y.parent.inputs[0].parent.inputs[0].d, X + 0.5)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("need_grad", [True, False])
def test_a_part_of_an_array_is_not_cleared(need_grad, flags):
    a = nn.Variable.from_numpy_array(np.arange(4))
    h = F.exp(leaf(X, need_grad=need_grad))
    h.data = a.data.narrow(0, 1, 2)
    y = F.sin(h)
    y.forward(**flags)
    if need_grad:
        y.backward(clear_buffer=True)
    close(a.d, [0, *np.exp(X), 3])


class Overwrites(OneToOne):
    """Twice its input, which it writes before."""

    name = "Overwrites"

    def forward_impl(self, inputs, outputs):
        inputs[0].d = NEW
        outputs[0].d = inputs[0].d * 2

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = 2 * outputs[0].g + (inputs[0].g if accum[0] else 0)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_in_a_python_function(flags, held):
    x = leaf(X)
    y = F.sin(Overwrites(nn.Context(["cpu:float"]))(F.exp(x)))
    h = exp_of(y) if held else None
    for _ in range(2):
        y.forward(**flags)
        close(y.d, np.sin(2 * NEW))
        close(exp_of(y).d, NEW)
        x.g = 0
        y.backward(clear_buffer="clear_buffer" in flags)
        close(x.g, 2 * np.cos(2 * NEW) * NEW)
    del h


@pytest.mark.parametrize("flags", FLAGS[:2], ids=str)
@pytest.mark.parametrize("which", ["function_pre_hook", "function_post_hook"])
def test_variables_that_a_hook_got_hold_of(which, flags):
    x = leaf(X)
    y, held = F.sin(F.exp(F.tanh(x))), []
    y.forward(**flags, **{which: lambda f: held.extend([*f.inputs, *f.outputs])})
    made = {v.parent.name: v for v in held if v.parent is not None and v != y}
    x.d = 5
    close(made["Tanh"].d, np.tanh(X))
    close(made["Exp"].d, np.exp(np.tanh(X)))


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_variables_that_a_hook_made_persistent(flags):
    x = leaf(X)
    y = F.sin(F.exp(F.tanh(x)))

    def keep(f):
        f.outputs[0].persistent = True

    y.forward(function_post_hook=keep, **flags)
    y.backward(clear_buffer=True)
    x.d = 5
    close(exp_of(y).d, np.exp(np.tanh(X)))


def test_a_python_function_that_reads_its_input_keeps_no_memory():
    """To look at it is no change: it ends as if it had not been read."""

    class Reads(Overwrites):
        def forward_impl(self, inputs, outputs):
            outputs[0].d = inputs[0].d * 2

    x = leaf(X, need_grad=False)
    y = F.sin(Reads(nn.Context(["cpu:float"]))(F.exp(x)))
    y.forward(clear_buffer=True)
    assert exp_of(y)._clear_called()[0]
