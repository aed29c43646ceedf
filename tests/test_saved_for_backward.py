"""Functions that save indices or exponentials for backward instead of keeping their input: max, min, max_pooling and
softmax_cross_entropy. What they save is freed in time, made again where it is gone, and never that of other data."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import Variable

ROWS, CLASSES = 512, 64
LABELS = np.random.default_rng(7).integers(-1, CLASSES, (ROWS, 1))


def one_hot(index, n):
    return (np.arange(n) == index[..., None]).astype("float64")


def of_cross_entropy(x):
    p = np.exp(x - x.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    return (p - one_hot(LABELS[:, 0], CLASSES)) * (LABELS >= 0)


def of_pooling(x):
    windows = x.reshape(ROWS // 2, 2, CLASSES // 2, 2).transpose(0, 2, 1, 3).reshape(-1, 4)
    hits = one_hot(windows.argmax(1), 4).reshape(ROWS // 2, CLASSES // 2, 2, 2)
    return hits.transpose(0, 2, 1, 3).reshape(x.shape)


def pooled(x):
    return F.max_pooling(x, (2, 2))


def cross_entropy(x):
    labels = Variable.from_numpy_array(LABELS)
    return F.softmax_cross_entropy(x, labels)


# name: function, its gradient where that of the result is 1, bytes saved
CASES = {
    "max": (lambda x: F.max(x, axis=1), lambda x: one_hot(x.argmax(1), CLASSES), 4 * ROWS),
    "max of columns": (lambda x: F.max(x, axis=0), lambda x: one_hot(x.argmax(0), ROWS).T, 4 * CLASSES),
    "min with index": (
        lambda x: F.min(x, axis=1, with_index=True)[0],
        lambda x: one_hot(x.argmin(1), CLASSES),
        4 * ROWS,
    ),
    "max_pooling": (pooled, of_pooling, ROWS * CLASSES // 4),
    "softmax_cross_entropy": (cross_entropy, of_cross_entropy, 4 * ROWS * (CLASSES + 1)),
}


def values(seed=0):
    return np.random.default_rng(seed).normal(size=(ROWS, CLASSES)).astype("float32")


def build(name, need_grad=True):
    function, gradient, saved = CASES[name]
    x = Variable.from_numpy_array(values(), need_grad=need_grad)
    h = F.mul_scalar(x, 2.0)
    return x, F.sum(function(h)), gradient, saved


def check(x, gradient, factor=2.0):
    want = factor * gradient(factor * x.d.astype("float64"))
    np.testing.assert_allclose(x.g, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}], ids=str)
def test_gradients_run_by_run(name, flags, fusion):
    x, y, gradient, _ = build(name)
    for seed in range(3):
        x.d = values(seed)
        x.grad.zero()
        y.forward(**flags)
        y.backward(clear_buffer=seed == 1)
        check(x, gradient)
        # What the first backward has freed is made again.
        x.grad.zero()
        y.backward(clear_buffer=True)
        check(x, gradient)


@pytest.mark.parametrize("name", CASES)
def test_what_was_saved_of_other_data_is_not_used(name):
    x, y, gradient, _ = build(name)
    x.grad.zero()
    y.forward()
    x.d = values(1)
    y.forward(clear_buffer=True)  # saves nothing
    y.backward()
    check(x, gradient)
    x.d = values(2)
    x.need_grad = False
    y.forward()
    x.need_grad = True
    x.grad.zero()
    y.backward()
    check(x, gradient)


@pytest.mark.host
def test_data_that_changes_after_forward_changes_no_gradient():
    """As in NNabla 1.39, whose functions save the same."""
    for name in ("max", "max_pooling"):
        function, gradient, _ = CASES[name]
        x = Variable.from_numpy_array(values(), need_grad=True)
        y = F.sum(function(x))
        x.grad.zero()
        y.forward()
        x.d = values(1)
        y.backward()
        np.testing.assert_array_equal(x.g, gradient(values().astype("float64")))


@pytest.mark.host
@pytest.mark.parametrize("name", CASES)
def test_only_what_backward_reads_stays(name):
    x, y, _, saved = build(name)
    gc.collect()
    start = nn.memory.stats().live
    y.forward(clear_no_need_grad=True)
    held = nn.memory.stats().live - start
    assert saved <= held <= saved + 1024, "what is saved, and the result"
    y.backward(clear_buffer=True)
    held = nn.memory.stats().live - start - 4 * x.size
    assert held <= 1024, "the gradient of x, and the result"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("how", ["no need_grad", "no_grad", "clear_buffer"])
def test_nothing_is_saved_where_no_backward_follows(name, how):
    if how == "no_grad":
        with nn.no_grad():
            x, y, *_ = build(name)
    else:
        x, y, *_ = build(name, need_grad=how != "no need_grad")
    gc.collect()
    start = nn.memory.stats().live
    y.forward(clear_no_need_grad=True, clear_buffer=how == "clear_buffer")
    assert nn.memory.stats().live - start <= 1024


@pytest.mark.host
@pytest.mark.parametrize("name", CASES)
def test_plans_know_what_is_saved(name):
    function, *_ = CASES[name]
    x = Variable.from_numpy_array(values(), need_grad=True)
    h = x
    for _ in range(3):
        h = F.mul_scalar(F.softmax(h), 2.0)
    y = F.sum(function(h))
    del h
    planned = nn.memory.plan(y, clear_no_need_grad=True, backward_clear_buffer=True)
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    for v in (x,):
        v.grad.zero()
    nn.memory.reset_peak()
    live = nn.memory.stats().live
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    used = nn.memory.stats().peak - live + 4 * x.size
    assert abs(planned.peak - used) <= 0.05 * used + 8192


@pytest.mark.parametrize("name", CASES)
def test_second_derivatives_read_the_input(name):
    function, gradient, _ = CASES[name]
    x = Variable.from_numpy_array(values(), need_grad=True)
    h = F.mul_scalar(x, 2.0)
    (g,) = nn.grad([F.sum(function(h))], [x])
    total = F.sum(F.mul2(g, g))
    x.grad.zero()
    total.forward(clear_no_need_grad=True)
    total.backward(clear_buffer=True)
    x64 = 2.0 * values().astype("float64")
    if name == "softmax_cross_entropy":
        p = np.exp(x64 - x64.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        v = 2 * 2.0 * of_cross_entropy(x64)  # of g to the total, then through d g / d x = 4 (diag p - p p')
        want = 4 * p * (v - (p * v).sum(1, keepdims=True)) * (LABELS >= 0)
        np.testing.assert_allclose(x.g, want, rtol=1e-3, atol=1e-5)
    else:
        np.testing.assert_array_equal(x.g, 0)


@pytest.mark.parametrize("name", CASES)
def test_single_runs_and_function_objects(name):
    function, gradient, _ = CASES[name]
    with nn.auto_forward():
        x = Variable.from_numpy_array(values(), need_grad=True)
        y = F.sum(function(F.mul_scalar(x, 2.0)))
    x.grad.zero()
    y.backward()
    check(x, gradient)
    h = Variable.from_numpy_array(values(), need_grad=True)
    y = function(h)
    f = y.parent
    f.forward(f.inputs, f.outputs)
    h.grad.zero()
    for v in f.outputs:
        v.g = 1
    f.backward(f.inputs, f.outputs)
    np.testing.assert_allclose(h.g, gradient(values().astype("float64")), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize("dtype", ["float", "half"])
def test_windows_of_many_places(channel_last, dtype):
    """More places than a byte counts, by windows and by channels."""
    with nn.context_scope(nn.Context([f"cpu:{dtype}"])):
        shape, axes = ((2, 40, 40, 3), (1, 2)) if channel_last else ((2, 3, 40, 40), (2, 3))
        # Whole numbers, each once in its plane: nothing is rounded away.
        rng = np.random.default_rng(3)
        planes = np.stack([rng.permutation(1600) for _ in range(6)]).reshape(2, 3, 40, 40)
        data = np.moveaxis(planes, 1, -1) if channel_last else planes
        x = Variable.from_numpy_array(data.astype("float32"), need_grad=True)
        y = F.max_pooling(F.mul_scalar(x, 1.0), (20, 20), channel_last=channel_last)
        loss = F.sum(y)
        x.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
    assert data.shape == shape and np.asarray(x.g).sum(axes).tolist() == [[4, 4, 4]] * 2
    blocks = planes.reshape(2, 3, 2, 20, 2, 20)
    want = (blocks == blocks.max((3, 5), keepdims=True)).reshape(planes.shape)
    np.testing.assert_array_equal(x.g, np.moveaxis(want, 1, -1) if channel_last else want)
