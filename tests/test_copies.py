"""Copies and pickles of variables and solvers: what they keep, and that they are on their own."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from graph_helpers import leaf
from solver_helpers import ALL

COPIES = [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]


@pytest.mark.parametrize("made", COPIES)
def test_a_variable_keeps_what_was_set(made):
    x = leaf([1.0, 2.0])
    h = F.exp(x)
    h.name, h.persistent, h.recompute, h.info = "h", True, True, {"layer": 3}
    h.forward()
    c = made(h)
    assert (c.name, c.persistent, c.recompute, c.info, c.parent) == ("h", True, True, {"layer": 3}, None)
    np.testing.assert_array_equal(c.d, h.d)
    c.d = 0
    assert h.d.all()


@pytest.mark.parametrize("made", COPIES[1:])
def test_a_variable_whose_info_is_itself(made):
    x = leaf([1.0, 2.0])
    x.info = {"me": x}
    c = made(x)
    assert c.info["me"] is c
    x.info = c.info = None


@pytest.mark.parametrize("made", COPIES)
def test_a_gradient_that_was_not_kept(made):
    x = leaf([1.0, 2.0])
    h = F.exp(x)
    y = F.sum(F.sin(h))
    y.forward()
    y.backward(clear_buffer=True)
    other = made(h)
    np.testing.assert_array_equal(other.d, h.d)
    with pytest.raises(nn.Error, match="was not kept"):
        other.g  # noqa: B018
    other.g = 1
    assert other.g.tolist() == [1, 1]


def test_a_parameter_made_by_a_local_function():
    nn.clear_parameters()
    PF.affine(leaf([[1.0, 2.0]]), 3, w_init=lambda shape: np.ones(shape))
    w = nn.get_parameters()["affine/W"]
    c = pickle.loads(pickle.dumps(w))
    assert c.d.tolist() == np.ones((2, 3)).tolist() and c.info.initializer is None
    nn.clear_parameters()


def step(w: nn.Variable, solver: S.Solver) -> list[float]:
    w.g = w.d**2
    solver.update()
    return w.d.tolist()


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("made", COPIES[1:])
def test_a_solver_goes_on_where_it_was(kind, made):
    w = leaf([1.0, 2.0])
    solver = kind(0.125)
    solver.note = "mine"
    solver.set_parameters({"w": w})
    for _ in range(3):
        step(w, solver)
    solver.set_learning_rate(0.0625)
    c = made(solver)
    v = c.get_parameters()["w"]
    assert type(c) is kind and c.note == "mine" and c.info == solver.info and c.learning_rate() == 0.0625
    assert v != w and c.get_states()["w"].t == 3
    for _ in range(2):
        assert step(v, c) == step(w, solver)


def test_a_shallow_copy_of_a_solver_has_states_of_its_own():
    w = leaf([1.0, 2.0])
    solver = S.Momentum(0.125)
    solver.set_parameters({"w": w})
    step(w, solver)
    c = copy.copy(solver)
    assert c.get_parameters()["w"] == w
    c.get_states()["w"].pstate["m"].d = 7
    assert 7 not in solver.get_states()["w"].pstate["m"].d


class Interrupting(str):
    """Ctrl-C comes while its text is asked for."""

    def __str__(self):
        raise KeyboardInterrupt


def test_names_of_parameters_are_what_they_are():
    solver = S.Sgd(0.1)
    solver.set_parameters({Interrupting("w"): leaf([1.0])})
    assert list(solver.get_parameters()) == ["w"]
