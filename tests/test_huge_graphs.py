"""Huge graphs, interrupts, and the same bits with fusion on and off.

Every test runs with fusion on and off; expected values are NumPy formulas.
"""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf, train

pytestmark = pytest.mark.usefixtures("fusion")


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


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_a_function_of_many_inputs_and_one_of_many_outputs(n):
    """Work grows with their number: were it with its square, the long one would run for hours."""
    x = leaf(np.arange(n))
    y = F.sink(*F.split(x), one_input_grad=True)
    assert nn.memory.plan(y).peak > 0
    y.forward()
    y.backward()
    close(x.g, np.ones(n))


@pytest.mark.parametrize("n", [50_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_a_chain_of_many_nodes_in_a_small_stack(n):
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


@pytest.mark.host
def test_ctrl_c_stops_a_long_run_between_functions():
    n = 256
    w = leaf(np.eye(n) * 0.5, False)
    x = leaf(np.ones((n, n)), False)
    first = y = F.affine(x, w)
    for _ in range(500):
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


def interrupted(run, begins) -> bool:
    """Sends SIGINT once the count that `begins` gives has changed; True if it came before the end of `run`."""
    before = begins()

    def interrupt():
        while begins() == before:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        run()
        stopped = False
        thread.join()
        time.sleep(1)  # the signal comes here
    except KeyboardInterrupt:
        stopped = True
    thread.join()
    return stopped


@pytest.mark.host
@pytest.mark.usefixtures("one_thread")
def test_ctrl_c_stops_a_long_function_in_the_middle():
    """Long is what takes several times the 50 ms after which a kernel asks whether to stop."""
    n = 2500
    a, b = np.random.default_rng(313).standard_normal((2, n, n)).astype("float32")
    x, w = leaf(a), leaf(b)
    y = F.affine(x, w)
    assert any(interrupted(y.forward, lambda: y.data.modification_count) for _ in range(20))
    y.d = 0
    y.forward()
    np.testing.assert_allclose(y.d, a @ b, atol=1e-3)
    for _ in range(20):
        x.g = w.g = 0
        if interrupted(y.backward, lambda: x.grad.modification_count):
            break
    else:
        pytest.fail("backward ended before each signal")
    with pytest.raises(nn.Error, match="not kept by backward, or not finished"):
        print(x.g, w.g)
    x.g = w.g = 0
    y.backward()
    np.testing.assert_allclose(x.g, np.broadcast_to(b.sum(1, dtype=float), x.shape), atol=1e-3)
    with nn.auto_forward():
        assert any(interrupted(lambda: F.affine(x, w), lambda: nn.memory.stats().live) for _ in range(20))


# Kernels of few, large chunks; to their ends they would run for minutes.
LARGE = {
    "max_pooling": lambda: F.max_pooling(ones(1, 1, 2000, 2000), (700, 700), stride=(1, 1)),
    "average_pooling": lambda: F.average_pooling(ones(1, 1, 2000, 2000), (700, 700), stride=(1, 1)),
    "convolution": lambda: F.convolution(ones(1, 1, 3000, 3000), ones(1, 1, 400, 400)),
    "depthwise convolution": lambda: F.convolution(ones(1, 2, 2000, 2000), ones(2, 1, 700, 700), group=2),
    "long convolution": lambda: F.convolution(ones(1, 1, 10**6), ones(1, 1, 3 * 10**5)),
    "convolution of four axes": lambda: F.convolution(ones(1, 1, 40, 40, 40, 40), ones(1, 1, 20, 20, 20, 20)),
}


def ones(*shape):
    return leaf(np.ones(shape))


@pytest.mark.host
@pytest.mark.parametrize("name", LARGE)
def test_ctrl_c_stops_large_chunks(name):
    y = LARGE[name]()
    began = time.monotonic()
    assert interrupted(y.forward, lambda: y.data.modification_count)
    assert time.monotonic() - began < 30


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
