"""Threads, graphs run inside hooks. Results must be right, and the same bits for every number of threads."""

from __future__ import annotations

import contextlib
import functools
import threading
import time

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf
from thread_helpers import network, parallel, step, threads  # noqa: F401 - a fixture

# Numbers of threads


@pytest.mark.parametrize("fused", [True, False], ids=["fused", "single"])
def test_results_are_the_same_bits_for_every_number_of_threads(fused):
    old = nn.set_fusion(fused)
    try:
        y, leaves = network(200)
        results = []
        for n in (1, 2, 3, 7):
            nn.set_num_threads(n)
            assert nn.get_num_threads() == n
            results.append(step(y, leaves))
        assert all(r == results[0] for r in results)
    finally:
        nn.set_fusion(old)


def test_large_arrays_are_the_same_bits_for_every_number_of_threads():
    rng = np.random.default_rng(1)
    x = leaf(rng.normal(size=(300, 1001)))
    b = leaf(rng.normal(size=(1, 1001)))
    y = F.sum(F.exp(F.sin(x * b)) + b, axis=1)
    results = []
    for n in (1, 2, 3):
        nn.set_num_threads(n)
        results.append(step(y, [x, b]) + [y.d.tobytes()])
    assert all(r == results[0] for r in results)
    full = np.exp(np.sin(x.d.astype("float64") * b.d)) + b.d
    np.testing.assert_allclose(y.d, full.sum(1), rtol=1e-5)


def test_convolutions_are_the_same_bits_for_every_number_of_threads():
    rng = np.random.default_rng(2)
    x, w, b = leaf(rng.normal(size=(5, 6, 17, 19))), leaf(rng.normal(size=(7, 6, 3, 3))), leaf(rng.normal(size=7))
    y = F.average_pooling(F.max_pooling(F.convolution(x, w, b, pad=(1, 1), stride=(2, 1)), (2, 2)), (2, 2))
    results = []
    for n in (1, 2, 3):
        nn.set_num_threads(n)
        results.append(step(y, [x, w, b]))
    assert all(r == results[0] for r in results)


@pytest.mark.parametrize("wrong", [-1, "a", None, 1.5])
def test_numbers_of_threads_that_make_no_sense(wrong):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        nn.set_num_threads(wrong)
    y, leaves = network()
    step(y, leaves)


# Several threads


def test_two_threads_run_two_graphs():
    expected = {}
    graphs = [network(32, seed) for seed in range(3)]
    for i, (y, leaves) in enumerate(graphs):
        expected[i] = step(y, leaves)

    def work(i):
        for _ in range(10):
            assert step(*graphs[i]) == expected[i]

    parallel(*(lambda i=i: work(i) for i in range(3)))


def test_two_threads_build_and_drop_graphs_over_one_leaf():
    x = leaf(X)

    def work():
        for _ in range(200):
            y = F.sin(F.tanh(x)) + x
            y.forward()
            close(y.d, np.sin(np.tanh(X)) + X)
        with nn.auto_forward():
            for _ in range(200):
                close(F.cos(x).d, np.cos(X))

    parallel(work, work, work)
    assert x.function_references == []


def test_two_threads_run_the_same_graph():
    x = leaf(X)
    y = F.cos(F.sin(F.tanh(x))) * x
    errors = []

    def work():
        for _ in range(100):
            try:
                y.forward()
            except RuntimeError as e:  # allowed: a clear error; not allowed: another number
                errors.append(str(e))
            close(y.d, np.cos(np.sin(np.tanh(X))) * X)

    parallel(work, work)
    assert all("thread" in e or "running" in e for e in errors)
    y.forward()
    y.backward()


def test_two_threads_accumulate_into_one_parameter():
    w = leaf(X)
    ys = [F.sum(w * leaf(X * k, False)) for k in (1, 2)]
    for y in ys:
        y.forward()
    parallel(*(y.backward for y in ys))
    assert all(np.isfinite(w.g))
    w.grad.zero()
    for y in ys:
        y.backward()
    close(w.g, X * 3)


def test_a_value_that_another_thread_clears_is_computed_again():
    """Both graphs read the exp, which each clears: what one of them makes it of, the other may be about to clear."""

    def run(y):
        for _ in range(30):
            y.forward()
            y.backward(clear_buffer=True)

    for _ in range(100):
        x = leaf(X)
        x.g = 0
        held = F.exp(F.sin(x))
        roots = F.cos(held), F.tanh(held)
        parallel(*[functools.partial(run, y) for y in roots])
        e = np.exp(np.sin(X))
        slope = (1 - np.tanh(e) ** 2 - np.sin(e)) * e * np.cos(X)
        np.testing.assert_allclose(x.g, 30 * slope, rtol=1e-4, atol=1e-4)


