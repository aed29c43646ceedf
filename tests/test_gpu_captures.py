"""Captured runs (CUDA graphs) beside other threads, other arrays, and views that make them impossible for a while.

As tests/test_gpu.py: needs a GPU, or NNRS_CUDA=emulate in a build with the feature `emulate`.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from gpu_helpers import DEVICES, needs_gpu, numbers, variable, works_on_gpu  # noqa: F401 (a fixture)
from nnrs.ext import cuda
from nnrs.ext_utils import get_extension_context

pytestmark = [needs_gpu, pytest.mark.usefixtures("works_on_gpu")]


def tanh_of_tanh(n: int) -> float:
    v = 1.0
    for _ in range(n):
        v = np.tanh(v)
    return v


def test_another_thread_reads_while_runs_are_captured():
    """The reader waits for the capture, not the other way round."""
    w = variable(np.eye(8, dtype=np.float32))
    w.need_grad = True
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            float(w.g[0, 0])

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        for _ in range(30):
            h = variable(np.ones((4, 8), np.float32))
            for _ in range(10):
                h = F.tanh(F.affine(h, w))
            y = F.sum(h)
            for _ in range(5):
                w.grad.zero()
                y.forward()
                y.backward()
    finally:
        stop.set()
    reader.join(60)
    assert not reader.is_alive()
    np.testing.assert_allclose(y.d, 32 * tanh_of_tanh(10), rtol=1e-4)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("last", ["mean", "sum", "max", "embed"])
def test_the_memory_of_a_captured_run_is_its_own(last, clear):
    """Also what is made in it of constants, such as the gradient that backward starts with."""
    x, w = variable(np.ones((4, 5), np.float32)), variable(numbers(5, 6), need_grad=True)
    if last == "embed":
        y = F.sum(F.embed(variable(np.array([1, 0, 4], np.int32)), w))
    else:
        y = getattr(F, last)(F.tanh(F.affine(x, w)))

    def step() -> np.ndarray:
        w.grad.zero()
        y.forward()
        y.backward()
        return w.g.copy()

    wanted = [step() for _ in range(9)][0]
    assert any("backward: 1 captured" in line for line in cuda.graphs(y)), cuda.graphs(y)
    if clear:
        cuda.clear_memory_cache()
    old = cuda.set_graphs(False)
    others = [F.add_scalar(variable(np.zeros((), np.float32)), 100 + i) for i in range(60)]
    for v in others:
        v.forward()
    cuda.set_graphs(old)
    np.testing.assert_array_equal(step(), wanted)
    assert [float(v.d) for v in others] == [100 + i for i in range(60)]


def test_a_view_that_is_alive_puts_a_capture_off():
    """The array goes to the GPU at each run then; what was tried in vain is tried again."""
    x = variable(np.ones((4, 5)))
    y = F.sum(F.softmax(F.affine(x, variable(numbers(5, 6)))))
    view = x.d
    for _ in range(4):
        y.forward()
    assert "not captured" in cuda.graphs(y)[0], cuda.graphs(y)
    del view
    for _ in range(8):
        y.forward()
    assert "1 captured, replayed" in cuda.graphs(y)[0], cuda.graphs(y)


@pytest.mark.skipif(DEVICES < 2, reason="one GPU")
def test_two_devices_share_an_array_while_the_cache_is_cleared():
    """An array moves to and fro; who works on it keeps the memory that it had."""
    w = variable(numbers(64, 64))
    wanted = np.exp(w.d).sum()
    stop, errors = threading.Event(), []

    def work(device: str) -> None:
        try:
            with nn.context_scope(get_extension_context("cudnn", device_id=device)):
                while not stop.is_set():
                    y = F.sum(F.exp(w))
                    y.forward()
                    np.testing.assert_allclose(y.d, wanted, rtol=1e-4)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(device,)) for device in "01"]
    for t in threads:
        t.start()
    for _ in range(400):
        cuda.clear_memory_cache()
    stop.set()
    for t in threads:
        t.join(60)
    assert not errors, errors[0]
