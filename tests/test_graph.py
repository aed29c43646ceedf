"""Graphs: forward, backward, need_grad, clear flags, hooks, modes.

Every test runs with fusion on and off; expected values are NumPy formulas; orders and flags were asked of NNabla 1.39.
"""

from __future__ import annotations

import gc
import itertools
import traceback

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import NdArray, Variable


@pytest.fixture(autouse=True, params=[True, False], ids=["fused", "single"])
def fusion(request):
    old = nn.set_fusion(request.param)
    yield request.param
    nn.set_fusion(old)


def leaf(values, need_grad=True) -> Variable:
    return Variable.from_numpy_array(np.array(values, "float32"), need_grad=need_grad)


def names(record):
    return lambda f: record.append(f.name)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


X = np.array([0.5, -1.0, 2.0], "float32")


# Forward and backward


def test_forward_and_backward_of_a_small_network():
    rng = np.random.default_rng(0)
    xv, wv, bv = rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), rng.normal(size=5)
    x, w, b = leaf(xv, False), leaf(wv), leaf(bv)
    y = F.mean(F.tanh(F.affine(x, w, b)) ** 2) if hasattr(F, "mean") else F.sum(F.tanh(F.affine(x, w, b)) ** 2) * 0.05
    y.forward()
    t = np.tanh(xv @ wv + bv)
    close(y.d, np.mean(t**2))
    y.backward()
    gt = 2 * t * (1 - t**2) / 20
    close(w.g, xv.T @ gt)
    close(b.g, gt.sum(0))
    close(x.g, np.zeros((4, 3)))


def test_nothing_runs_before_forward():
    y = F.exp(leaf(X))
    assert np.array_equal(y.d, np.zeros(3))
    y.forward()
    close(y.d, np.exp(X))


def test_new_data_is_seen_by_the_next_run():
    x = leaf(X)
    y = F.sin(F.exp(x)) + x
    for k in range(3):
        x.d = X * k
        y.forward()
        close(y.d, np.sin(np.exp(X * k)) + X * k)
        x.g = 0
        y.backward()
        close(x.g, np.cos(np.exp(X * k)) * np.exp(X * k) + 1)


def test_shared_parts_run_once():
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h) + F.cos(h) * h + h
    forward, backward = [], []
    y.forward(function_pre_hook=names(forward))
    assert sorted(forward) == ["Add2", "Add2", "Cos", "Mul2", "Sin", "Tanh"]
    y.backward(function_pre_hook=names(backward))
    assert sorted(backward) == sorted(forward)
    t = np.tanh(X)
    close(y.d, np.sin(t) + np.cos(t) * t + t)
    close(x.g, (np.cos(t) - np.sin(t) * t + np.cos(t) + 1) * (1 - t**2))


def test_a_ladder_of_shared_nodes_is_not_exponential():
    x = y = leaf([1.0])
    for _ in range(60):
        y = y * 0.5 + y * 0.5
    y.forward()
    y.backward()
    assert y.d[0] == 1.0 and x.g[0] == 1.0


def test_functions_run_after_what_they_read_and_before_it_backwards():
    x = leaf(X)
    a, b = F.tanh(x), F.sin(x)
    c = F.exp(b)
    y = a * c + b
    order = []
    y.forward(function_pre_hook=lambda f: order.append((f.name, f.rank)))
    assert [r for _, r in order] == sorted(r for _, r in order) and len(order) == 5
    back = []
    y.backward(function_pre_hook=lambda f: back.append((f.name, f.rank)))
    assert [r for _, r in back] == sorted((r for _, r in back), reverse=True) and len(back) == 5
    assert y.parent.rank == 3 and (x.rank, a.rank, y.rank) == (0, 1, 4)


def test_a_variable_read_twice_by_one_function():
    x = leaf(X)
    y = x * x
    y.forward()
    y.backward()
    close(x.g, 2 * X)


def test_backward_from_the_middle_of_a_graph():
    x = leaf(X)
    h = F.sin(x)
    y = F.cos(h)
    y.forward()
    h.backward()
    close(x.g, np.cos(X))


def test_several_outputs():
    x = leaf(np.arange(6).reshape(2, 3))
    if not hasattr(F, "split"):
        pytest.skip("F.split is not there yet")
    a, b = F.split(x, axis=0)
    y = F.sum(a * b)
    y.forward()
    y.backward()
    assert y.d == 0 * 3 + 1 * 4 + 2 * 5 and np.array_equal(x.g, [[3, 4, 5], [0, 1, 2]])


