"""`rewire_on` and `parent`: who computes a variable then, and what it takes over.

What NNabla says is in golden/rewire.json or, where it is a single answer, in the test; where NNabla gives stale values,
NumPy says what is right. Every test runs with fusion on and off.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf, names, train
from nnrs import NdArray, Variable

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make_rewire  # noqa: E402

ANSWERS = json.loads((GOLDEN / "rewire.json").read_text())
pytestmark = pytest.mark.usefixtures("fusion")


@pytest.mark.parametrize(("case", "answer"), list(zip(make_rewire.cases(), ANSWERS, strict=True)))
def test_need_grad_comes_with_what_is_rewired(case, answer):
    got = make_rewire.run(nn, F, *case)
    close(got["gradients"], answer["gradients"])
    close(got["value"], answer["value"])
    assert got["need_grad"] is answer["need_grad"]


def rewired():
    """x -> exp -> h -> sin -> y, where h was a leaf; and what h was rewired on."""
    x, h = leaf(X), leaf(X * 2, need_grad=False)
    y, var = F.sin(h), F.exp(x)
    h.rewire_on(var)
    return x, h, y, var


def test_what_is_not_taken_over():
    for marked in ("var", "own"):
        h, var = leaf(X), F.exp(leaf(X))
        v = var if marked == "var" else h
        v.persistent, v.recompute, v.name, v.info = True, True, "marked", "words"
        h.rewire_on(var)
        told = [(u.persistent, u.recompute, u.name, u.info) for u in (h, var)]
        assert told[marked == "var"] == (True, True, "marked", "words")
        assert told[marked != "var"][:2] == (False, False) and told[marked != "var"][3] is None


def test_what_was_rewired_on_is_a_leaf_with_the_same_arrays():
    x, h, y, var = rewired()
    assert var.parent is None and var.rank == 0 and h.rank == 1 and h.parent.outputs == [h]
    train(y, x)
    assert np.array_equal(var.d, h.d) and np.array_equal(var.g, h.g)
    close(x.g, np.cos(np.exp(X)) * np.exp(X))
    var.d, var.g = 5, 7
    assert np.array_equal(h.d, [5] * 3) and np.array_equal(h.g, [7] * 3)
    with pytest.raises(RuntimeError, match="no parent"):
        var.forward()
    var.data = NdArray.from_numpy_array(X)  # NNabla: this sets that of h too
    assert np.array_equal(h.d, [5] * 3)


def test_readers_of_both():
    x, h = leaf(X), leaf(X * 2, need_grad=False)
    var = F.exp(x)
    mine, theirs = [F.sin(h), F.cos(h)], F.tanh(var)
    h.rewire_on(var)
    nn.forward_all([*mine, theirs])
    e = np.exp(X)
    for y, expected in zip([*mine, theirs], (np.sin(e), np.cos(e), np.tanh(e)), strict=True):
        close(y.d, expected)
    assert sorted(f.name for f in h.function_references) == ["Cos", "Sin"]
    assert [f.name for f in var.function_references] == ["Tanh"]
    x.d = X / 2
    nn.forward_all(mine)
    theirs.forward()  # reads the array, which h has written
    close(theirs.d, np.tanh(np.exp(X / 2)))
    x.g, var.g = 0, 0
    theirs.backward()
    assert not var.need_grad and np.array_equal(x.g, [0] * 3) and np.array_equal(var.g, [0] * 3)
    var.need_grad = True
    theirs.forward()
    theirs.backward()
    assert np.array_equal(x.g, [0] * 3)
    close(var.g, 1 - np.tanh(np.exp(X / 2)) ** 2)


def test_unlinked_copies_of_what_was_rewired_on():
    var = F.exp(leaf(X))
    h, copy = leaf(X), var.get_unlinked_variable()
    y = F.sin(h)
    h.rewire_on(var)
    y.forward()
    assert copy == var and copy.need_grad and np.array_equal(copy.d, h.d)


def test_rewired_on_an_output_of_several():
    x = leaf(X)
    z = Variable((), need_grad=True)
    parts = F.split(x)
    y = F.sin(z)
    z.rewire_on(parts[1])
    assert z.need_grad and [o == z for o in z.parent.outputs] == [False, True, False]
    train(y, x)
    close(y.d, np.sin(X[1]))
    close(x.g, [0, np.cos(X[1]), 0])
    parts[0].rewire_on(parts[2])
    assert parts[2].parent is None and parts[0].parent.outputs[2] == parts[0]
    parts[0].forward()
    close(parts[0].d, X[2])


def test_rewired_in_a_dynamic_graph():
    with nn.auto_forward():
        x, h = leaf(X), leaf(X, need_grad=False)
        early = F.sin(h)
        h.rewire_on(F.exp(x))
        assert h.need_grad
        close(early.d, np.sin(X))
        y = F.sin(h)
        x.g = 0
        y.backward()
        close(y.d, np.sin(np.exp(X)))
        close(x.g, np.cos(np.exp(X)) * np.exp(X))


def test_what_lost_its_parent_inherits_no_need_grad():
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h)
    h.parent = None
    y.forward()
    y.backward()
    assert not h.need_grad and np.array_equal(h.g, [0] * 3)
    h.need_grad = True
    y.forward()
    y.backward()
    close(h.g, [1] * 3)  # h was never computed: it is a leaf without data


def adopted(need_grad=None):
    """y = exp(x), and a variable that was given its parent."""
    x = leaf(X)
    y = F.exp(x)
    z = Variable((3,), need_grad=need_grad)
    z.d = X * 2
    z.parent = y.parent
    return x, y, z


def test_a_parent_that_is_assigned_stays_with_its_output_too():
    x, y, z = adopted()
    f = y.parent
    assert z.parent == f and z.parent.name == "Exp" and f.outputs == [y] and z != y
    assert z.rank == y.rank == 1 and y.function_references == [] and np.array_equal(z.d, X * 2)
    seen = []
    z.visit(names(seen))
    z.forward(function_pre_hook=names(seen), function_post_hook=names(seen))
    assert seen == ["Exp"] * 3
    close(z.d, np.exp(X))
    close(y.d, np.exp(X))
    x.d = X / 2
    y.forward()
    close(y.d, np.exp(X / 2))
    z.parent = f
    assert z.parent == f


@pytest.mark.parametrize("need_grad", [None, True, False])
def test_gradients_pass_through_an_assigned_parent(need_grad):
    x, y, z = adopted(need_grad)
    w = F.sin(z) + F.cos(y)
    assert z.need_grad is (need_grad is not False)
    train(w, x)
    e = np.exp(X)
    close(w.d, np.sin(e) + np.cos(e))
    close(x.g, ((np.cos(e) if z.need_grad else 0) - np.sin(e)) * e)
    x.g = 0
    z.backward()
    close(x.g, e)
    gradient = nn.grad([z], [x])[0]
    gradient.forward()
    close(gradient.d, e)
    x.g = 0
    y.backward(3)
    close(x.g, 3 * e)


def test_an_assigned_parent_without_its_output():
    x, y, z = adopted()
    f = y.parent
    del y
    z.forward()
    close(z.d, np.exp(X))
    close(f.outputs[0].d, np.exp(X))
    assert z.parent == f and f.outputs[0] != z


def test_an_assigned_parent_of_several_outputs():
    x, z = leaf(X), Variable((), need_grad=True)
    a, b, c = F.split(x)
    z.parent = c.parent
    assert a.parent == b.parent == c.parent == z.parent and z.parent.outputs == [a, b, c]
    train(z, x)
    close(z.d, X[0])
    close(x.g, [1, 0, 0])


def test_a_parent_in_the_place_of_another():
    x = leaf(X)
    y, z = F.exp(x), F.sin(x)
    third = Variable((3,))
    third.parent = old = z.parent
    z.parent = y.parent
    assert old.outputs != [z] and third.parent == old and z.parent == y.parent
    nn.forward_all([third, z])
    close(third.d, np.sin(X))
    close(z.d, np.exp(X))
    close(old.outputs[0].d, np.sin(X))


def test_the_output_goes_another_way():
    """What was given the parent keeps it, whatever becomes of the output."""
    x, y, z = adopted()
    f, new = y.parent, leaf(X)
    new.rewire_on(y)
    assert y.parent is None and z.parent == new.parent == f and f.outputs == [new]
    new.parent = None
    assert z.parent == f and new.parent is None
    z.forward()
    close(z.d, np.exp(X))
    y.parent = f
    assert y.parent == z.parent == f
    top = F.sin(y)
    train(top, x)
    close(top.d, np.sin(np.exp(X)))
    close(x.g, np.cos(np.exp(X)) * np.exp(X))


def test_an_output_on_top_of_its_copy():
    x, y, z = adopted()
    f, top = y.parent, F.sin(z)
    y.rewire_on(top)
    assert y.parent.name == "Sin" and z.parent == f and f.outputs != [y]
    train(y, x)
    close(y.d, np.sin(np.exp(X)))
    close(x.g, np.cos(np.exp(X)) * np.exp(X))
    again = F.cos(z)
    y.parent = again.parent
    assert y.parent.name == "Cos" and z.parent == f
    y.forward()
    close(y.d, np.cos(np.exp(X)))


@pytest.mark.parametrize("other_way", [False, True])
def test_an_output_and_its_copy_on_each_other(other_way):
    x, y, z = adopted()
    f = y.parent
    h, var = (z, y) if other_way else (y, z)
    h.rewire_on(var)
    assert h.parent == f and var.parent is None
    train(h, x)
    close(h.d, np.exp(X))
    close(x.g, np.exp(X))


def test_rewired_on_what_was_given_a_parent():
    x, y, z = adopted()
    new = leaf(X)
    new.rewire_on(z)
    assert z.parent is None and new.parent == y.parent and y.parent.outputs == [y]
    top = F.cos(new)
    train(top, x)
    close(top.d, np.cos(np.exp(X)))
    close(x.g, -np.sin(np.exp(X)) * np.exp(X))


def test_an_assigned_parent_in_a_dynamic_graph():
    with nn.auto_forward():
        x = leaf(X)
        y, z = F.exp(x), leaf(X * 2)
        z.parent = y.parent
        assert z.parent == y.parent and np.array_equal(z.d, X * 2)
        z.forward()
        close(F.sin(z).d, np.sin(np.exp(X)))
        x.g = 0
        F.sin(z).backward()
        close(x.g, np.cos(np.exp(X)) * np.exp(X))


def test_parents_that_are_refused():
    x, y, z = adopted()
    other = Variable((4,))
    with pytest.raises(ValueError, match=r"parent.*\(4,\).*\(3,\)"):
        other.parent = y.parent
    with pytest.raises(RuntimeError, match="cycle"):
        x.parent = z.parent
    with pytest.raises(TypeError, match="a Function or None"):
        x.parent = 3
    assert other.parent is None and x.parent is None
    train(z, x)
    close(x.g, np.exp(X))


def test_what_is_set_by_the_mode_of_recomputation():
    with nn.recompute():
        made = [Variable((2,)), Variable.from_numpy_array(X), F.exp(leaf(X))]
        made.append(made[2].get_unlinked_variable())
    assert all(v.recompute for v in made) and not made[2].get_unlinked_variable().recompute
    assert not Variable((2,)).recompute
