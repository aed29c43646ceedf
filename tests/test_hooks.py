"""Hooks and visitors, and functions as they see them.

Every test runs with fusion on and off; expected values are NumPy formulas; orders were asked of NNabla 1.39.
"""

from __future__ import annotations

import gc
import traceback

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf, names

pytestmark = pytest.mark.usefixtures("fusion")


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


@pytest.mark.parametrize("clear_buffer", [False, True])
def test_hooks_of_backward_see_the_gradients_of_inputs_and_outputs(clear_buffer):
    x = leaf(X)
    y = F.sin(F.exp(F.tanh(F.reshape(x, (3, 1))))) * 2
    seen = {}

    def look(f):
        seen[f.name] = f.outputs[0].g.ravel().copy(), f.inputs[0].g.ravel().copy()

    y.forward()
    y.backward(function_post_hook=look, clear_buffer=clear_buffer)
    t = np.tanh(X.astype("float64"))
    gradients = [np.ones(3), 2 * np.ones(3), 2 * np.cos(np.exp(t))]
    gradients.append(gradients[-1] * np.exp(t))
    gradients.append(gradients[-1] * (1 - t * t))
    for k, name in enumerate(["MulScalar", "Sin", "Exp", "Tanh"]):
        close(seen[name][0], gradients[k])
        close(seen[name][1], gradients[k + 1])
    close(seen["Reshape"][0], gradients[-1])
