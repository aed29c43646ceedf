"""Graphs that change between runs.

Every test runs with fusion on and off; expected values are NumPy formulas.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf, train
from nnrs import NdArray, Variable

pytestmark = pytest.mark.usefixtures("fusion")


def test_rewire_moves_history_to_another_variable():
    x, other = leaf(X), leaf(X * 2)
    h = F.tanh(x)
    y = F.sin(h)
    train(y, x)
    new = F.exp(other)
    h.rewire_on(new)
    assert h.parent.name == "Exp" and new.parent is None and np.shares_memory(h.d, new.d)
    train(y, x, other)
    close(y.d, np.sin(np.exp(X * 2)))
    close(other.g, np.cos(np.exp(X * 2)) * np.exp(X * 2))
    assert np.array_equal(x.g, [0, 0, 0])


def test_rewire_leaves_unlinked_copies_as_they_are():
    x = leaf([1.0, 2.0, -3.0])
    h = F.relu(x)
    y = F.sub2(h, h)
    y.forward(clear_no_need_grad=True)
    copy = h.get_unlinked_variable(need_grad=False)
    copy.rewire_on(y)
    assert h.data != copy.data and h != copy and y.parent is None
    x.g = 0
    h.backward(1)
    assert h.d.tolist() == [1, 2, 0] and copy.d.tolist() == [0, 0, 0] and x.g.tolist() == [1, 1, 0]


def test_rewire_inserts_a_function():
    """The use it is for: y = sin(tanh(x)) becomes sin(exp(tanh(x)))."""
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h)
    train(y, x)
    h2 = F.tanh(x)
    h.rewire_on(F.exp(h2))
    train(y, x)
    t = np.tanh(X)
    close(y.d, np.sin(np.exp(t)))
    close(x.g, np.cos(np.exp(t)) * np.exp(t) * (1 - t**2))


def test_rewire_on_a_leaf_is_refused():
    h = F.tanh(leaf(X))
    with pytest.raises(RuntimeError, match="no parent"):
        h.rewire_on(leaf(X))
    assert h.parent.name == "Tanh"


def test_rewire_errors_leave_the_graph_alone():
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h)
    with pytest.raises(ValueError, match=r"rewire_on.*\(3,\).*\(4,\)"):
        h.rewire_on(F.exp(leaf(np.ones(4))))
    with pytest.raises(RuntimeError, match="cycle"):
        h.rewire_on(F.cos(y))
    train(y, x)
    close(y.d, np.sin(np.tanh(X)))
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2))


def test_rewire_changes_what_runs_before_what():
    """A deep graph rewired under a shallow one: ranks must be found anew."""
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h) * h
    train(y, x)
    deep = x
    for _ in range(20):
        deep = F.tanh(deep)
    h.rewire_on(deep)
    train(y, x)
    t, d = X.astype("float64"), np.ones(3)
    for _ in range(20):
        t = np.tanh(t)
        d = d * (1 - t**2)
    close(y.d, np.sin(t) * t)
    close(x.g, (np.cos(t) * t + np.sin(t)) * d)


def test_cutting_a_parent():
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h)
    train(y, x)
    h.parent = None
    h.d = X
    train(y, x)
    close(y.d, np.sin(X))
    assert np.array_equal(x.g, [0, 0, 0])


def test_clear_all_graph_links():
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h)
    y.clear_all_graph_links()
    assert y.parent is None and h.parent is None


@pytest.mark.parametrize("size", [1, 5, 100])
def test_reset_shape_of_an_input(size):
    x = leaf(X)
    y = F.sum(F.sin(F.tanh(x)) * x)
    train(y, x)
    x.reset_shape((size,), True)
    values = np.linspace(-1, 1, size).astype("float32")
    x.d = values
    train(y, x)
    t = np.tanh(values)
    close(y.d, np.sum(np.sin(t) * values))
    close(x.g, np.cos(t) * (1 - t**2) * values + np.sin(t))


def test_reset_shape_to_the_same_size_keeps_the_data():
    x = leaf(np.arange(6).reshape(2, 3))
    y = F.sum(x, axis=1)
    y.forward()
    x.reset_shape((3, 2))
    y.forward()
    assert y.shape == (3,) and np.array_equal(y.d, [1, 5, 9])
    with pytest.raises(ValueError, match="force"):
        x.reset_shape((7,))
    assert x.shape == (3, 2)


def test_reset_shape_that_no_longer_fits_fails_at_forward_and_can_be_repaired():
    x, w = leaf(X), leaf(X)
    y = F.tanh(x) * w
    train(y, x, w)
    x.reset_shape((4,), True)
    with pytest.raises(ValueError, match="mul2"):
        y.forward()
    x.reset_shape((3,), True)
    x.d = X
    train(y, x, w)
    close(y.d, np.tanh(X) * X)
    close(w.g, np.tanh(X))


def test_replaced_data_and_gradient_arrays():
    x = leaf(X)
    y = F.sin(F.tanh(x))
    train(y, x)
    x.data = NdArray.from_numpy_array(X * 3)
    x.grad = NdArray.from_numpy_array(np.array([1, 1, 1], "float32"))
    y.forward()
    y.backward()
    close(y.d, np.sin(np.tanh(X * 3)))
    close(x.g, 1 + np.cos(np.tanh(X * 3)) * (1 - np.tanh(X * 3) ** 2))
    for wrong in (NdArray((2,)), np.ones(3), None, 3):
        with pytest.raises((ValueError, TypeError)):
            x.data = wrong
        with pytest.raises((ValueError, TypeError)):
            x.grad = wrong
    close(x.d, X * 3)


def test_a_variable_whose_data_is_another_variables_output():
    x = leaf(X)
    h = F.tanh(x)
    u = Variable((3,), need_grad=True)
    u.data = h.data
    y = F.sin(u)
    h.forward()
    y.forward()
    close(y.d, np.sin(np.tanh(X)))


def test_data_of_another_type():
    x = leaf(X)
    y = F.tanh(x) * 2
    y.forward()
    x.data = NdArray.from_numpy_array(np.array([1, 2, 3]))
    train(y, x)
    close(y.d, np.tanh([1, 2, 3]) * 2)
    x.data = NdArray.from_numpy_array(np.array([0.1, 0.2, 0.3]))
    train(y, x)
    close(y.d, np.tanh([0.1, 0.2, 0.3]) * 2)


@pytest.mark.parametrize("change", ["persistent", "need_grad", "consumer", "held", "hook", "flags", "recompute"])
def test_small_changes_between_runs(change):
    x = leaf(X)
    y = F.cos(F.sin(F.tanh(x)))
    train(y, x)
    h, kw, seen = y.parent.inputs[0], {}, []
    if change == "persistent":
        h.persistent = True
    elif change == "need_grad":
        h.need_grad = False
    elif change == "consumer":
        seen.append(F.exp(h))
    elif change == "hook":
        kw = {"function_pre_hook": lambda f: seen.append(f.name)}
    elif change == "flags":
        kw = {"clear_no_need_grad": True}
    elif change == "recompute":
        h.recompute = True
    x.g = 0
    y.forward(**kw)
    y.backward()
    t = np.tanh(X)
    close(y.d, np.cos(np.sin(t)))
    close(x.g, 0 * X if change == "need_grad" else -np.sin(np.sin(t)) * np.cos(t) * (1 - t**2))
    close(h.d, np.sin(t))
    x.g = 0
    h.need_grad = None
    train(y, x)
    close(x.g, -np.sin(np.sin(t)) * np.cos(t) * (1 - t**2))


def test_runs_from_several_roots_in_turn():
    x = leaf(X)
    a = F.tanh(x)
    b = F.sin(a)
    c = F.exp(a)
    d = b * c
    t = np.tanh(X)
    for _ in range(2):
        b.forward()
        d.forward()
        x.g = 0
        d.backward()
        close(x.g, (np.cos(t) + np.sin(t)) * np.exp(t) * (1 - t**2))
        x.g = 0
        b.backward()
        close(x.g, np.cos(t) * (1 - t**2))
        c.forward()
        x.g = 0
        c.backward()
        close(x.g, np.exp(t) * (1 - t**2))


def test_growing_a_graph_step_by_step():
    x = leaf(X)
    y, t = x, X.astype("float64")
    for _ in range(10):
        y = F.sin(y)
        t = np.sin(t)
        train(y, x)
        close(y.d, t)


def test_a_variable_taken_twice_beside_a_reader_outside_of_the_unit(fusion):
    if not fusion:
        return  # this test runs both itself
    for seed in range(100):
        results = []
        for on in (True, False):
            nn.set_fusion(on)
            x = leaf(np.random.default_rng(seed).random((4, 1)))
            v = F.tanh(x)
            y = F.add2(F.sum(F.mul2(v, v)), F.norm(v))
            train(y, x)
            results.append(x.g.tobytes())
        assert results[0] == results[1], seed