def test_run_without_parent_says_so():
    x = leaf(X)
    for run in (x.forward, x.backward):
        with pytest.raises(RuntimeError, match="parent"):
            run()


def test_unknown_keyword():
    y = F.tanh(leaf(X))
    with pytest.raises(TypeError, match="clear"):
        y.forward(clear=True)


# Gradients


def test_gradients_of_leaves_add_up_until_they_are_zeroed():
    x = leaf(X)
    x.g = 7
    y = F.sin(x) * 2
    y.forward()
    y.backward()
    close(x.g, 7 + 2 * np.cos(X))
    y.backward()
    close(x.g, 7 + 4 * np.cos(X))
    x.grad.zero()
    y.backward()
    close(x.g, 2 * np.cos(X))


def test_gradients_of_intermediates_start_anew_with_each_backward():
    x = leaf(X)
    h = F.tanh(x)
    y = h * 2 + h * 3
    y.forward()
    h.g = 100
    for k in (1, 2):
        y.backward()
        assert np.array_equal(h.g, [5, 5, 5])
        close(x.g, k * 5 * (1 - np.tanh(X) ** 2))


def test_gradients_of_many_consumers_add_up():
    x = leaf(X)
    y = F.add_n(*[F.sin(x * k) for k in range(1, 9)])
    y.forward()
    y.backward()
    close(x.g, sum(k * np.cos(X * k) for k in range(1, 9)))


@pytest.mark.parametrize(
    "grad, factor",
    [(2, 2), (2.5, 2.5), (np.float32(0.5), 0.5), (np.array([1, 2, 3.0]), [1, 2, 3]), (0, 0), (-1.0, -1)],
)
def test_the_gradient_to_start_with(grad, factor):
    x = leaf(X)
    y = F.sin(x) * 1
    y.forward()
    y.g = 5
    y.backward(grad=grad)
    close(x.g, np.cos(X) * factor)
    assert np.array_equal(y.g, [5, 5, 5]), "the variable's own gradient is not touched"


def test_start_with_an_ndarray_or_with_the_own_gradient():
    x = leaf(X)
    y = F.sin(x)
    y.forward()
    y.backward(grad=NdArray.from_numpy_array(np.array([1, 2, 3])))
    close(x.g, np.cos(X) * [1, 2, 3])
    x.g = 0
    y.g = [3, 2, 1]
    y.backward(grad=None)
    close(x.g, np.cos(X) * [3, 2, 1])
    y.backward(None)
    close(x.g, np.cos(X) * [6, 4, 2])


@pytest.mark.parametrize(
    "grad", [np.ones(2), np.ones(1), np.ones((3, 1)), NdArray((2,)), np.array(0.5), "a", object(), [1, 2]]
)
def test_a_gradient_that_does_not_fit(grad):
    x = leaf(X)
    y = F.sin(x)
    y.forward()
    with pytest.raises((ValueError, TypeError), match="grad") as e:
        y.backward(grad=grad)
    assert isinstance(e.value, nn.Error) and np.array_equal(x.g, [0, 0, 0])


def test_need_grad_is_inherited_when_a_function_is_made():
    x = leaf(X, False)
    y = F.tanh(x)
    assert (x.need_grad, y.need_grad) == (False, False)
    x.need_grad = True
    z = F.tanh(x)
    assert z.need_grad and F.sin(z).need_grad
    z.need_grad = False
    assert not z.need_grad and not F.sin(z).need_grad


def test_no_gradient_flows_without_need_grad():
    x, w = leaf(X, False), leaf(X)
    y = F.sin(x) * w
    y.forward()
    y.backward()
    assert np.array_equal(x.g, [0, 0, 0])
    close(w.g, np.sin(X))
    back = []
    y.backward(function_pre_hook=names(back))
    assert back == ["Mul2"]


def test_an_intermediate_without_need_grad_stops_the_gradient():
    x, w = leaf(X), leaf(X)
    h = F.tanh(x)
    y = F.sin(h) * w
    h.need_grad = False
    y.forward()
    y.backward()
    assert np.array_equal(x.g, [0, 0, 0])
    close(w.g, np.sin(np.tanh(X)))
    h.need_grad = None
    y.forward()
    y.backward()
    close(x.g, X * np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2))


