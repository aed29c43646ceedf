"""Variables that share their elements with others: unlinked copies, arrays given to two variables, views.

Expected values are NumPy formulas in NNabla's order: root by root, and depth first where sharing makes it show (asked
of NNabla 1.39). Every test runs with fusion on and off.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
import nnrs.ext_utils
import nnrs.functions as F
import nnrs.solvers
from graph_helpers import close, leaf

pytestmark = pytest.mark.usefixtures("fusion")

STEPS = [np.array([1, 2], "float32") * k for k in (1, 2, 3)]


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def gan(function):
    """A loss through a variable and another one through its unlinked copy; the variable itself is dropped."""
    x = nn.Variable((2,), need_grad=True)
    fake = function(x)
    u = fake.unlinked()
    losses = F.sum(F.exp(fake)), F.sum(F.tanh(u))
    del fake
    gc.collect()
    return x, u, losses


CASES = {
    "softmax": (lambda x: F.softmax(F.mul_scalar(x, 2), axis=0), lambda x: softmax(2 * x)),
    "tanh": (lambda x: F.tanh(F.mul_scalar(x, 2)), lambda x: np.tanh(2 * x)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("at_once", [True, False])
def test_an_unlinked_copy_sees_this_steps_data(name, at_once):
    function, formula = CASES[name]
    x, u, (g, d) = gan(function)
    for values in STEPS:
        x.d = values
        if at_once:
            nn.forward_all([g, d])
        else:
            g.forward()
            d.forward()
        fake = formula(values.astype("float64"))
        close(u.d, fake)
        close(g.d, np.exp(fake).sum())
        close(d.d, np.tanh(fake).sum())


def test_forward_all_runs_root_by_root():
    x, _, (g, d) = gan(CASES["tanh"][0])
    seen = []
    for values, before in zip(STEPS, [None, *STEPS], strict=False):
        x.d = values
        nn.forward_all([d, g])
        seen.append(float(d.d))
        if before is not None:
            close(d.d, np.tanh(np.tanh(2 * before.astype("float64"))).sum())
    assert seen[0] == 0, "the copy has no data yet"


def test_order_of_functions_is_root_by_root():
    x = nn.Variable((2,))
    h = F.tanh(x)
    record = []
    roots = [F.exp(F.sin(h)), F.cos(F.abs(x)), F.atan(h)]
    nn.forward_all(roots, function_pre_hook=lambda f: record.append(f.name))
    assert record[-1] == "ATan" and record.index("Exp") < record.index("ATan")
    assert set(record) == {"Tanh", "Sin", "Exp", "Abs", "Cos", "ATan"}


def run(make):
    x = nn.Variable((2,))
    b = F.exp(x * 2)
    u = b.unlinked()
    b.data.fill(7)
    y = make(b, u)
    values = []
    for step in STEPS:
        x.d = step
        y.forward()
        values.append(y.d.copy())
    b_now = [np.exp(2 * s.astype("float64")) for s in STEPS]
    return values, [np.full(2, 7.0), *b_now], b_now


@pytest.mark.parametrize(
    "make,formula",
    [
        (lambda b, u: b + F.identity(u), lambda before, now: now + now),
        (lambda b, u: F.identity(u) + b, lambda before, now: before + now),
        (lambda b, u: F.reshape(u, (2,)) + b, lambda before, now: before + now),
        (lambda b, u: F.tanh(F.tanh(u)) + b, lambda before, now: np.tanh(np.tanh(before)) + now),
        (lambda b, u: F.softmax(u, axis=0) * b, lambda before, now: softmax(before) * now),
        (lambda b, u: F.log(u) - F.log(b), lambda before, now: np.log(before) - np.log(now)),
    ],
)
def test_a_copy_in_the_same_graph_is_read_in_nnablas_order(make, formula):
    values, before, now = run(make)
    for actual, old, new in zip(values, before, now, strict=False):
        np.testing.assert_allclose(actual, formula(old, new), rtol=2e-5, atol=2e-5)


def shared_data(b):
    u = nn.Variable((2,))
    u.data = b.data
    return u


def narrowed(b):
    u = nn.Variable((2,))
    u.data = b.data.narrow(0, 0, 2)
    return u


@pytest.mark.parametrize("share", [shared_data, narrowed, lambda b: b.reshape((1, 2), unlink=True)])
def test_other_ways_to_share(share):
    x = nn.Variable((2,))
    b = F.exp(x)
    u = share(b)
    y, z = F.sum(F.sin(b)), F.sum(F.cos(u))
    del b
    gc.collect()
    for step in STEPS:
        x.d = step
        y.forward()
        z.forward()
        close(u.d.ravel(), np.exp(step))
        np.testing.assert_allclose(z.d, np.cos(np.exp(step.astype("float64"))).sum(), rtol=1e-4, atol=1e-4)


def test_recomputed_data_stays_while_a_copy_has_it():
    with nn.auto_forward(), nn.recompute():
        x = nn.Variable.from_numpy_array(STEPS[0], need_grad=True)
        h = F.exp(x)
        u = h.unlinked()
        y = F.sin(h)
        del h
        gc.collect()
    close(u.d, np.exp(STEPS[0]))
    x.g = 0
    y.backward()
    close(x.g, np.cos(np.exp(STEPS[0])) * np.exp(STEPS[0]))


def test_gradient_of_a_copy_is_the_variables():
    x, u, (g, _) = gan(CASES["tanh"][0])
    x.d = STEPS[0]
    x.g = 0
    g.forward()
    g.backward()
    fake = np.tanh(2 * STEPS[0].astype("float64"))
    close(u.g, np.exp(fake))
    np.testing.assert_allclose(x.g, np.exp(fake) * (1 - fake**2) * 2, rtol=1e-4)


def test_backward_starts_at_a_root_that_needs_no_gradient():
    x = nn.Variable.from_numpy_array(STEPS[0], need_grad=True)
    h = F.tanh(x)
    y = F.sum(h)
    y.need_grad = False
    x.g = 0
    y.forward()
    y.backward()
    close(x.g, 1 - np.tanh(STEPS[0].astype("float64")) ** 2)
    h.need_grad = False
    x.g = 0
    y.forward()
    y.backward()
    close(x.g, [0, 0])


# Outputs of functions that need no copy are values of their own all the same.

VIEWS = {"identity": F.identity, "reshape": lambda v: F.reshape(v, (2,)), "unlink": F.unlink}


def snapshot(function, dynamic, values=(1.0, 2.0), dtype="float32"):
    w = nn.Variable.from_numpy_array(np.array(values, dtype), need_grad=True)
    with nn.auto_forward(dynamic):
        y = function(w)
    if not dynamic:
        y.forward()
    return w, y


def sgd(w):
    solver = nn.solvers.Sgd(1.0)
    solver.set_parameters({"w": w})
    w.g = 1
    solver.update()


WRITERS = {
    "solver": (sgd, [0, 1]),
    "operator": (lambda w: w.data.__iadd__(10), [11, 12]),
    "element": (lambda w: w.d.__setitem__(0, 77), [77, 2]),
    "whole": (lambda w: setattr(w, "d", [5, 6]), [5, 6]),
    "copy_from": (lambda w: w.data.copy_from(nn.NdArray.from_numpy_array(np.float32([5, 6]))), [5, 6]),
    "other type": (lambda w: setattr(w, "d", np.int32([5, 6])), [5, 6]),
    "cast": (lambda w: w.data.cast(np.int8), [1, 2]),
    "fill": (lambda w: w.data.fill(3), [3, 3]),
    "clear": (lambda w: w.data.clear(), [0, 0]),
}
# What a function has made is made again.
CLEARED_OUTPUT = [1, 2]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_an_output_is_a_value_of_its_own(view, writer, dynamic, dtype):
    write, after = WRITERS[writer]
    w, y = snapshot(VIEWS[view], dynamic, dtype=dtype)
    write(w)
    np.testing.assert_array_equal(y.d, [1, 2])
    np.testing.assert_array_equal(w.d, after)
    w, y = snapshot(VIEWS[view], dynamic, dtype=dtype)
    if writer != "solver":
        write(y)
        np.testing.assert_array_equal(w.d, [1, 2])
        np.testing.assert_array_equal(y.d, CLEARED_OUTPUT if writer == "clear" else after)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_taken_before_still_writes_to_its_array(view):
    w = nn.Variable.from_numpy_array(np.float32([1, 2]))
    seen = w.d
    y = VIEWS[view](w)
    y.forward()
    seen[0] = 9
    np.testing.assert_array_equal(w.d, [9, 2])
    np.testing.assert_array_equal(y.d, [1, 2])
    y.forward()
    np.testing.assert_array_equal(y.d, [9, 2])


def test_numpy_views_keep_their_values_when_the_type_changes():
    x = nn.Variable.from_numpy_array(np.float32([1, 2]))
    seen = x.d
    x.d = np.int32([5, 6])
    np.testing.assert_array_equal(seen, np.float32([1, 2]))
    a = nn.NdArray.from_numpy_array(np.array([1.0, 2.0]))
    b = F.identity(a)
    a.data = [5, 6]
    np.testing.assert_array_equal(b.data, [1, 2])


A = np.random.default_rng(3).normal(size=(3, 3)).astype("float32")
IN_PLACE = {
    "log_softmax": (
        lambda x, **k: F.log_softmax(x, axis=1, **k),
        lambda x: x - np.log(np.exp(x).sum(1, keepdims=True)),
    ),
    "softmax": (lambda x, **k: F.softmax(x, axis=0, **k), lambda x: np.exp(x) / np.exp(x).sum(0)),
    "transpose": (lambda x, **k: F.transpose(x, (1, 0), **k), lambda x: x.T),
    "flip": (lambda x, **k: F.flip(x, (0,), **k), lambda x: x[::-1]),
    "pooling": (lambda x, **k: F.max_pooling(x, (3, 1), stride=(1, 1), pad=(1, 0), **k), None),
    "tanh": (F.tanh, np.tanh),
}


@pytest.mark.parametrize("dtype", ["float", "half"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_an_input_as_output(name, dtype):
    function, formula = IN_PLACE[name]
    x = A[None, None] if formula is None else A
    if formula is None:
        padded = np.pad(A, ((1, 1), (0, 0)), constant_values=-np.inf)
        expected = np.max([padded[i : i + 3] for i in range(3)], axis=0)[None, None]
    else:
        expected = formula(x.astype("float64"))
    with nn.context_scope(nn.ext_utils.get_extension_context("cpu", type_config=dtype)):
        a = nn.NdArray.from_numpy_array(x.copy())
        function(a, outputs=[a])
        v = nn.Variable.from_numpy_array(x.copy())
        y = function(v)
        y.data = v.data
        y.forward()
    tolerance = 2e-6 if dtype == "float" else 3e-3
    np.testing.assert_allclose(a.data, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(y.d, expected, rtol=tolerance, atol=tolerance)


def test_two_unlinked_copies_in_one_graph_both_give_their_gradient():
    x = nn.Variable.from_numpy_array(STEPS[0], need_grad=True)
    u, v = x.unlinked(need_grad=True), x.unlinked(need_grad=True)
    y = F.sin((u + x) * v)
    for start in (0, 3):
        x.g = start
        y.forward()
        y.backward()
        t = STEPS[0].astype("float64")
        close(x.g, start + np.cos(2 * t * t) * 4 * t)


@pytest.mark.parametrize("auto", [False, True])
def test_assigning_an_array_to_itself(auto):
    x = leaf([1, 2, 3])
    u, w = x.get_unlinked_variable(), nn.Variable((3,))
    w.data = x.data
    with nn.auto_forward(auto):
        a = F.sin(x)
        for dst, src in ((x, x), (u, x), (w, x), (a, a)):
            y = F.assign(dst, src)
            y.forward()
            close(y.d, np.sin([1, 2, 3]) if src is a else [1, 2, 3])
    close(F.assign(x.data, x.data).data, [1, 2, 3])
    close(x.d, [1, 2, 3])


@pytest.mark.parametrize("persistent", [False, True])
def test_an_array_that_two_functions_write_is_not_another_ones_number_after_a_clear(persistent):
    x = leaf([1, 2])
    h = F.mul2(x, x)
    h.forward()
    b = F.sin(h)
    b.data = h.data
    b.persistent = persistent
    y = F.sum(F.tanh(b)) if persistent else b
    y.forward(clear_no_need_grad=persistent)
    y.backward(clear_buffer=True)
    close(b.d, np.sin([1, 4]))


@pytest.mark.parametrize("need_grad", [True, False])
@pytest.mark.parametrize(
    "follow", [lambda h, w: w + h, lambda h, w: w * h, lambda h, w: F.softmax(h) + w], ids=["add", "mul", "softmax"]
)
def test_a_leaf_in_whose_array_a_function_writes_is_not_cleared(need_grad, follow):
    x = nn.Variable.from_numpy_array([-1.0, 2.0], need_grad=need_grad)
    h = F.abs(x)
    h.data = x.data
    y = follow(h, nn.Variable.from_numpy_array([2.0, 3.0], need_grad=True))
    for _ in range(2):
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)
        assert x.d.tolist() == [1, 2]
