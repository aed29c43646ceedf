"""Data that was not kept, and what keeps it.

Every test runs with fusion on and off; expected values are NumPy formulas.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf, train
from nnrs import NdArray

pytestmark = pytest.mark.usefixtures("fusion")


def test_reading_an_intermediate_that_was_not_kept_gives_its_value():
    x = leaf(X)
    y = F.cos(F.sin(F.tanh(x)))
    y.forward()
    f = y.parent
    close(f.inputs[0].d, np.sin(np.tanh(X)))
    close(f.inputs[0].parent.inputs[0].d, np.tanh(X))
    close(y.d, np.cos(np.sin(np.tanh(X))))
    y.backward()
    t = np.tanh(X)
    close(x.g, -np.sin(np.sin(t)) * np.cos(t) * (1 - t**2))


@pytest.mark.parametrize("change", ["d", "data", "in place", "fill"])
def test_reading_an_intermediate_after_its_input_changed(change):
    x = leaf(X)
    y = F.cos(F.sin(F.tanh(x)))
    y.forward()
    h = y.parent.inputs[0]
    if change == "d":
        x.d = X * 2
    elif change == "data":
        x.data = NdArray.from_numpy_array(X * 2)
    elif change == "in place":
        x.d[0] = 100
    else:
        x.data.fill(9)
    try:
        value = h.d
    except RuntimeError as e:
        assert isinstance(e, nn.Error) and "persistent" in str(e)
    else:
        close(value, np.sin(np.tanh(X)))
    x.d = X * 3
    y.forward()
    close(h.d, np.sin(np.tanh(X * 3)))


def test_writing_through_an_old_numpy_view_is_never_a_silently_different_number():
    x = leaf(X)
    view = x.d
    y = F.cos(F.sin(F.tanh(x)))
    y.forward()
    view[:] = 9
    try:
        value = y.parent.inputs[0].d
    except RuntimeError:
        return
    close(value, np.sin(np.tanh(X)))


def test_batches_written_through_one_numpy_view_are_seen():
    x = leaf(X)
    view = x.d
    y = F.sin(F.tanh(x))
    for k in (1, 2, 3):
        view[:] = X * k
        train(y, x)
        close(y.d, np.sin(np.tanh(X * k)))
        close(x.g, np.cos(np.tanh(X * k)) * (1 - np.tanh(X * k) ** 2))


def test_held_and_persistent_variables_keep_their_data():
    x = leaf(X)
    a = F.tanh(x)
    b = F.sin(a)
    y = F.cos(b)
    b.persistent = True
    f = y.parent
    del b
    y.forward()
    x.d = X * 5
    close(a.d, np.tanh(X))
    close(f.inputs[0].d, np.sin(np.tanh(X)))


def test_held_arrays_keep_their_data():
    x = leaf(X)
    y = F.cos(F.sin(F.tanh(x)))
    h = y.parent.inputs[0].data
    y.forward()
    x.d = 0
    close(h.data, np.sin(np.tanh(X)))


def test_gradient_of_an_intermediate_that_was_not_kept_is_right_or_an_error():
    x = leaf(X)
    y = F.cos(F.sin(F.tanh(x)))
    train(y, x)
    try:
        g = y.parent.inputs[0].g
    except RuntimeError as e:
        assert "persistent" in str(e) and "hold" in str(e)
    else:
        close(g, -np.sin(np.sin(np.tanh(X))))


def test_a_dropped_output_comes_back():
    x = leaf(X)
    f = F.sin(F.tanh(x)).parent
    gc.collect()
    y = f.outputs[0]
    assert y.parent == f and y.need_grad and y.shape == (3,)
    train(y, x)
    close(y.d, np.sin(np.tanh(X)))
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2))
    assert f.outputs[0] == y
    data = y.data
    del y
    assert np.array_equal(f.outputs[0].d, data.data), "the data was kept"


LOOKS = {
    "d": lambda x: x.d.sum(),
    "twice": lambda x: (x.d.sum(), x.d.sum()),
    "data": lambda x: x.data.data.sum(),
    "asarray": lambda x: np.asarray(x.data).sum(),
    "unlinked": lambda x: x.unlinked().d.sum(),
    "kept": lambda x: setattr(x, "info", x.d),
}


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("look", LOOKS)
def test_looking_at_an_input_changes_nothing(look, before):
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(F.exp(h)) * x
    for _ in range(3):
        if before:
            LOOKS[look](x)
        y.forward(clear_no_need_grad=True)
        LOOKS[look](x)
        close(h.d, np.tanh(X))
        close(y.parent.inputs[0].d, np.sin(np.exp(np.tanh(X))))


@pytest.mark.parametrize("before", [False, True])
def test_writing_through_a_view_is_noticed(before):
    x = leaf(X)
    y = F.sin(F.exp(F.tanh(x)))
    seen = x.d if before else None
    y.forward(clear_buffer=True)
    seen = x.d if seen is None else seen
    seen[1] = 5
    with pytest.raises(RuntimeError, match="changed since forward"):
        y.parent.inputs[0].d  # noqa: B018
    y.forward()
    close(y.parent.inputs[0].d, np.exp(np.tanh(x.d)))


def test_hooks_of_backward_may_look_at_everything():
    x = leaf(X)
    y = F.sin(F.exp(F.tanh(x))) * x
    y.forward(clear_no_need_grad=True)
    seen = []
    y.backward(function_pre_hook=lambda f: seen.append([v.d.copy() for v in f.inputs]))
    t = np.tanh(X)
    for actual, expected in zip(seen, [[np.sin(np.exp(t)), X], [np.exp(t)], [t], [X]], strict=True):
        for a, e in zip(actual, expected, strict=True):
            close(a, e)