def test_a_thread_that_only_reads_changes_nothing(switching_often):
    w = leaf(X)
    done = threading.Event()

    def read():
        while not done.is_set():
            assert w.d.sum() > 0

    def train():
        try:
            for _ in range(1500):
                y = F.sum(F.sin(F.tanh(F.exp(w))))
                y.forward(clear_no_need_grad=True)
                y.backward(clear_buffer=True)
        finally:
            done.set()

    parallel(train, read, read)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize(
    "read", [lambda h: h.d.sum(), lambda h: h.data.data.sum(), lambda h: h.get_unlinked_variable().d.sum()]
)
def test_a_thread_that_only_reads_an_intermediate_value_changes_nothing(read, clear):
    x = leaf(np.linspace(0.1, 1, 5000))
    h = F.exp(x)
    y = F.sum(F.sin(F.tanh(h)) * 2)
    y.forward()
    done = threading.Event()

    def look():
        while not done.is_set():
            read(h)

    def train():
        try:
            for _ in range(700):
                x.g = 0
                y.forward()
                y.backward(clear_buffer=clear)
        finally:
            done.set()

    parallel(train, look)


@pytest.mark.parametrize("reads", ["h.d", "h.data.data", "h.data.get_data('r')", "w.d", "w.g"])
def test_what_another_thread_reads_is_written_nevertheless(reads, switching_often):
    """On a GPU it fetches the memory, perhaps after a kernel was given it and before it runs.

    The update makes floats of doubles.
    """
    x, w = nn.Variable((500,)), leaf(np.ones(500))
    h = F.mul_scalar(x, 2)
    y = F.sum(F.cumsum(h) * w)
    solver = nn.solvers.Sgd(1.0)
    solver.set_parameters({"w": w})
    x.d = 1
    y.forward()
    y.backward()
    done = threading.Event()

    def look():
        while not done.is_set():
            eval(reads, {"h": h, "w": w})

    def train():
        weights = np.ones(500)
        try:
            for i in range(300):
                x.d = i % 7
                y.forward()
                solver.zero_grad()
                y.backward()
                sums = 2 * (i % 7) * np.arange(1, 501)
                np.testing.assert_array_equal(y.d, (sums * weights).sum())
                solver.update()
                weights = weights - sums
                np.testing.assert_array_equal(w.d, weights)
                w.d = weights = weights % 3
        finally:
            done.set()

    parallel(train, look)


def test_another_size_while_an_array_is_shared():
    """A view of the input keeps the reshape from sharing its memory; the error says what happened."""
    x = leaf(np.ones(24, "float32"))
    view = x.d
    h = F.identity(x)
    y = F.sum(h)
    done = threading.Event()

    def resize():
        while not done.is_set():
            with contextlib.suppress(nn.Error):
                h.reset_shape((50000,), True)
                h.reset_shape((24,), True)

    def run():
        try:
            for _ in range(1500):
                try:
                    y.forward()
                except nn.Error as e:
                    assert "internal error" not in str(e)
        finally:
            done.set()

    parallel(run, resize)
    assert view.size == 24


def test_modes_belong_to_the_thread():
    seen = []
    with nn.auto_forward(), nn.no_grad():
        parallel(lambda: seen.append((nn.get_auto_forward(), F.tanh(leaf(X)).need_grad)))
    assert seen == [(False, True)]


def test_python_goes_on_while_a_graph_runs():
    """The GIL is released: a Python thread moves on although the run holds its own thread for long."""
    w = leaf(np.eye(256) * 0.5, False)
    first = y = F.affine(leaf(np.ones((256, 256)), False), w)
    for _ in range(300):
        y = F.affine(y, w)
    started, last = first.data, y.data

    def seen_under_way() -> bool:
        before, end, seen = started.modification_count, last.modification_count, []

        def watch():
            while started.modification_count == before:
                time.sleep(0)
            seen.append(last.modification_count)

        t = threading.Thread(target=watch)
        t.start()
        y.forward()
        t.join()
        return seen == [end]

    assert any(seen_under_way() for _ in range(50)), "with the GIL held no try could see it"


def test_a_graph_may_be_dropped_on_another_thread():
    box = [F.sin(F.tanh(leaf(X)))]
    box[0].forward()
    parallel(box.clear)