def test_need_grad_set_after_the_graph_was_made():
    x = leaf(X, False)
    y = F.sin(F.tanh(x))
    y.forward()
    y.backward()
    assert np.array_equal(x.g, [0, 0, 0])
    x.need_grad = True
    y.forward()
    y.backward()
    expected = np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2)
    close(x.g, expected)
    x.need_grad = False
    y.forward()
    y.backward()
    close(x.g, expected)


def test_need_grad_in_the_middle():
    x = leaf(X, False)
    h = F.tanh(x)
    h.need_grad = True
    y = F.sin(h)
    assert y.need_grad
    y.forward()
    y.backward()
    close(h.g, np.cos(np.tanh(X)))
    assert np.array_equal(x.g, [0, 0, 0])


def test_gradients_as_graphs_of_any_order():
    x = leaf(X)
    y = F.sin(x) * x
    (g,) = nn.grad(y, [x])
    (h,) = nn.grad(g, [x])
    nn.forward_all([y, g, h])
    close(g.d, np.cos(X) * X + np.sin(X))
    close(h.d, 2 * np.cos(X) - np.sin(X) * X)


# Clear flags and persistence

FLAGS = [
    dict(zip(("clear_buffer", "clear_no_need_grad"), v, strict=True))
    for v in itertools.product((False, True), repeat=2)
]


