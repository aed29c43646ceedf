"""Forks in the middle of things: the child works, or says clearly what it cannot do."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import traceback
import warnings

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from thread_helpers import network, parallel, step, threads  # noqa: F401 - a fixture

pytestmark = pytest.mark.host


def child_exit(work) -> int:
    """Runs `work` in a forked child; gives its exit code (0: fine)."""
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("n", [1, 3])
def test_a_forked_child_runs_the_graph_and_so_does_the_parent(n):
    nn.set_num_threads(n)
    y, leaves = network(200)
    expected = step(y, leaves)

    def child():
        assert step(y, leaves) == expected
        z, others = network(100, 5)
        step(z, others)

    assert child_exit(child) == 0
    assert step(y, leaves) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_in_the_middle_of_a_run():
    nn.set_num_threads(2)
    y, leaves = network(200)
    expected = step(y, leaves)
    codes = []

    def child():
        z, others = network(200)
        assert step(z, others) == expected

    def hook(f):
        if not codes:
            codes.append(child_exit(child))

    y.forward(function_post_hook=hook)
    assert codes == [0] and step(y, leaves) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_while_another_thread_runs_a_graph():
    nn.set_num_threads(2)
    graphs = [network(200, seed) for seed in range(2)]
    expected = [step(*g) for g in graphs]
    stop, codes = threading.Event(), []

    def busy():
        while not stop.is_set():
            step(*graphs[0])

    def child():
        assert step(*graphs[1]) == expected[1]

    def forks():
        try:
            codes.extend(child_exit(child) for _ in range(5))
        finally:
            stop.set()

    parallel(busy, forks)
    assert codes == [0] * 5


def pool_work(seed):
    y, leaves = network(50, seed)
    return step(y, leaves)[0]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
def test_multiprocessing_with_fork():
    expected = [pool_work(s) for s in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(pool_work, range(4)) == expected


def fork_beside(work, child, times):
    """Forks children while another thread works."""
    stop = threading.Event()

    def run():
        while not stop.is_set():
            work()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(times):
            assert child_exit(child) == 0
    finally:
        stop.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_runs_the_graph_that_another_thread_was_running():
    x = nn.Variable.from_numpy_array(np.ones((512, 512), "float32"), need_grad=True)
    y = F.sum(F.affine(x, x))

    def child():
        signal.alarm(60)  # rather than wait for ever
        y.forward()
        assert y.d == 512**3

    fork_beside(y.forward, child, 3)


FIRST_CALL = """
import os, signal, threading, nnrs as nn, nnrs.functions as F
x = nn.Variable((64, 64), need_grad=True)

def work():
    y = F.sum(F.softmax(x))
    while True:
        y.forward()
        y.backward()

threading.Thread(target=work, daemon=True).start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # rather than wait for ever
        F.sum(F.softmax(nn.Variable((3,)))).forward()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_in_the_middle_of_the_first_call_of_another_thread():
    for _ in range(3):
        subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_CALL], check=True, timeout=240)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_collects_garbage_that_another_thread_was_running():
    from cube_function import Cube

    x = nn.Variable.from_numpy_array(np.ones((64, 64), "float32"), need_grad=True)
    f = Cube()
    f.y = y = F.sum(f(F.tanh(x)))
    stop = threading.Event()

    def run():
        while not stop.is_set():
            y.forward()
            y.backward()

    thread = threading.Thread(target=run)
    thread.start()

    def child():
        signal.alarm(20)  # rather than wait for ever
        for _ in range(3):
            gc.collect()

    gc.collect()
    gc.freeze()  # what other tests left is not to be gone through by each child
    try:
        assert [child_exit(child) for _ in range(20)] == [0] * 20
    finally:
        gc.unfreeze()
        stop.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_while_other_threads_draw_initial_values():
    code = """
import os, signal, threading, warnings, numpy as np, nnrs as nn, nnrs.parametric_functions as PF, nnrs.random
warnings.simplefilter("ignore", DeprecationWarning)
stop = threading.Event()
def draw(k):
    while not stop.is_set():
        nnrs.random.prng.normal(size=20000)
        with nn.parameter_scope(f"t{k}"):
            PF.affine(nn.Variable((2, 30)), 40)
        nn.clear_parameters()
others = [threading.Thread(target=draw, args=(k,)) for k in range(2)]
[t.start() for t in others]
codes = []
for i in range(40):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        with nn.parameter_scope("child"):
            PF.affine(nn.Variable((2, 3)), 4).forward()
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
stop.set()
[t.join() for t in others]
assert codes == 40 * [0], codes
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("work", ["nnrs.seed(3)", "own((1000, 1000))"])
def test_forks_beside_a_thread_at_work(work):
    # A seed puts another generator in the place of one that others still draw from.
    code = f"""
import os, signal, threading, warnings, numpy as np, nnrs, nnrs.initializer as I
warnings.simplefilter("ignore", DeprecationWarning)
shared, own = I.UniformInitializer(), I.NormalInitializer(rng=np.random.RandomState(5))
ready = threading.Event()
def go(f):
    while True:
        ready.set()
        f()
for f in (lambda: {work}, lambda: shared((1000, 1000))):
    threading.Thread(target=go, args=(f,), daemon=True).start()
ready.wait()
codes = []
for i in range(20):
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        shared((10,)), own((10,)), nnrs.initializer.UniformInitializer()((3,))
        os._exit(0)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print(codes, flush=True)
os._exit(codes != 20 * [0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_uses_arrays_and_graphs_that_another_thread_was_at_work_on():
    """Small graphs: their locks are held most of the time. With a hook, which wants Python in the middle of a run."""
    x = nn.Variable.from_numpy_array(np.ones((2, 2), "float32"), need_grad=True)
    h = F.exp(x)
    y = F.sum(F.sin(h))
    seen = []

    def step():
        y.forward(function_post_hook=seen.append)
        x.grad.zero()
        y.backward(clear_buffer=True)

    def child():
        signal.alarm(60)
        x.d = 2
        y.forward()
        y.backward()
        np.testing.assert_allclose(y.d, 4 * np.sin(np.exp(2)), rtol=1e-5)

    fork_beside(step, child, 30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forks_beside_no_work():
    """Where its parent gave up waiting: what is at work after 10 seconds does not exist in the child."""
    code = """
import os, threading, time, warnings, nnrs as nn, nnrs.functions as F
warnings.simplefilter("ignore", DeprecationWarning)
y = F.sum(F.sin(nn.Variable((8,), need_grad=True)))
long = F.max_pooling(nn.Variable((1, 1, 1200, 1200)), (400, 400), stride=(1, 1))
threading.Thread(target=long.forward, daemon=True).start()
time.sleep(0.2)
child = os.fork()
if child == 0:
    begin = time.monotonic()
    for _ in range(3):
        grandchild = os.fork()
        if grandchild == 0:
            y.forward()
            y.backward()
            os._exit(0)
        assert os.waitpid(grandchild, 0)[1] == 0
    os._exit(time.monotonic() - begin > 8)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
