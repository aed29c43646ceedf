"""Data that is dropped in forward and computed again for backward: `recompute`, `F.forget`.

The numbers must equal, to the bit, those of the same graph that keeps everything; memory and calls are counted.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from graph_helpers import close
from nnrs import Variable

RNG = np.random.default_rng(7)
IMAGES = RNG.standard_normal((4, 6, 16, 16)).astype("float32")
WEIGHTS = [(RNG.standard_normal((6, 6, 3, 3)) * 0.2).astype("float32") for _ in range(8)]


@pytest.fixture(autouse=True, params=[True, False], ids=["fused", "single"])
def fusion(request):
    old = nn.set_fusion(request.param)
    yield request.param
    nn.set_fusion(old)


def leaf(values, need_grad=True) -> Variable:
    return Variable.from_numpy_array(np.array(values, "float32"), need_grad=need_grad)


def block(h, w, i):
    h = F.relu(F.convolution(h, w, pad=(1, 1)))
    return F.dropout(h, 0.25, seed=i) if i % 3 == 1 else h


def chain(x, ws, mark=lambda h, i: None):
    h = x
    for i, w in enumerate(ws):
        h = block(h, w, i)
        mark(h, i)
    return F.mean(h * h)


def step(y, leaves, forward=None, backward=None):
    """Value and gradients of one step, and the most bytes in use beyond those before it."""
    for v in leaves:
        v.grad.zero()
    before = nn.memory.stats().live
    nn.memory.reset_peak()
    y.forward(**(forward or {}))
    y.backward(**(backward or {}))
    peak = nn.memory.stats().peak - before
    return [y.d.copy(), *(v.g.copy() for v in leaves)], peak


def kept(steps=1):
    """The last of some steps of the net that keeps everything; dropout draws other numbers in each."""
    x, ws = leaf(IMAGES), [leaf(w) for w in WEIGHTS]
    y = chain(x, ws)
    return [step(y, [x, *ws], dict(clear_no_need_grad=True), dict(clear_buffer=True)) for _ in range(steps)][-1]


def same(a, b):
    for p, q in zip(a, b, strict=True):
        np.testing.assert_array_equal(p, q)


@pytest.mark.parametrize("forward", [{}, {"clear_no_need_grad": True}], ids=str)
@pytest.mark.parametrize("backward", [{}, {"clear_buffer": True}], ids=str)
@pytest.mark.parametrize("every", [1, 2, 3, 100])
def test_marked_variables_change_no_bit(forward, backward, every):
    def mark(h, i):
        h.recompute = h.parent.inputs[0].recompute = (i + 1) % every != 0 or every == 1

    x, ws = leaf(IMAGES), [leaf(w) for w in WEIGHTS]
    y = chain(x, ws, mark)
    same(step(y, [x, *ws], forward, backward)[0], kept(1)[0])
    same(step(y, [x, *ws], forward, backward)[0], kept(2)[0])  # by the same plan


@pytest.mark.host
def test_checkpoints_save_memory_and_the_plan_knows():
    def mark(h, i):
        h.recompute = (i + 1) % 3 != 0

    x, ws = leaf(IMAGES), [leaf(w) for w in WEIGHTS]
    y = chain(x, ws, mark)
    flags = dict(clear_no_need_grad=True), dict(clear_buffer=True)
    planned = nn.memory.plan(y, clear_no_need_grad=True, backward_clear_buffer=True).peak
    values, peak = step(y, [x, *ws], *flags)
    everything, most = kept()
    same(values, everything)
    assert peak < 0.75 * most
    used = nn.memory.stats().live + peak - sum(v.data.data.nbytes for v in [x, *ws])
    assert used > 0
    leaves = sum(v.d.nbytes for v in [x, *ws])
    assert abs(planned - (peak + leaves)) < 0.05 * planned


def test_random_numbers_come_again():
    x = leaf([0.3, -0.2, 0.5])
    a = F.rand(shape=(3,))
    b = x * a
    c = F.sin(b)
    a.recompute = b.recompute = c.recompute = True
    y = F.sum(F.exp(c) * c)
    y.forward(clear_no_need_grad=True)
    x.grad.zero()
    y.backward(clear_buffer=True)
    noise = a.d.copy()  # read: computed again
    h = np.sin(x.d * noise)
    np.testing.assert_allclose(y.d, np.sum(np.exp(h) * h), rtol=1e-5)
    np.testing.assert_allclose(x.g, np.exp(h) * (1 + h) * np.cos(x.d * noise) * noise, rtol=1e-5)


def test_clear_called_as_in_nnabla():
    # Golden: NNabla 1.39, forward(**flags), [h1, h2, h3, h4, y].data.clear_called, h1 and h2 marked.
    golden = {
        "": [True, True, False, False, False],
        "clear_no_need_grad": [True, True, False, False, False],  # NNabla clears h4; what needs a gradient stays here
        "clear_buffer": [True, True, True, True, False],
    }
    for flag, expected in golden.items():
        x = leaf([1.0, 2.0])
        h1 = F.sin(x)
        h2 = F.sin(h1)
        h3 = F.exp(h2)
        h4 = F.sin(h3)
        y = F.sum(h4)
        h1.recompute = h2.recompute = True
        arrays = [v.data for v in (h1, h2, h3, h4, y)]  # asked for afterwards, they would be computed again
        y.forward(**({flag: True} if flag else {}))
        # Ours may drop more: what it can make in registers it need not keep.
        assert all(a.clear_called or not there for a, there in zip(arrays, expected, strict=True)), flag
        assert not arrays[-1].clear_called


def test_persistent_and_root_stay():
    x = leaf([1.0, 2.0])
    h = F.sin(x)
    h.persistent = h.recompute = True
    y = F.exp(h)
    y.recompute = True
    arrays = h.data, y.data
    y.forward(clear_buffer=True)
    assert not arrays[0].clear_called and not arrays[1].clear_called
    np.testing.assert_allclose(y.d, np.exp(np.sin([1.0, 2.0])), rtol=1e-6)


def test_running_statistics_are_updated_once():
    def net(marked):
        x = leaf(IMAGES)
        one, zero = (lambda: leaf(np.ones((1, 6, 1, 1)))), (lambda: leaf(np.zeros((1, 6, 1, 1))))
        mean, var = zero().apply(need_grad=False), one().apply(need_grad=False)
        h = F.batch_normalization(F.sin(x), zero(), one(), mean, var)
        h = F.exp(h * 0.1)
        y = F.sum(F.convolution(h, leaf(WEIGHTS[0])) ** 2)
        if marked:
            h.recompute = h.parent.inputs[0].recompute = True
            h.parent.inputs[0].parent.inputs[0].recompute = True
        return y, x, mean, var

    results = []
    for marked in (False, True):
        y, x, mean, var = net(marked)
        values, _ = step(y, [x], dict(clear_no_need_grad=True), dict(clear_buffer=True))
        results.append([*values, mean.d.copy(), var.d.copy()])
    same(*results)


def test_marks_are_set_and_nest():
    x = leaf([1.0])
    with nn.recompute():
        a = F.sin(x)
        with nn.recompute(False):
            b = F.sin(a)
        c = F.sin(b)

    @nn.recompute_fn()
    def marked(v):
        return F.sin(F.cos(v))

    d = marked(x)
    assert [v.recompute for v in (a, b, c, d, d.parent.inputs[0], F.sin(x))] == [True, False, True, True, True, False]
    nn.set_global_recompute(True)
    try:
        assert nn.get_global_recompute() and F.sin(x).recompute
    finally:
        nn.set_global_recompute(False)


@pytest.mark.host
def test_an_error_while_computing_again_leaves_the_graph_usable():
    x, ws = leaf(IMAGES), [leaf(w) for w in WEIGHTS]
    y = chain(x, ws, lambda h, i: setattr(h, "recompute", True))
    y.forward(clear_no_need_grad=True)
    limit = nn.memory.stats().live + 50_000
    nn.memory.clear_cache()
    nn.memory.set_limit(limit)
    try:
        with pytest.raises(MemoryError):
            y.backward(clear_buffer=True)
    finally:
        nn.memory.set_limit(None)
    same(step(y, [x, *ws], dict(clear_no_need_grad=True), dict(clear_buffer=True))[0], kept(2)[0])


# forget


def deep(h, w):
    for i in range(6):
        h = block(h, w, i)
    return h


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_forget_changes_no_bit_and_keeps_nothing(dynamic):
    results, held = [], []
    for forgetting in (False, True):
        x, w = leaf(IMAGES), leaf(WEIGHTS[0])
        before = nn.memory.stats().live
        with nn.auto_forward(dynamic):
            h = F.forget(deep, x, w) if forgetting else deep(x, w)
            y = F.sum(h**2)
        if not dynamic:
            y.forward(clear_no_need_grad=True)
        held.append(nn.memory.stats().live - before)
        x.grad.zero()
        w.grad.zero()
        y.backward(clear_buffer=True)
        results.append([y.d.copy(), x.g.copy(), w.g.copy()])
    same(*results)
    assert held[1] < 0.5 * held[0]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_forget_passes_everything_through(dynamic):
    captured = leaf([2.0, 3.0])

    def func(a, factor, b=None, negative=False):
        h = F.exp(F.sin(a) * captured) * factor
        return (-h if negative else h), h + b

    x = leaf([0.1, 0.2])
    array = np.array([5.0, 6.0], "float32")
    with nn.auto_forward(dynamic):
        u, v = F.forget(func, x, 3, b=array, negative=True)
        y = F.sum(u * v)
    if not dynamic:
        y.forward()
    for p in (x, captured):
        p.grad.zero()
    y.backward()
    h = 3 * np.exp(np.sin(x.d) * captured.d)
    np.testing.assert_allclose(y.d, np.sum(-h * (h + array)), rtol=1e-5)
    slope = -(2 * h + array) * h
    np.testing.assert_allclose(x.g, slope * np.cos(x.d) * captured.d, rtol=1e-5)
    np.testing.assert_allclose(captured.g, slope * np.sin(x.d), rtol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_forget_nests_and_differentiates_twice(dynamic):
    def inner(v):
        return F.sin(F.exp(v))

    def outer(v):
        return F.forget(inner, F.sin(v)) * v

    x = leaf([0.3, -0.4])
    with nn.auto_forward(dynamic):
        y = F.sum(F.forget(outer, x))
        (g,) = nn.grad([y], [x])
        z = F.sum(g * g)
    if not dynamic:
        z.forward()
    x.grad.zero()
    z.backward()

    def f(v):
        return np.sin(np.exp(np.sin(v))) * v

    v, h = x.d.astype("float64"), 1e-4
    d1 = (f(v + h) - f(v - h)) / (2 * h)
    d2 = (f(v + h) - 2 * f(v) + f(v - h)) / h**2
    np.testing.assert_allclose(g.d, d1, rtol=1e-4)
    np.testing.assert_allclose(x.g, 2 * d1 * d2, rtol=1e-3)


def test_forget_of_an_input_or_of_nothing_sensible():
    x = leaf([1.0])
    assert F.forget(lambda v: v, x) is x or F.forget(lambda v: v, x) == x
    with pytest.raises(TypeError, match="forget"):
        F.forget(3, x)
    with pytest.raises(TypeError, match="forget"):
        F.forget(lambda v: 3, x)


def test_what_was_dropped_can_be_read_in_dynamic_mode():
    x = leaf([0.5, 1.0])
    with nn.auto_forward(), nn.recompute():
        y = F.exp(F.sin(x))
    middle = y.parent.inputs[0]
    np.testing.assert_allclose(middle.d, np.sin(x.d), rtol=1e-6)
    np.testing.assert_allclose(y.d, np.exp(np.sin(x.d)), rtol=1e-6)


# fit


def conv_net(depth=12):
    nn.clear_parameters()
    x = Variable.from_numpy_array(IMAGES)
    h = x
    for i in range(depth):
        with nn.parameter_scope(str(i)):
            h = F.relu(PF.batch_normalization(PF.convolution(h, 6, (3, 3), pad=(1, 1), with_bias=False)))
    return F.mean(h * h)


def train(y):
    values = [v for _, v in sorted(nn.get_parameters().items())]
    results, _ = step(y, values, dict(clear_no_need_grad=True), dict(clear_buffer=True))
    statistics = [v.d.copy() for _, v in sorted(nn.get_parameters(grad_only=False).items())]
    return [*results, *statistics]


@pytest.mark.host
@pytest.mark.parametrize("share", [0.85, 0.6, 0.45])
def test_fit_keeps_its_word_and_changes_no_bit(share):
    flags = dict(clear_no_need_grad=True, backward_clear_buffer=True)
    nn.seed(3)
    expected = train(conv_net())
    nn.seed(3)
    y = conv_net()
    before = nn.memory.plan(y, **flags).peak
    budget = int(before * share)
    fit = nn.memory.fit(y, budget, **flags)
    assert fit.peak <= budget and fit.peak == nn.memory.plan(y, **flags).peak
    assert fit.chosen and 0 < fit.extra < 1
    assert "computed again" in str(fit) and "MiB" in str(fit) or "KiB" in str(fit)
    live = nn.memory.stats().live
    nn.memory.reset_peak()
    same(train(y), expected)
    leaves = nn.memory.plan(y, **flags).leaves
    assert nn.memory.stats().peak - live <= fit.peak <= nn.memory.stats().peak - live + leaves + 4096
    nn.clear_parameters()


def test_fit_of_what_fits_marks_nothing():
    y = conv_net(3)
    fit = nn.memory.fit(y, 1 << 30)
    assert fit.chosen == [] and fit.extra == 0
    marked = []
    y.visit(lambda f: marked.extend(v.recompute for v in f.outputs))
    assert not any(marked)
    nn.clear_parameters()


def test_fit_of_the_impossible_names_the_least_and_marks_nothing():
    y = conv_net(6)
    with pytest.raises(ValueError, match="memory.fit.*budget.*at least") as info:
        nn.memory.fit(y, 1000)
    marked = []
    y.visit(lambda f: marked.extend(v.recompute for v in f.outputs))
    assert not any(marked)
    least = int(re.search(r"at least (\d+) bytes", str(info.value))[1])
    assert nn.memory.fit(y, least).peak <= least
    nn.clear_parameters()


def test_fit_needs_a_graph():
    with pytest.raises(RuntimeError, match="no parent"):
        nn.memory.fit(Variable((2,)), 1000)


def test_what_was_dropped_and_has_lost_its_history_is_an_error():
    x = leaf(np.ones((2, 2)))
    with nn.auto_forward():
        with nn.recompute():
            h = F.affine(x, x)
        h.backward(1, clear_buffer=True)
        k = F.affine(h, h)
        (k + k).backward(1, clear_buffer=True)
    h.parent = None
    with pytest.raises(nn.Error, match="was not kept, and the graph that could compute it again is gone"):
        _ = h.d


def test_what_was_looked_at_has_not_changed():
    """A view of a leaf that was not written, gone before the next run, keeps nothing from being computed again."""
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    h = F.sin(x * x)
    y, z = F.sum(F.exp(h)), F.sum(x * w)
    y.forward(clear_no_need_grad=True, clear_buffer=True)
    view = x.d
    del view
    z.forward()
    np.testing.assert_allclose(h.d, np.sin([1.0, 4.0]), rtol=1e-6)
    y.forward(clear_buffer=True)
    x.d[0] = 2
    z.forward()
    with pytest.raises(nn.Error, match="has changed since forward"):
        _ = h.d


@pytest.mark.parametrize("hooked", [False, True])
@pytest.mark.parametrize("clear", [False, True])
def test_a_gradient_that_takes_the_memory_of_what_is_made_again(hooked, clear):
    """The held variable is without data then, and says so; it was 0."""
    x = leaf([0.5, -0.25])
    x.g = 0
    with nn.recompute():
        h = F.mul2(x, x)
    y = F.maximum2(h, h)
    y.forward(**({"function_post_hook": lambda f: None} if hooked else {}))
    y.backward(1, clear_buffer=clear)
    close(x.g, 2 * x.d)
    close(h.d, x.d**2)
    y.forward(**({"function_post_hook": lambda f: None} if hooked else {}))
    y.backward(1, clear_buffer=clear)
    h.parent = None
    try:
        close(h.d, x.d**2)
    except nn.Error as e:
        assert "not kept" in str(e)


def test_a_gradient_that_takes_the_memory_of_a_held_value():
    x = leaf([[0.5, -0.25]])
    x.g = 0
    h = F.transpose(x, (0, 1))
    y = F.cos(h)
    y.forward(clear_buffer=True)
    y.backward(1)
    close(x.g, -np.sin(x.d))
    a = h.data
    close(a.data, x.d)