def chain(x):
    a = F.tanh(x)
    b = F.sin(a)
    c = F.add_scalar(b, 1)
    return [x, a, b, c, F.cos(c)]


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("clear_backward", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_clear_flags_change_no_value(flags, clear_backward, held):
    if flags["clear_buffer"]:
        return  # NNabla needs the data that this flag drops for backward
    x, w = leaf(X), leaf([2.0, 1.0, 0.5])
    vs = chain(x * w)
    y = vs[-1] * w
    if not held:
        del vs
    for k in range(1, 4):
        y.forward(**flags)
        p = X * w.d
        s = np.sin(np.tanh(p)) + 1
        close(y.d, np.cos(s) * w.d)
        y.backward(clear_buffer=clear_backward)
        inner = -np.sin(s) * np.cos(np.tanh(p)) * (1 - np.tanh(p) ** 2) * w.d
        close(x.g, k * inner * w.d)
        close(w.g, k * (np.cos(s) + inner * X))
    assert np.array_equal(x.d, X) and np.array_equal(w.d, [2.0, 1.0, 0.5]), "leaves keep their data"


@pytest.mark.parametrize(
    "flags, cleared",
    [
        ({}, [0, 0, 0, 0, 0]),
        ({"clear_buffer": True}, [0, 1, 1, 1, 0]),
        ({"clear_no_need_grad": True}, [0, 0, 1, 0, 0]),
        ({"clear_buffer": True, "clear_no_need_grad": True}, [0, 1, 1, 1, 0]),
    ],
    ids=str,
)
def test_what_the_flags_clear(flags, cleared, fusion):
    """NNabla's answers; tanh needs its output in backward, sin and cos their input, add_scalar nothing.

    Fused runs compute intermediates again in backward, so they may drop more where the user allows it; and say so.
    """
    vs = chain(leaf(X))
    data = [v.data for v in vs]
    vs[-1].forward(**flags)
    if fusion and flags:
        cleared = [c or a.clear_called and 0 < i < 4 for i, (c, a) in enumerate(zip(cleared, data, strict=True))]
    assert [a.clear_called for a in data] == [bool(c) for c in cleared]


def test_what_backward_with_clear_buffer_clears():
    vs = chain(leaf(X))
    arrays = [v.data for v in vs], [v.grad for v in vs]
    vs[-1].forward(clear_no_need_grad=True)
    vs[-1].backward(clear_buffer=True)
    for kind in arrays:
        assert [a.clear_called for a in kind] == [False, True, True, True, False]


def test_clear_buffer_frees_memory_while_it_runs():
    n = 250_000
    x = leaf(np.ones(n), False)
    y = x
    for _ in range(10):
        y = F.sum(F.broadcast(F.reshape(y, (1, n)), (2, n)), axis=0) * 0.5  # not fusable
    before = nn.memory.stats().live
    nn.memory.reset_peak()
    y.forward(clear_buffer=True)
    assert nn.memory.stats().live - before <= 4 * n + 4096
    assert nn.memory.stats().peak - before <= 4 * n * 4 + 4096
    assert np.all(y.d == 1)


def test_persistent_variables_keep_data_and_gradient():
    vs = chain(leaf(X))
    vs[2].persistent = True
    b = vs[2].data
    vs[-1].forward(clear_no_need_grad=True)
    vs[-1].backward(clear_buffer=True)
    assert not b.clear_called
    close(b.data, np.sin(np.tanh(X)))
    close(vs[2].g, -np.sin(np.sin(np.tanh(X)) + 1))


def test_a_variable_of_two_consumers_outlives_the_first():
    x = leaf(X)
    h = F.tanh(x)
    y, z = F.sin(h), F.cos(h)
    nn.forward_all([y, z], clear_buffer=True)
    close(y.d, np.sin(np.tanh(X)))
    close(z.d, np.cos(np.tanh(X)))


def test_a_part_of_a_larger_graph_run_with_clear_buffer_leaves_the_rest_usable():
    x = leaf(X)
    h = F.tanh(x)
    y, z = F.sin(h), F.cos(h)
    y.forward(clear_buffer=True)
    z.forward()
    close(z.d, np.cos(np.tanh(X)))
    z.backward()
    close(x.g, -np.sin(np.tanh(X)) * (1 - np.tanh(X) ** 2))


# Hooks


def test_order_of_hooks():
    x = leaf(X)
    y = F.sin(F.tanh(x))
    record = []

    def note(what):
        return lambda f: record.append(f"{what} {f.name}")

    own = {"function_pre_hook": note("pre"), "function_post_hook": note("post")}
    nn.set_function_pre_hook("a", note("global pre"))
    nn.set_function_post_hook("a", note("global post"))
    try:
        y.forward(**own)
        each = ["global pre", "pre", "post", "global post"]
        assert record == [f"{w} {n}" for n in ("Tanh", "Sin") for w in each]
        record.clear()
        y.backward(**own)
        assert record == [f"{w} {n}" for n in ("Sin", "Tanh") for w in each]
        record.clear()
        nn.forward_all([y], **own)
        assert record == [f"{w} {n}" for n in ("Tanh", "Sin") for w in each]
        record.clear()
        with nn.auto_forward():
            F.sin(x)
        F.sin(x.data)
        assert record == [], "NNabla calls no hooks for functions that run at once"
    finally:
        nn.unset_function_pre_hook("a")
        nn.unset_function_post_hook("a")
    y.forward()
    assert record == []
    nn.unset_function_pre_hook("never set")


def test_a_global_hook_replaces_the_one_of_its_name():
    y = F.sin(leaf(X))
    first, second = [], []
    nn.set_function_pre_hook("k", first.append)
    nn.set_function_pre_hook("k", second.append)
    try:
        y.forward()
    finally:
        nn.unset_function_pre_hook("k")
    assert (len(first), len(second)) == (0, 1)
    first.clear(), second.clear()


def test_hooks_see_the_true_data():
    x = leaf(X)
    y = F.cos(F.sin(F.tanh(x)))
    seen = {}

    def post(f):
        seen[f.name] = (f.inputs[0].d.copy(), f.outputs[0].d.copy())

    y.forward(function_post_hook=post)
    t = np.tanh(X)
    for name, before, after in (("Tanh", X, t), ("Sin", t, np.sin(t)), ("Cos", np.sin(t), np.cos(np.sin(t)))):
        close(seen[name][0], before)
        close(seen[name][1], after)


def test_hooks_see_the_true_gradients():
    x = leaf(X)
    y = F.cos(F.sin(F.tanh(x)))
    y.forward()
    seen = {}
    y.backward(function_post_hook=lambda f: seen.setdefault(f.name, f.inputs[0].g.copy()))
    t = np.tanh(X)
    close(seen["Cos"], -np.sin(np.sin(t)))
    close(seen["Sin"], -np.sin(np.sin(t)) * np.cos(t))
    close(seen["Tanh"], -np.sin(np.sin(t)) * np.cos(t) * (1 - t**2))
    assert np.array_equal(seen["Tanh"], x.g)


def test_what_a_hook_writes_into_an_output_is_what_the_next_function_reads():
    x = leaf(X)
    y = F.sin(F.tanh(x))

    def double(f):
        if f.name == "Tanh":
            f.outputs[0].d *= 2

    y.forward(function_post_hook=double)
    close(y.d, np.sin(2 * np.tanh(X)))


class Boom(Exception):
    pass


def boom(f):
    raise Boom(f.name)


@pytest.mark.parametrize("when", ["function_pre_hook", "function_post_hook"])
@pytest.mark.parametrize("where", ["forward", "backward", "forward_all", "visit", "visit_check", "global"])
def test_an_exception_of_a_hook_passes_through_and_the_graph_stays_usable(when, where):
    x = leaf(X)
    y = F.sin(F.tanh(x)) + x
    y.forward()

    def run():
        if where == "forward_all":
            nn.forward_all([y], **{when: boom})
        elif where in ("visit", "visit_check"):
            getattr(y, where)(boom)
        elif where == "global":
            getattr(nn, "set_" + when)("k", boom)
            y.forward()
        else:
            getattr(y, where)(**{when: boom})

    try:
        with pytest.raises(Boom) as e:
            run()
    finally:
        getattr(nn, "unset_" + when)("k")
    assert traceback.extract_tb(e.value.__traceback__)[-1].name == "boom"
    x.g = 0
    y.forward()
    y.backward()
    close(y.d, np.sin(np.tanh(X)) + X)
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2) + 1)


