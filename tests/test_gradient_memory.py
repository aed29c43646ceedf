"""Gradients that take over memory in backward: as few buffers as said, and the same numbers as NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs import Variable

MIB = 2**20
RNG = np.random.default_rng


def leaf(shape, seed=0, need_grad=True, dtype="float32") -> Variable:
    return Variable.from_numpy_array(RNG(seed).normal(size=shape).astype(dtype), need_grad=need_grad)


def peak_of(run) -> int:
    """The most bytes of arrays that a run takes beyond what is there, after one that fills what stays."""
    run()
    nn.memory.reset_peak()
    live = nn.memory.stats().live
    run()
    return nn.memory.stats().peak - live


# The numbers, each with an intermediate variable before the function, whose gradient is written and not added to.


def batch_normalization(x, g, axes, eps=1e-5):
    """The gradient of sum(g * normalized x)."""
    kept = dict(axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(x.var(**kept) + eps)
    norm = (x - x.mean(**kept)) * inverse
    return inverse * (g - g.mean(**kept) - norm * (g * norm).mean(**kept))


def softmax(x, g):
    y = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    return y * (g - (g * y).sum(-1, keepdims=True))


def log_softmax(x, g):
    return g - np.exp(x) / np.exp(x).sum(-1, keepdims=True) * g.sum(-1, keepdims=True)


def normalized(h):
    one = np.ones((1, h.shape[1]) + (1,) * (h.ndim - 2), "float32")
    a = [Variable.from_numpy_array(v * one) for v in (0, 1, 0, 1)]
    return F.batch_normalization(h, *a, eps=1e-5)


CASES = {
    "rows": (normalized, lambda x, g: batch_normalization(x, g, (0, 2, 3)), (7, 3, 9, 10)),
    "columns": (normalized, lambda x, g: batch_normalization(x, g, (0,)), (70, 33)),
    "short rows": (normalized, lambda x, g: batch_normalization(x, g, (0, 2)), (50, 40, 5)),
    "parts": (normalized, lambda x, g: batch_normalization(x, g, (0, 2, 3)), (64, 2, 32, 33)),
    "softmax": (F.softmax, softmax, (60, 1500)),
    "log_softmax": (F.log_softmax, log_softmax, (60, 1500)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_written_over_others_are_right(name, held, threads):
    function, reference, shape = CASES[name]
    x, g = leaf(shape, 1), leaf(shape, 2, need_grad=False)
    old = nn.get_num_threads()
    nn.set_num_threads(threads)
    try:
        h = F.mul_scalar(x, 0.5)
        y = function(h)
        loss = F.sum(F.mul2(y, g))
        keep = (h, y) if held else ()
        del h, y
        x64, g64 = 0.5 * x.d.astype("float64"), g.d.astype("float64")
        want = reference(x64, g64)
        for clear in (False, True, False):
            x.grad.zero()
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=clear)
            np.testing.assert_allclose(x.g, 0.5 * want, rtol=2e-4, atol=2e-5)
            if held and not clear:
                np.testing.assert_allclose(keep[0].g, want, rtol=2e-4, atol=2e-5)
                np.testing.assert_array_equal(keep[1].g, g.d)
    finally:
        nn.set_num_threads(old)


def correlated(g, w, group):
    """The gradient of a convolution's input with kernel 3 x 3, padding 1."""
    g = np.pad(g, ((0, 0), (0, 0), (1, 1), (1, 1)))
    height, width, per = g.shape[2] - 2, g.shape[3] - 2, g.shape[1] // group
    gx = np.zeros((g.shape[0], w.shape[1] * group, height, width))
    for o in range(g.shape[1]):
        for c in range(w.shape[1]):
            for i in range(3):
                for j in range(3):
                    gx[:, o // per * w.shape[1] + c] += w[o, c, i, j] * g[:, o, 2 - i :, 2 - j :][:, :height, :width]
    return gx


@pytest.mark.host
@pytest.mark.parametrize("group", [1, 2, 4])
def test_the_gradient_of_a_convolution_in_the_place_of_the_other(group):
    shape = (17, 4, 120, 128)
    x, w, b = leaf(shape, 1), leaf((4, 4 // group, 3, 3), 2), leaf((4,), 3)
    g = leaf(shape, 4, need_grad=False)
    h = F.mul_scalar(x, 0.5)
    loss = F.sum(F.mul2(F.convolution(h, w, b, pad=(1, 1), group=group), g))
    del h

    def run():
        for v in (x, w, b):
            v.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)

    # h with what follows; then h with the gradient that goes through, x's own in the end.
    size = 4 * x.size
    assert peak_of(run) <= 2.1 * size
    g64, h64 = g.d.astype("float64"), 0.5 * x.d.astype("float64")
    np.testing.assert_allclose(x.g, 0.5 * correlated(g64, w.d, group), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(b.g, g64.sum((0, 2, 3)), rtol=1e-3, atol=1e-2)
    part = np.pad(h64, ((0, 0), (0, 0), (1, 1), (1, 1)))[:, :, 2:, :-2]
    np.testing.assert_allclose(w.g[0, 0, 2, 0], (g64[:, 0] * part[:, 0]).sum(), rtol=1e-3, atol=1e-2)


# The buffers


@pytest.mark.host
def test_a_normalization_writes_over_the_gradient_that_ends():
    x = leaf((16, 8, 32, 32))
    h = x
    for _ in range(6):
        h = normalized(F.mul_scalar(h, 1.5))
    loss = F.sum(h)
    del h

    def run():
        x.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)

    # Six inputs of normalizations and what goes forward; then one gradient beside them.
    assert peak_of(run) <= 7.2 * 4 * x.size


@pytest.mark.parametrize("function", [F.mean, F.sum])
def test_a_gradient_that_repeats_itself_is_not_spread_out(function):
    x = leaf((64, 16, 64))
    h = F.tanh(F.mul_scalar(x, 0.5))
    y = function(h, axis=(0, 2))
    factors = leaf((16,), 1, need_grad=False)
    loss = F.sum(F.mul2(y, factors))
    del h, y

    def run():
        x.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)

    assert peak_of(run) <= 2.2 * 4 * x.size
    g = factors.d / (64 * 64 if function is F.mean else 1)
    want = 0.5 * (1 - np.tanh(0.5 * x.d.astype("float64")) ** 2) * g[:, None]
    np.testing.assert_allclose(x.g, want, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_repeated_gradient_with_other_parts_and_with_lookers(clear, dtype):
    with nn.context_scope(nn.Context(["cpu:half" if dtype == "float16" else "cpu:float"])):
        x = leaf((8, 6))
        h = F.mul_scalar(x, 0.5)
        total = F.add2(F.sum(F.mean(F.sin(h), axis=1)), F.sum(F.mul_scalar(h, 3.0)))
        k = F.exp(h)
        total = F.add2(total, F.sum(k, axis=0, keepdims=True).reshape((6,))[2])
        total.forward()
        total.backward(clear_buffer=clear)
    h64 = 0.5 * x.d.astype("float64")
    column = np.arange(6) == 2
    want = np.cos(h64) / 6 + 3 + np.exp(h64) * column
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(x.g, 0.5 * want, rtol=tolerance, atol=tolerance)
    if not clear:
        np.testing.assert_allclose(h.g, want, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(k.g, np.broadcast_to(column, (8, 6)))


def test_hooks_see_gradients_that_others_would_be_written_over():
    x = leaf((40, 5))
    loss = F.sum(F.mul_scalar(F.softmax(F.mul_scalar(x, 2.0)), 3.0))
    seen = {}

    def look(f):
        seen[f.name] = [v.g.copy() for v in (*f.outputs, *f.inputs)]

    loss.forward()
    loss.backward(function_post_hook=look)
    names = list(seen)
    softmax_name = next(n for n in names if n.lower().startswith("softmax"))
    np.testing.assert_array_equal(seen[softmax_name][0], np.full((40, 5), 3.0))
    np.testing.assert_allclose(seen[softmax_name][1], 0, atol=1e-6)


def test_views_of_numpy_are_not_written_over():
    x = leaf((30, 7))
    h = F.mul_scalar(x, 2.0)
    y = F.softmax(h)
    loss = F.sum(F.mul_scalar(y, 3.0))
    loss.forward()
    gradient, data = y.g, h.d
    before = data.copy()
    del h, y
    loss.backward()
    shown = gradient.copy()
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    np.testing.assert_array_equal(gradient, shown)
    np.testing.assert_array_equal(data, before)


def test_data_is_freed_after_its_last_reading_and_comes_back():
    x = leaf((256, 1024))
    h = x
    held = []
    for _ in range(4):
        h = normalized(F.tanh(h))
        held.append(h)
    loss = F.sum(h)
    del h
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    first = x.g.copy()
    # All was cleared; it is made again where it is read.
    want = np.tanh(x.d.astype("float64"))
    want = (want - want.mean(0)) / np.sqrt(want.var(0) + 1e-5)
    np.testing.assert_allclose(held[0].d, want, rtol=1e-3, atol=1e-4)
    x.grad.zero()
    loss.backward(clear_buffer=True)
    np.testing.assert_allclose(x.g, first, rtol=1e-5, atol=1e-7)


@pytest.mark.host
def test_a_recomputed_network_fits_beside_what_is_kept():
    """Of each layer the convolution's result is kept; beside them are one recomputed map and one gradient."""
    nn.clear_parameters()
    x, layers, maps = leaf((32, 3, 16, 16), need_grad=False), 6, 64
    h = x
    for i in range(layers):
        with nn.parameter_scope(f"gradient{i}"):
            h = PF.convolution(h, maps, (3, 3), pad=(1, 1), with_bias=False)
            with nn.recompute():
                h = F.relu(PF.batch_normalization(h))
    loss = F.mean(F.mean(h, axis=(2, 3)))
    del h
    parameters = nn.get_parameters()

    def run():
        for p in parameters.values():
            p.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)

    size = 4 * 32 * maps * 16 * 16
    gradients = sum(4 * p.size for p in parameters.values())
    planned = nn.memory.plan(loss, clear_no_need_grad=True, backward_clear_buffer=True)
    peak = peak_of(run)
    assert peak <= (layers + 1) * size + 2 * gradients + 2 * MIB
    leaves = 4 * x.size + gradients
    assert abs(planned.peak - (peak + leaves)) <= 0.05 * planned.peak + 2 * gradients
    nn.clear_parameters()