# Runs inside hooks


def test_forward_of_another_graph_inside_a_hook():
    x, other = leaf(X), leaf(X * 2)
    y, z = F.sin(F.tanh(x)), F.exp(other)
    seen = []

    def hook(f):
        z.forward()
        z.backward()
        seen.append(z.d.copy())

    y.forward(function_pre_hook=hook)
    y.backward(function_post_hook=hook)
    close(y.d, np.sin(np.tanh(X)))
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2))
    assert len(seen) == 4
    close(seen[0], np.exp(X * 2))
    close(other.g, 4 * np.exp(X * 2))


def test_a_new_graph_inside_a_hook():
    x = leaf(X)
    y = F.sin(F.tanh(x))
    seen = []

    def hook(f):
        with nn.auto_forward(), nn.no_grad():
            seen.append(F.exp(f.outputs[0]).d.copy())

    y.forward(function_post_hook=hook)
    close(seen[0], np.exp(np.tanh(X)))
    close(seen[1], np.exp(np.sin(np.tanh(X))))


@pytest.mark.parametrize("inner", ["forward", "backward"])
@pytest.mark.parametrize("outer", ["forward", "backward"])
def test_a_run_of_the_same_graph_inside_a_hook_is_a_clear_error(outer, inner):
    x = leaf(X)
    y = F.sin(F.tanh(x))
    y.forward()
    with pytest.raises(RuntimeError) as e:
        getattr(y, outer)(function_post_hook=lambda f: getattr(y, inner)())
    assert isinstance(e.value, nn.Error) and ("hook" in str(e.value) or "running" in str(e.value))
    x.g = 0
    y.forward()
    y.backward()
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2))


def test_changing_the_graph_inside_a_hook():
    x, other = leaf(X), leaf(X * 0.5)
    h = F.tanh(x)
    y = F.sin(h)
    new = F.exp(other)

    def hook(f):
        if f.name == "Tanh" and new.parent is not None:
            h.rewire_on(new)

    try:
        y.forward(function_pre_hook=hook)
    except RuntimeError as e:
        assert isinstance(e, nn.Error)
    y.forward()
    close(y.d, np.sin(np.exp(X * 0.5)) if h.parent.name == "Exp" else np.sin(np.tanh(X)))


def test_reset_shape_and_clear_inside_a_hook():
    for change in (lambda x, h: x.reset_shape((5,), True), lambda x, h: h.data.clear(), lambda x, h: x.data.clear()):
        x = leaf(X)
        h = F.tanh(x)
        y = F.sin(h)
        try:
            y.forward(function_post_hook=lambda f, x=x, h=h, change=change: change(x, h))
        except (RuntimeError, ValueError) as e:
            assert isinstance(e, nn.Error)
        x.reset_shape((3,), True)
        x.d = X
        y.forward()
        close(y.d, np.sin(np.tanh(X)))


def test_dropping_everything_inside_a_hook():
    box = [F.sin(F.tanh(leaf(X)))]
    box[0].forward(function_pre_hook=lambda f: box.clear())
    assert box == []


@pytest.mark.parametrize("count", [2, 3, 5])
def test_hooks_that_wait_for_each_others_graphs(count):
    """Each thread's hook runs the next one's graph, once all have begun: without an error they would wait for ever."""
    graphs = [F.exp(leaf(X)) for _ in range(count)]
    begun = threading.Barrier(count, timeout=60)
    errors, ended = [], []

    def run(i):
        def hook(f):
            begun.wait()
            graphs[(i + 1) % count].forward()

        try:
            graphs[i].forward(function_pre_hook=hook)
        except nn.Error as e:
            errors.append(str(e))
        ended.append(i)

    parallel(*(lambda i=i: run(i) for i in range(count)))
    assert sorted(ended) == list(range(count))
    assert errors and all("another thread, which waits" in e and "hint" in e for e in errors)
    for y in graphs:
        y.forward()
        close(y.d, np.exp(X))


def test_a_hook_waits_for_a_graph_that_another_thread_runs():
    """Where that thread waits for no other, there is no error, however long it takes."""
    first, second = F.exp(leaf(X)), F.sin(leaf(X))
    begun = threading.Event()

    def slow(f):
        begun.set()
        time.sleep(0.3)

    def hook(f):
        assert begun.wait(60)
        first.forward()

    parallel(lambda: first.forward(function_pre_hook=slow), lambda: second.forward(function_pre_hook=hook))
    close(first.d, np.exp(X))
    close(second.d, np.sin(X))
