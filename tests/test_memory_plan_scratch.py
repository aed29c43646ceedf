"""Plans of what functions need beyond their outputs and gradients, and of gradients that are there before the run."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import leaf
from nnrs.ext_utils import get_extension_context

pytestmark = pytest.mark.usefixtures("one_thread")  # two need not have their buffers at the same time


def ones(*shape):
    return leaf(np.full(shape, 0.5))


def many(*shape):
    """Indices below 1000."""
    return leaf(np.arange(np.prod(shape)).reshape(shape) % 1000, need_grad=False)


def broadcast_twice(x):
    return F.sum(F.tanh(x + ones(1, 1024)) * F.sin(x * ones(256, 1)))


def with_copy(x):
    """The gradient goes to the same array from both sides."""
    return F.sum(x * x.get_unlinked_variable(need_grad=True))


LARGE = (16, 16, 64, 64)
NETS = {
    "norm": lambda: F.norm(ones(*LARGE)),
    "prelu": lambda: F.sum(F.prelu(ones(*LARGE), ones(16))),
    "prelu, softmax": lambda: F.sum(F.softmax(F.prelu(ones(*LARGE), ones(16)))),
    "batch_matmul": lambda: F.sum(F.batch_matmul(ones(16, 256, 256), ones(16, 256, 256), transpose_a=True)),
    "batch_matmul, broadcast": lambda: F.sum(F.batch_matmul(ones(16, 256, 256), ones(1, 256, 256))),
    "bool_gather": lambda: F.sum(F.bool_gather(ones(1000, 1000), ones(1000, 1000))),
    "layer_normalization": lambda: F.sum(F.layer_normalization(ones(*LARGE), None, None, batch_axis=1)),
    "batch_normalization": lambda: F.sum(
        F.batch_normalization(ones(*LARGE), None, None, ones(16, 1, 64, 1), ones(16, 1, 64, 1), axes=[0, 2])
    ),
    "long convolution": lambda: F.sum(F.convolution(ones(1, 4, 400_000), ones(4, 4, 5), pad=(2,))),
    "long convolution of few channels": lambda: F.sum(F.convolution(ones(1, 2, 400_000), ones(2, 2, 5), pad=(2,))),
    "pad": lambda: F.sum(F.pad(ones(600_000), (3, 3), "reflect")),
    "long deconvolution": lambda: F.sum(F.deconvolution(ones(1, 4, 400_000), ones(4, 4, 5), pad=(2,))),
    "pooling of long rows": lambda: F.sum(F.max_pooling(ones(1, 1, 1_000_000), (1, 3), stride=(1, 1))),
    "mean of long rows": lambda: F.sum(F.average_pooling(ones(1, 1, 1_000_000), (1, 3), stride=(1, 1))),
    "gather": lambda: F.sum(F.gather(ones(2, 1000), many(500_000), axis=1)),
    "gather_nd": lambda: F.sum(F.gather_nd(ones(1000), many(1, 1_000_000))),
    "scatter_nd": lambda: F.sum(F.scatter_nd(ones(1_000_000), many(1, 1_000_000), [1000])),
    "interpolate": lambda: F.sum(
        F.interpolate(ones(1, 800, 1000), output_size=(1200, 1700))
    ),  # one task: two may take turns
    "interpolate of long lines": lambda: F.sum(F.interpolate(ones(600_000), output_size=(1_000_000,))),
    "unpooling": lambda: F.sum(F.unpooling(ones(4, 1000, 500), (2, 2))),
    "fft": lambda: F.sum(F.fft(ones(400_000, 2), 1)),
    "fft of images": lambda: F.sum(F.fft(ones(700, 600, 2), 2)),
    "stft": lambda: F.sum(F.stft(ones(1, 1_600_000), 1024, 512, 1024)[0]),  # one task, likewise
    "istft": lambda: F.sum(F.istft(ones(2, 513, 1600), ones(2, 513, 1600), 1024, 512, 1024)),
    "warp_by_grid": lambda: F.sum(F.warp_by_grid(ones(2, 3, 400, 500), ones(2, 600, 500, 2))),
    "patch_correlation": lambda: F.sum(F.patch_correlation(ones(2, 64, 40, 50), ones(2, 64, 40, 50), shift=2)),
    "softmax alone": lambda: F.softmax(ones(*LARGE)),
    "affine alone": lambda: F.affine(ones(1000, 64), ones(64, 1000)),
    "deconvolution alone": lambda: F.deconvolution(ones(1, 2, 400_000), ones(2, 3, 4), stride=(2,)),
    "reshape first": lambda: F.sum(F.softmax(F.tanh(F.reshape(ones(*LARGE), (16, -1))))),
    "reshape last": lambda: F.sum(F.reshape(F.softmax(F.tanh(ones(*LARGE))), (16, -1))),
    "broadcast": lambda: F.sum(F.softmax(ones(*LARGE) * ones(1, 16, 1, 1))),
    "broadcast twice": lambda: F.sum(F.tanh(ones(256, 1) + ones(1, 1024))),
    "broadcast twice beside": lambda: broadcast_twice(ones(256, 1024)),
    "unlinked copy of a leaf": lambda: with_copy(ones(256, 1024)),
    "unlinked copy": lambda: with_copy(F.tanh(ones(256, 1024))),
}


def used(y, clear_no_need_grad=False, clear_buffer=False):
    gc.collect()
    nn.memory.clear_cache()
    nn.memory.reset_peak()
    y.forward(clear_no_need_grad=clear_no_need_grad)
    y.backward(clear_buffer=clear_buffer)
    return nn.memory.stats().peak


@pytest.mark.host
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("name", NETS)
def test_scratch_memory_is_planned(name, held):
    y = NETS[name]()
    kept = [v for f in [y.parent] for v in f.inputs] if held else None
    plan = nn.memory.plan(y)
    peak = used(y)
    del kept
    assert abs(plan.peak - peak) <= 0.05 * peak, f"planned {plan.peak}, used {peak}\n{plan}"


@pytest.mark.host
@pytest.mark.parametrize("f", [F.affine, lambda a, b: F.batch_matmul(a, b), lambda a, b: F.softmax(F.tanh(a) * 2)])
def test_gradients_that_are_stored_as_half_are_planned(f):
    old = nn.get_current_context()
    nn.set_default_context(get_extension_context("cpu", type_config="half"))
    y = F.sum(F.sin(f(ones(1000, 800), ones(800, 1000))))
    nn.set_default_context(old)
    plan = nn.memory.plan(y)
    peak = used(y)
    assert abs(plan.peak - peak) <= 0.05 * peak, f"planned {plan.peak}, used {peak}\n{plan}"


def number(v):
    return leaf(np.array(v), need_grad=False)


# Functions of one array that is made: what they hand back to it may take its place, or lie beside it.
INNER = {
    "affine": lambda h: F.affine(h, leaf(np.ones((400, 30)), need_grad=False)),
    "max": lambda h: F.max(h, 1),
    "norm": lambda h: F.norm(h, 2.0, (1,)),
    "prod": lambda h: F.prod(h, (0,)),
    "gather": lambda h: F.gather(h, number([1, 2]), axis=0),
    "gather_nd": lambda h: F.gather_nd(h, number([[0, 1]])),
    "embed": lambda h: F.embed(number(np.zeros(9)), h),
    "split": lambda h: F.split(h, 0)[1],
    "max_pooling": lambda h: F.max_pooling(F.reshape(h, (1, 300, 400)), (2, 2)),
    "average_pooling": lambda h: F.average_pooling(F.reshape(h, (1, 300, 400)), (2, 2)),
    "global_average_pooling": lambda h: F.global_average_pooling(F.reshape(h, (3, 4, 100, 100))),
    "batch_matmul": lambda h: F.batch_matmul(F.reshape(h, (1, 300, 400)), leaf(np.ones((2, 400, 30)), need_grad=False)),
    "transpose": lambda h: F.softmax(F.transpose(h, (1, 0))),
    "prelu": lambda h: F.prelu(h, number(0.25)),
    "prelu, gradient of the slope": lambda h: F.prelu(h, leaf(np.array(0.25))),
    "scatter_add": lambda h: F.scatter_add(h, number([[0]]), number([[1.0]]), axis=0),
    "scatter_add, gradient of both": lambda h: F.scatter_add(h, number(np.zeros((300, 400))), F.tanh(h), axis=0),
}


def as_new(x):
    pass


def zeroed(x):
    x.grad.zero()


def filled(x):
    x.grad.fill(1.0)


@pytest.mark.host
@pytest.mark.parametrize("before", [as_new, zeroed, filled])
@pytest.mark.parametrize("first", [F.sin, lambda x: F.relu(F.sin(x))], ids=["sin", "relu"])
@pytest.mark.parametrize("name", INNER)
def test_each_step_from_gradients_that_are_none_zero_or_a_number(name, first, before):
    for flag in (False, True):
        x = ones(300, 400)
        before(x)
        y = F.sum(F.sin(INNER[name](first(x))))
        for _ in range(2):
            plan = nn.memory.plan(y, clear_no_need_grad=flag, backward_clear_buffer=flag)
            peak = used(y, clear_no_need_grad=flag, clear_buffer=flag)
            assert abs(plan.peak - peak) <= 0.05 * peak, f"planned {plan.peak}, used {peak}\n{plan}"
        del x, y


@pytest.mark.host
def test_gradients_of_persistent_variables_are_planned():
    x = ones(300, 400)
    h = F.sin(x)
    h.persistent = True
    y = F.sum(F.softmax(F.tanh(h)) * h)
    for _ in range(2):
        plan = nn.memory.plan(y)
        peak = used(y)
        assert abs(plan.peak - peak) <= 0.05 * peak, f"planned {plan.peak}, used {peak}\n{plan}"


def accumulated(x, y):
    used(y)


def looked_at(x, y):
    assert not x.g.any()


def doubles(x, y):
    x.g = np.zeros(x.shape)


@pytest.mark.host
@pytest.mark.parametrize("before", [lambda x, y: None, accumulated, looked_at, doubles])
def test_gradients_that_are_there_are_planned(before):
    x = ones(1000, 1000)
    y = F.sum(F.softmax(F.tanh(x)))
    before(x, y)
    plan = nn.memory.plan(y)
    peak = used(y)
    assert abs(plan.peak - peak) <= 0.05 * peak, f"planned {plan.peak}, used {peak}\n{plan}"


@pytest.mark.host
@pytest.mark.parametrize("shape", [(2, 1_000_000), (1_000_000, 2), (10_000, 300)])
@pytest.mark.parametrize("f", [F.softmax, F.log_softmax])
def test_gradients_that_are_added_along_long_axes_are_planned(f, shape):
    x = ones(*shape)
    y = F.sum(f(x, axis=shape.index(max(shape))) * ones(*shape))
    used(y)
    plan = nn.memory.plan(y)
    peak = used(y)
    assert abs(plan.peak - peak) <= 0.05 * peak, f"planned {plan.peak}, used {peak}\n{plan}"


OF_OTHER_TYPES = {
    "softmax": F.softmax,
    "concatenate": lambda x: F.concatenate(x, x),
    "affine": lambda x: F.affine(x, leaf(np.ones((100, 5)), need_grad=False)),
    "a view": lambda x: F.transpose(F.reshape(x, (100, 1000)), (1, 0)),
    "max": lambda x: F.max(x, axis=1),
    "pad": lambda x: F.pad(x, (1, 1)),
}


@pytest.mark.host
@pytest.mark.parametrize("dtype", ["float64", "uint8", "float16", "float32"])
@pytest.mark.parametrize("name", OF_OTHER_TYPES)
def test_copies_of_leaves_of_other_types(name, dtype):
    before = nn.memory.stats().live
    x = nn.Variable((1000, 100))
    x.d = np.ones((1000, 100), dtype)
    y = F.sum(OF_OTHER_TYPES[name](x))
    planned = nn.memory.plan(y).peak
    nn.memory.reset_peak()
    y.forward()
    used = nn.memory.stats().peak - before
    assert abs(used - planned) <= 64


@pytest.mark.parametrize("shape", [(0, 1, 2**40, 4, 4), (0, 1, 2**24)])
@pytest.mark.parametrize("function", [F.convolution, F.deconvolution])
def test_no_images_need_no_memory(function, shape):
    x, w = nn.Variable(shape, need_grad=True), nn.Variable((1, 1, *[3] * (len(shape) - 2)), need_grad=True)
    w.d, w.g = 1, 5
    y = function(x, w)
    assert nn.memory.plan(y).peak < 10_000
    before = nn.memory.stats().live
    nn.memory.reset_peak()
    y.forward()
    y.backward()
    assert nn.memory.stats().peak - before < 10_000
    assert (w.g == 5).all()


def test_a_plan_of_arrays_without_elements():
    x = nn.Variable((0, 1, 2**40, 4, 4))
    y = F.convolution(x, nn.Variable((0, 1, 2**40, 4, 4)))
    assert nn.memory.plan(y).peak < 10_000
    assert nn.memory.fit(y, 10_000)
