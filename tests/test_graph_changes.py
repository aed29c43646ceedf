"""Graphs that change between runs, data that was not kept, huge graphs, interrupts.

Every test runs with fusion on and off; expected values are NumPy formulas.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import NdArray, Variable

X = np.array([0.5, -1.0, 2.0], "float32")


@pytest.fixture(autouse=True, params=[True, False], ids=["fused", "single"])
def fusion(request):
    old = nn.set_fusion(request.param)
    yield request.param
    nn.set_fusion(old)


def leaf(values, need_grad=True) -> Variable:
    return Variable.from_numpy_array(np.array(values, "float32"), need_grad=need_grad)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


def train(y, *leaves):
    for x in leaves:
        x.g = 0
    y.forward()
    y.backward()


# Surgery


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


# Data that was not kept


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


# Sizes


def on_small_stack(work):
    """Runs `work` on a thread with a stack of 256 KiB; gives its result or raises its exception."""
    result = []

    def target():
        try:
            result.append((True, work()))
        except BaseException as e:
            result.append((False, e))

    old = threading.stack_size(256 * 1024)
    try:
        t = threading.Thread(target=target)
        t.start()
        t.join()
    finally:
        threading.stack_size(old)
    ok, value = result.pop()
    if not ok:
        raise value
    return value


def test_a_chain_of_a_million_nodes_in_a_small_stack(fusion):
    n = 1_000_000 if fusion else 100_000

    def work():
        functions = nn._core.live_nodes()[0]
        x = y = leaf([2.0])
        for _ in range(n):
            y = -y
        assert nn._core.live_nodes()[0] == functions + n and y.rank == n
        y.forward()
        y.backward()
        result = y.d[0], x.g[0]
        del y
        assert nn._core.live_nodes()[0] == functions
        return result

    assert on_small_stack(work) == (2.0, 1.0)


def test_a_long_chain_of_functions_that_do_not_fuse_in_a_small_stack():
    def work():
        x = y = leaf(np.ones((1, 1)))
        w = leaf([[1.0]])
        for _ in range(20_000):
            y = F.affine(y, w)
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)
        return y.d[0, 0], x.g[0, 0], w.g[0, 0]

    assert on_small_stack(work) == (1.0, 1.0, 20_000.0)


def test_gradient_graph_and_visit_of_a_long_chain_in_a_small_stack():
    def work():
        x = y = leaf([2.0])
        for _ in range(20_000):
            y = -y
        count = []
        y.visit(lambda f: count.append(1))
        (g,) = nn.grad(y, [x])
        g.forward()
        y.clear_all_graph_links()
        return len(count), g.d[0]

    assert on_small_stack(work) == (20_000, 1.0)


def test_a_wide_graph():
    x = leaf([1.0])
    y = F.add_n(*[F.tanh(x) for _ in range(3000)])
    train(y, x)
    np.testing.assert_allclose(y.d, [3000 * np.tanh(1.0)], rtol=1e-4)
    np.testing.assert_allclose(x.g, [3000 * (1 - np.tanh(1.0) ** 2)], rtol=1e-4)


# Ctrl-C


def test_ctrl_c_in_a_hook_stops_the_run_and_leaves_the_graph_usable():
    x = leaf(X)
    y = F.sin(F.tanh(x)) + x

    def interrupt(f):
        signal.raise_signal(signal.SIGINT)

    for run in (y.forward, y.backward):
        with pytest.raises(KeyboardInterrupt):
            run(function_post_hook=interrupt)
    train(y, x)
    close(y.d, np.sin(np.tanh(X)) + X)
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2) + 1)


def test_ctrl_c_stops_a_long_run_between_functions():
    n = 256
    w = leaf(np.eye(n) * 0.5, False)
    x = leaf(np.ones((n, n)), False)
    first = y = F.affine(x, w)
    for _ in range(1500):
        y = F.affine(y, w)
    started, last = first.data, y.data

    def stopped_half_way() -> bool:
        before = started.modification_count, last.modification_count

        def interrupt_once_it_runs():
            while started.modification_count == before[0]:
                time.sleep(0.001)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt_once_it_runs)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            y.forward()
            thread.join()
        thread.join()
        return last.modification_count == before[1]

    assert any(stopped_half_way() for _ in range(20)), "a signal that no run noticed would come after the last function"
    x.d = 0
    y.forward(clear_buffer=True)
    assert np.all(y.d == 0)


# Fusion


def test_fused_and_single_runs_give_the_same_bits(fusion):
    if not fusion:
        return  # this test runs both itself
    unary = [F.tanh, F.sigmoid, F.exp, F.leaky_relu, F.sin, F.abs, F.softplus, F.elu, F.swish, lambda v: v * 0.7]
    binary = [F.add2, F.mul2, F.sub2, F.maximum2, F.minimum2]
    for trial in range(8):
        rng = np.random.default_rng(trial)
        shape = [(7,), (3, 5), (1000,), (2, 1, 9), (64, 65), (1,), (4099,), (0, 3)][trial]
        small = tuple(1 if k % 2 else s for k, s in enumerate(shape))
        leaves = [leaf(rng.normal(size=s) * 0.5) for s in (shape, small, shape)]

        def build(rng=rng, leaves=leaves):
            pool = list(leaves)
            for _ in range(25):
                f = unary[rng.integers(len(unary))]
                g = binary[rng.integers(len(binary))]
                a, b = (pool[rng.integers(len(pool))] for _ in "ab")
                pool.append(g(f(a), b) * 0.5)
            return F.sum(F.add2(pool[-1], pool[-2]))

        y = build()
        results = []
        for on in (True, False):
            nn.set_fusion(on)
            train(y, *leaves)
            results.append([y.d.copy()] + [v.g.copy() for v in leaves])
        for a, b in zip(*results, strict=True):
            assert a.tobytes() == b.tobytes(), (trial, shape)