def test_hooks_with_bad_types():
    y = F.tanh(leaf(X))
    with pytest.raises(TypeError):
        y.forward(function_pre_hook=3)
    with pytest.raises(TypeError):
        y.forward(function_pre_hook=lambda: None)
    y.forward(function_pre_hook=None)
    close(y.d, np.tanh(X))


def test_a_hook_may_change_the_graph():
    x = leaf(X)
    y = F.sin(F.tanh(x))
    extra = []

    def grow(f):
        extra.append(F.exp(f.outputs[0]))
        f.outputs[0].need_grad = True

    y.forward(function_post_hook=grow)
    close(y.d, np.sin(np.tanh(X)))
    nn.forward_all(extra)
    close(extra[1].d, np.exp(np.sin(np.tanh(X))))


# Functions as hooks and visitors see them


def test_function_objects():
    x = leaf(X)
    y = F.leaky_relu(x, 0.25)
    f = y.parent
    assert f.name == "LeakyReLU" and f.arguments == {"alpha": 0.25, "inplace": False} == f.args
    assert f.inputs == [x] and f.outputs == [y] and f.inputs[0].parent is None
    assert f == y.parent and hash(f) == hash(y.parent) and f != F.leaky_relu(x).parent
    assert [g.name for g in x.function_references] == ["LeakyReLU"] and y.function_references == []


def test_function_references_are_the_functions_that_are_alive():
    x = leaf(X)
    a, b = F.sin(x), F.cos(x)
    assert {f.name for f in x.function_references} == {"Sin", "Cos"}
    del a
    gc.collect()
    assert [f.name for f in x.function_references] == ["Cos"]
    assert b.parent in x.function_references


def test_visit_goes_from_inputs_to_outputs_once():
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h) + F.cos(h)
    seen = []
    y.visit(names(seen))
    assert seen[0] == "Tanh" and seen[-1] == "Add2" and sorted(seen) == ["Add2", "Cos", "Sin", "Tanh"]
    x.visit(boom)  # nothing to visit


def test_visit_check_stops_at_the_first_hit():
    h = F.tanh(leaf(X))
    y = F.sin(h) + F.cos(h)
    seen = []

    def check(f):
        seen.append(f.name)
        return f.name == "Tanh"

    assert y.visit_check(check) is True and seen == ["Tanh"]
    assert y.visit_check(lambda f: False) is False


# Modes


def test_auto_forward_computes_at_once():
    with nn.auto_forward():
        assert nn.get_auto_forward()
        x = leaf(X)
        y = F.sin(F.tanh(x)) * x
        close(y.d, np.sin(np.tanh(X)) * X)
        y.backward()
    assert not nn.get_auto_forward()
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2) * X + np.sin(np.tanh(X)))
    nn.set_auto_forward(True)
    try:
        close(F.exp(x).d, np.exp(X))
    finally:
        nn.set_auto_forward(False)


def test_auto_forward_is_left_when_the_block_raises():
    with pytest.raises(Boom), nn.auto_forward():
        raise Boom
    assert not nn.get_auto_forward()


