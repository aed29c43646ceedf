"""The allocator: statistics, the limit, errors beyond it; plans of what a graph will need, held against its use."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import NdArray, Variable

MIB = 2**20


@pytest.fixture(autouse=True)
def clean():
    nn.memory.clear_cache()
    yield
    nn.memory.set_limit(None)


def leaf(shape, need_grad=True, seed=0) -> Variable:
    values = np.random.default_rng(seed).normal(size=shape).astype("float32")
    return Variable.from_numpy_array(values, need_grad=need_grad)


def full(shape) -> NdArray:
    a = NdArray(shape)
    a.data[...] = 1
    return a


# Statistics


def test_statistics_follow_arrays():
    start = nn.memory.stats()
    a = full((MIB,))
    one = nn.memory.stats()
    assert 4 * MIB <= one.live - start.live <= 4 * MIB + 4096 and one.blocks == start.blocks + 1
    b = full((MIB,))
    assert nn.memory.stats().live >= one.live + 4 * MIB
    del a, b
    end = nn.memory.stats()
    assert end.live == start.live and end.blocks == start.blocks and end.cached >= start.cached
    assert end.limit is None and end.peak >= one.live


def test_the_peak_is_of_the_time_since_reset():
    nn.memory.reset_peak()
    base = nn.memory.stats()
    assert base.peak == base.live
    a, b = full((MIB,)), full((MIB,))
    del a
    assert 8 * MIB <= nn.memory.stats().peak - base.live <= 8 * MIB + 8192
    nn.memory.reset_peak()
    assert nn.memory.stats().peak == nn.memory.stats().live
    del b


def test_the_cache_can_be_given_back():
    a = full((MIB,))
    del a
    assert nn.memory.stats().cached >= 4 * MIB
    nn.memory.clear_cache()
    assert nn.memory.stats().cached == 0


def test_memory_is_taken_from_the_cache_again():
    a = full((MIB,))
    place = a.data_ptr("float32")
    del a
    cached = nn.memory.stats().cached
    b = full((MIB,))
    assert b.data_ptr("float32") == place and nn.memory.stats().cached < cached


def test_conversions_count_once():
    start = nn.memory.stats().live
    a = full((MIB,))
    a.cast("float64")
    assert 8 * MIB <= nn.memory.stats().live - start <= 8 * MIB + 4096
    a.cast("uint8")
    assert MIB <= nn.memory.stats().live - start <= MIB + 4096


# The limit


@pytest.mark.host
def test_beyond_the_limit_is_a_memory_error_that_names_the_largest_arrays():
    x = leaf((512, 1024), False)
    w = leaf((1024, 1024), False)
    y = F.affine(x, w)
    y.forward()
    nn.memory.set_limit(nn.memory.stats().live + MIB)
    assert nn.memory.stats().limit is not None
    with pytest.raises(MemoryError) as e:
        full((4, MIB))
    text = str(e.value)
    assert isinstance(e.value, nn.Error)
    assert "16.0 MiB" in text and "4.0 MiB" in text and "2.0 MiB" in text and "affine" in text and "set_limit" in text
    nn.memory.set_limit(None)
    full((4, MIB))


@pytest.mark.host
@pytest.mark.parametrize("fused", [True, False])
def test_a_graph_that_runs_out_of_memory_stays_usable(fused):
    old = nn.set_fusion(fused)
    try:
        x = leaf((MIB // 4,))
        y = x
        for _ in range(20):
            y = F.sin(F.reshape(F.tanh(y), (MIB // 4,), inplace=False))
        before = nn.memory.stats().live
        for room in (0, 3, 7):
            nn.memory.set_limit(before + room * MIB)
            with pytest.raises(MemoryError):
                y.forward()
                y.backward()
        nn.memory.set_limit(None)
        y.forward()
        y.backward()
    finally:
        nn.set_fusion(old)
    t, d = x.d.astype("float64"), 1.0
    for _ in range(20):
        d = d * (1 - np.tanh(t) ** 2) * np.cos(np.tanh(t))
        t = np.sin(np.tanh(t))
    np.testing.assert_allclose(y.d, t, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(x.g, d, rtol=1e-3, atol=1e-5)


@pytest.mark.host
def test_a_failed_write_leaves_the_array_as_it_was():
    a = full((MIB,))
    nn.memory.set_limit(nn.memory.stats().live + MIB)
    with pytest.raises(MemoryError):
        a.cast("float64")
    with pytest.raises(MemoryError):
        a + 1
    with pytest.raises(MemoryError):
        NdArray.from_numpy_array(np.ones(MIB, "float32"))
    assert a.dtype == np.float32 and np.all(a.data == 1)


def test_no_room_at_all_and_limits_that_make_no_sense():
    nn.memory.set_limit(0)
    with pytest.raises(MemoryError):
        full((10,))
    nn.memory.set_limit(None)
    for wrong in (-1, "a", 1.5):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            nn.memory.set_limit(wrong)
    full((10,))


def test_a_huge_request_fails_at_once():
    with pytest.raises(MemoryError) as e:
        NdArray((2**30, 2**14)).data  # noqa: B018
    assert isinstance(e.value, nn.Error)
    x = Variable((2**20, 2**20))
    y = F.tanh(x)  # nothing is touched yet
    assert y.shape == (2**20, 2**20)
    with pytest.raises(MemoryError, match="tanh|out of memory"):
        y.forward()


# Plans


def chain(n):
    x = leaf((n,))
    y = x
    for k in range(30):
        y = [F.tanh, F.sigmoid, F.exp, F.leaky_relu, lambda v: v * 0.1][k % 5](y)
    return y, [x]


def chain_with_held_parts(n):
    x = leaf((n,))
    y, held = x, [x]
    for k in range(12):
        y = F.tanh(y) * 0.9
        if k % 3 == 0:
            held.append(y)
    return y, held


def broadcast_chain(n):
    x, b = leaf((64, n)), leaf((1, n), seed=1)
    y = x
    for _ in range(6):
        y = F.sigmoid(y * b) + b
    return F.sum(y), [x, b]


def perceptron(n):
    x = leaf((n, 256), False)
    y, held = x, [x]
    for k, width in enumerate((512, 384, 128, 10)):
        w, b = leaf((y.shape[1], width), seed=k), leaf((width,), seed=k)
        held += [w, b]
        y = F.tanh(F.affine(y, w, b))
    return F.sum(y), held


def perceptron_with_loss(n):
    x, t = leaf((n, 300), False), Variable.from_numpy_array(np.arange(n).reshape(n, 1) % 10)
    w1, w2 = leaf((300, 400)), leaf((400, 10))
    y = F.softmax_cross_entropy(F.affine(F.relu(F.affine(x, w1)), w2), t)
    return F.sum(y), [x, t, w1, w2]


def branches(n):
    x = leaf((n, 200))
    w = leaf((200, 200))
    h = F.affine(x, w)
    y = F.sin(h) * F.affine(F.cos(h), w) + F.affine(F.exp(h * 0.1), w)
    return y, [x, w]


def convolutional(n):
    x, held = leaf((n, 3, 32, 32), False), []
    y = x
    for k, maps in enumerate((16, 32, 32)):
        w = leaf((maps, y.shape[1], 3, 3), seed=k)
        held.append(w)
        y = F.max_pooling(F.relu(F.convolution(y, w, pad=(1, 1))), (2, 2))
    w = leaf((int(np.prod(y.shape[1:])), 10))
    return F.sum(F.affine(y, w)), [x, w, *held]


def deep_convolutional(n):
    x, held = leaf((n, 8, 16, 16), False), []
    y = x
    for k in range(10):
        w = leaf((8, 8, 3, 3), seed=k)
        held.append(w)
        y = F.relu(F.convolution(y, w, pad=(1, 1)))
    return F.sum(y), [x, *held]


def inference(n):
    x = leaf((n, 500), False)
    y, held = x, [x]
    for k in range(5):
        w = leaf((500, 500), False, seed=k)
        held.append(w)
        y = F.relu(F.affine(y, w))
    return y, held


NETS = [
    (chain, 200_000),
    (chain_with_held_parts, 200_000),
    (broadcast_chain, 4000),
    (perceptron, 512),
    (perceptron_with_loss, 1000),
    (branches, 1000),
    (convolutional, 32),
    (deep_convolutional, 64),
    (inference, 1000),
]
FLAGS = [(False, False, False), (False, True, True), (False, True, False), (True, False, False)]


# With fusion or without, the other way for the next flags and networks; both in the long test.
PLANS = [
    pytest.param(*net, fused, flags, marks=[] if (i + k + fused) % 2 == 0 else pytest.mark.long)
    for i, net in enumerate(NETS)
    for fused in (True, False)
    for k, flags in enumerate(FLAGS)
]


@pytest.mark.host
@pytest.mark.parametrize("net, n, fused, flags", PLANS)
def test_the_plan_is_within_five_percent_of_the_peak(net, n, fused, flags):
    buffer, no_need_grad, backward = flags
    old = nn.set_fusion(fused)
    try:
        gc.collect()
        base = nn.memory.stats().live
        y, held = net(n)
        if buffer and y.need_grad:
            return  # backward needs what clear_buffer drops
        leaves = nn.memory.stats().live
        plan = nn.memory.plan(y, buffer, no_need_grad, backward)
        assert nn.memory.stats().live == leaves, "a plan touches no memory"
        nn.memory.reset_peak()
        y.forward(clear_buffer=buffer, clear_no_need_grad=no_need_grad)
        if y.need_grad:
            y.backward(clear_buffer=backward)
        peak = nn.memory.stats().peak - base
    finally:
        nn.set_fusion(old)
    assert abs(plan.peak - peak) <= 0.05 * peak, f"planned {plan.peak / MIB:.2f} MiB, used {peak / MIB:.2f} MiB\n{plan}"


@pytest.mark.host
def test_the_second_step_needs_what_the_plan_says_too():
    base = nn.memory.stats().live
    y, held = perceptron(512)
    plan = nn.memory.plan(y, clear_no_need_grad=True, backward_clear_buffer=True)
    for _ in range(3):
        for v in held:
            v.grad.zero()
        nn.memory.reset_peak()
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)
        assert abs(nn.memory.stats().peak - base - plan.peak) <= 0.05 * plan.peak


def test_what_a_plan_says():
    x = leaf((1000, 100), False)
    w = leaf((100, 300))
    y = F.tanh(F.affine(x, w))
    plan = nn.memory.plan(y)
    assert plan.leaves >= 4 * (1000 * 100 + 2 * 100 * 300)
    sizes = [size for size, _ in plan.largest]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] >= 4 * 1000 * 300
    assert "affine" in " ".join(name for _, name in plan.largest) and "1000, 300" in " ".join(
        n for _, n in plan.largest
    )
    text = str(plan)
    assert text.startswith("peak ") and "MiB" in text and len(text.splitlines()) == 1 + len(plan.largest)


def test_plans_of_graphs_far_too_large_for_this_machine():
    x = Variable((2**20, 2**12), need_grad=True)
    y = F.sum(F.tanh(F.affine(x, Variable((2**12, 2**12), need_grad=True))))
    before = nn.memory.stats().live
    assert nn.memory.plan(y).peak > 2**34 and nn.memory.stats().live == before


def test_a_plan_of_a_leaf_and_of_something_else():
    assert nn.memory.plan(leaf((1000,))).peak >= 4000
    with pytest.raises(TypeError):
        nn.memory.plan(3)


def test_clear_flags_lower_the_plan():
    y, held = deep_convolutional(16)
    plain = nn.memory.plan(y).peak
    clear = nn.memory.plan(y, clear_no_need_grad=True, backward_clear_buffer=True).peak
    assert clear <= plain


@pytest.mark.host
def test_running_out_names_the_largest_arrays():
    x = nn.Variable((1000, 1000))
    x.name = "images"
    x.d = 1
    nn.clear_parameters()
    w = nn.parameter.get_parameter_or_create("W", (1000, 500), need_grad=True)
    w.g = np.ones((1000, 500), "float32")
    h = F.affine(x, w)
    h.forward()
    y = F.tanh(F.concatenate(h, h))
    nn.memory.clear_cache()
    nn.memory.set_limit(nn.memory.stats().live + 1000)
    try:
        with pytest.raises(MemoryError, match="largest arrays") as info:
            y.forward()
    finally:
        nn.memory.set_limit(None)
        nn.clear_parameters()
    text = str(info.value)
    assert "'images' (1000, 1000) 3.8 MiB" in text and "'W' (1000, 500) 1.9 MiB" in text
    assert "gradient of 'W' (1000, 500) 1.9 MiB" in text and "output of affine 1.9 MiB" in text