def test_a_dynamic_graph_can_run_again():
    x = leaf(X)
    with nn.auto_forward():
        y = F.exp(F.sin(x))
    x.d = X * 2
    y.forward()
    close(y.d, np.exp(np.sin(X * 2)))


def test_dynamic_nodes_are_freed_at_once():
    functions, variables = nn._core.live_nodes()
    x = leaf(X)
    with nn.auto_forward():
        for _ in range(100):
            y = F.sin(x)
    assert nn._core.live_nodes() == (functions + 1, variables + 2)
    del y


def test_no_grad_keeps_no_history():
    x = leaf(X)
    with nn.auto_forward(), nn.no_grad():
        y = F.sin(F.tanh(x))
        assert y.parent is None and not y.need_grad
        close(y.d, np.sin(np.tanh(X)))
    with nn.auto_forward():
        assert F.sin(x).parent is not None


# Several variables at once, and other faces of a variable


def test_forward_all_runs_shared_parts_once():
    x = leaf(X)
    h = F.tanh(x)
    ys = [F.sin(h), F.cos(h), F.exp(h), h]
    record = []
    nn.forward_all(ys, function_pre_hook=names(record))
    assert sorted(record) == ["Cos", "Exp", "Sin", "Tanh"]
    for y, f in zip(ys, (np.sin, np.cos, np.exp, np.copy), strict=True):
        close(y.d, f(np.tanh(X)))
    nn.forward_all([])
    with pytest.raises(TypeError):
        nn.forward_all([1])
    nn.forward_all([ys[0], ys[0]])
    ys[1].backward()
    close(x.g, -np.sin(np.tanh(X)) * (1 - np.tanh(X) ** 2))


def test_unlinked_variables_share_arrays_and_identity():
    x = leaf(X)
    y = F.tanh(x)
    u = y.get_unlinked_variable()
    assert u == y and u is not y and hash(u) == hash(y) and len({u, y}) == 1 and u != x
    assert u.parent is None and u.need_grad
    assert [y.get_unlinked_variable(need_grad=k).need_grad for k in (None, True, False)] == [True, True, False]
    y.forward()
    close(u.d, np.tanh(X))
    assert np.shares_memory(u.d, y.d)
    u.d[0] = 7
    assert y.d[0] == 7
    u.g = 3
    assert np.array_equal(y.g, [3, 3, 3])


def test_an_unlinked_variable_cuts_the_gradient():
    x = leaf(X)
    h = F.tanh(x)
    u = h.get_unlinked_variable()
    y = F.sin(u)
    h.forward()
    y.forward()
    close(y.d, np.sin(np.tanh(X)))
    y.backward()
    close(u.g, np.cos(np.tanh(X)))
    assert np.array_equal(x.g, [0, 0, 0])
    h.backward(grad=None)
    close(x.g, np.cos(np.tanh(X)) * (1 - np.tanh(X) ** 2))


def test_reshape():
    x = leaf(np.arange(6))
    y = x.reshape((2, 3))
    assert y.parent.name == "Reshape" and y.shape == (2, 3) and x.reshape((-1, 2)).shape == (3, 2)
    z = F.sum(y * leaf([[1], [2]], False))
    z.forward()
    z.backward()
    assert z.d == 3 + 24 and np.array_equal(x.g, [1, 1, 1, 2, 2, 2])
    u = x.reshape((3, 2), unlink=True)
    assert u.parent is None and u.need_grad and np.shares_memory(u.d, x.d) and np.shares_memory(u.g, x.g)


def test_variables_compare_and_behave_in_collections():
    x, y = leaf(X), leaf(X)
    assert x == x and x != y and x not in [y] and bool(x)
    assert repr(x).startswith("<Variable((3,), need_grad=True) at 0x")
    assert x.name == "" and x.apply(name="w", persistent=True) is x and (x.name, x.persistent) == ("w", True)


def test_graphs_are_freed_with_their_last_variable():
    functions, variables = nn._core.live_nodes()
    x = leaf(X)
    y = F.sin(F.tanh(x)) + F.cos(x)
    y.forward()
    y.backward()
    f = y.parent
    assert nn._core.live_nodes() == (functions + 4, variables + 5)
    del y
    f2 = f.inputs[0]
    assert nn._core.live_nodes()[0] == functions + 4, "a function keeps what it reads"
    del f, f2
    assert nn._core.live_nodes() == (functions, variables + 1)
    assert x.function_references == []
