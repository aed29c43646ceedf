"""PythonFunction: cycles through the graph are collected, what is in use stays."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from cube_function import Cube, X, fusion, leaf, raising, registry, trained  # noqa: F401 - fixtures


class Token:
    """Something that shows whether its owner lives."""


def collected(make) -> bool:
    """Whether what `make(f)` gives is all that keeps a function alive that has a cycle with itself."""
    f = Cube()
    f.token = Token()
    alive = weakref.ref(f.token)
    kept = make(f)
    del f
    gc.collect()
    found = alive() is None
    del kept
    gc.collect()
    assert alive() is None, "a leak"
    return found


def own_output(f):
    f.y = f(leaf())


def own_loss_after_training(f):
    x = leaf()
    f.loss = F.sum(F.tanh(f(F.exp(x))) * f(x))
    trained(f.loss, x)
    f.loss.forward()
    f.loss.backward()


def own_node(f):
    f.node = f(leaf()).parent


def by_a_list(f):
    f.list = [{"y": F.exp(f(leaf()))}]


def by_a_closure(f):
    y = f(leaf())
    f.forward = lambda inputs, outputs: y


def in_dynamic_mode(f):
    with nn.auto_forward():
        f.y = F.exp(f(leaf()))


def through_another(f):
    g = Cube()
    g.y = f.y = g(f(leaf()))


@pytest.mark.parametrize(
    "make", [own_output, own_loss_after_training, own_node, by_a_list, by_a_closure, in_dynamic_mode, through_another]
)
def test_cycles_through_the_graph_are_collected(make):
    assert collected(make)


def test_what_is_still_in_use_is_not_collected():
    def downstream(f):
        f.y = f(leaf())
        return F.exp(f.y)

    def output(f):
        f.loss = F.sum(f(leaf()))
        return f.loss.parent.inputs[0]

    def node(f):
        f.y = f(leaf())
        return f.y.parent

    for make in (downstream, output, node):
        assert not collected(make)


def test_several_variables_of_one_graph_are_collected_when_one_is_left():
    f = Cube()
    f.token = Token()
    alive, objects = weakref.ref(f.token), f.__dict__
    f.y = f(leaf())
    f.loss = F.sum(f.y)
    del f
    gc.collect()
    assert alive() is not None
    del objects["y"], objects
    gc.collect()
    assert alive() is None


def test_a_graph_in_use_works_after_collections():
    x = leaf()
    f = Cube()
    f.y = f(x)
    y = F.sum(f.y)
    f.other = f(x)
    del f
    for _ in range(3):
        gc.collect()
        np.testing.assert_array_equal(trained(y, x)[1], 3 * X**2)


def test_collection_while_another_thread_runs_the_graph():
    stop = threading.Event()

    def collect():
        while not stop.is_set():
            gc.collect()

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        for _ in range(30):
            f, x = Cube(), leaf()
            f.y = F.sum(f(F.tanh(x)))
            y = f.y
            del f
            t = np.tanh(X)
            np.testing.assert_allclose(trained(y, x)[1], 3 * t**2 * (1 - t**2), rtol=1e-5)
            assert y.parent.inputs[0].parent.name == "Cube"
    finally:
        stop.set()
        thread.join()


class Keeper(Cube):
    """Keeps its own output, as for a backward that reads it; gives what it was given."""

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = outputs[0].g + (inputs[0].g if accum[0] else 0)

    def __call__(self, *inputs):
        self.saved = super().__call__(*inputs)
        return self.saved


def chain(n, between, run):
    h = leaf(np.ones(3))
    for _ in range(n):
        h = Keeper()(h)
        h = F.sin(h) * h if between else h
    if run:
        trained(h, leaf())
    return h


@pytest.mark.parametrize("n", [1, 3, 10, 300])
@pytest.mark.parametrize("between", [True, False])
@pytest.mark.parametrize("run", [True, False])
def test_a_chain_of_cycles_is_collected_at_once(n, between, run):
    gc.collect()
    before = nn._core.live_nodes()
    y = chain(n, between, run)
    h = y.parent.inputs[0]
    gc.collect()
    assert nn._core.live_nodes()[0] >= before[0] + n, "it is in use"
    del y
    gc.collect()
    assert nn._core.live_nodes()[0] >= before[0] + n - 1, "the rest is"
    del h
    gc.collect()
    assert nn._core.live_nodes() == before


@pytest.mark.parametrize("automatic", [True, False])
def test_training_with_cycles_takes_no_more_and_more_memory(automatic):
    x = leaf()
    gc.collect()
    most = before = nn._core.live_nodes()[0]
    for step in range(300):
        with nn.auto_forward():
            y = F.sum(chain(20, False, False) * x)
        y.backward()
        del y
        if not automatic and step % 10 == 0:
            gc.collect()
        most = max(most, nn._core.live_nodes()[0] - before)
    assert most < 2000, "of 6,600 functions"
    gc.collect()


def test_one_of_many_owners_keeps_what_is_behind_it():
    y = chain(5, True, False)
    functions, h = [], y
    while h.parent is not None:
        if h.parent.name == "Cube":
            functions.append(h.parent)
        h = h.parent.inputs[0]
    del h
    middle = functions[2].outputs[0]
    del y, functions
    for _ in range(3):
        gc.collect()
    middle.forward()
    while middle.parent is not None:
        assert np.isfinite(middle.d).all()
        middle = middle.parent.inputs[0]


def test_two_handles_of_one_variable_and_several_outputs():
    class Two(Cube):
        def min_outputs(self):
            return 2

        def setup_impl(self, inputs, outputs):
            for y in outputs:
                y.reset_shape(inputs[0].shape, True)

        def forward_impl(self, inputs, outputs):
            outputs[0].d, outputs[1].d = inputs[0].d, -inputs[0].d

    gc.collect()
    before = nn._core.live_nodes()
    f, g = Two(), Keeper()
    a, b = f(leaf())
    f.mine = [a, b, F.exp(a).parent.inputs[0], b.parent]
    c = g(b)
    f.other = c
    c.forward()
    del a, b, c, f, g
    gc.collect()
    assert nn._core.live_nodes() == before


def test_a_finalizer_that_revives_what_is_collected():
    kept = []

    class Reviving(Keeper):
        def __del__(self):
            kept.append(self.saved)

    y = Reviving()(leaf())
    del y
    gc.collect()
    assert len(kept) == 1
    kept[0].forward()
    np.testing.assert_array_equal(kept[0].d, X)
    kept.clear()
    gc.collect()


# What scripts keep with variables


def info_of_itself(token):
    x = nn.Variable((2,))
    x.info = {"x": x, "token": token}


def info_of_a_leaf(token):
    x = nn.Variable((2,))
    token.y = F.sin(x)
    x.info = token


def info_in_the_middle(token):
    h = F.sin(nn.Variable((2,)))
    token.y = F.cos(F.exp(h))
    h.info = [token]


def info_that_was_there_before_the_graph(token):
    x = leaf()
    x.info = token
    y = F.sum(F.tanh(x))
    trained(y, x)
    token.y = y


def of_a_function(token):
    x = nn.Variable((2,))
    token.f = F.sin(x).parent
    x.info = token


def of_a_function_further_down(token):
    x = nn.Variable((2,))
    y = F.sin(F.exp(x))
    token.f, token.g = y.parent, x.function_references
    x.info = token


def of_a_solver(token):
    x = leaf()
    token.solver = S.Momentum()
    token.solver.set_parameters({"w": leaf(), "x": x})
    x.info = token


def of_a_solver_that_has_worked(token):
    x = leaf()
    y = F.sum(F.tanh(x) * F.exp(x))
    solver = S.Adam()
    solver.set_parameters({"x": x})
    for _ in range(3):
        solver.zero_grad()
        y.forward()
        y.backward()
        solver.update()
    x.info = {"token": token, "solver": solver, "loss": y}


def of_a_solvers_state(token):
    token.solver = S.Adam()
    token.solver.set_parameters({"x": leaf()})
    token.solver.get_states()["x"].pstate["mean"].info = token


def of_two_solvers(token):
    x = leaf()
    for name in "ab":
        setattr(token, name, S.Sgd())
        getattr(token, name).set_parameters({"x": x, "again": x})
    x.info = token


@pytest.mark.parametrize(
    "make",
    [
        info_of_itself,
        info_of_a_leaf,
        info_in_the_middle,
        info_that_was_there_before_the_graph,
        of_a_function,
        of_a_function_further_down,
        of_a_solver,
        of_a_solver_that_has_worked,
        of_a_solvers_state,
        of_two_solvers,
    ],
)
def test_cycles_through_info_are_collected(make):
    token = Token()
    alive = weakref.ref(token)
    make(token)
    del token
    gc.collect()
    gc.collect()
    assert alive() is None, "a leak"


def test_info_in_use_is_not_collected():
    x = nn.Variable((2,))
    x.info = {"x": x, "token": Token()}
    alive = weakref.ref(x.info["token"])
    y = F.sin(x)
    del x
    for _ in range(3):
        gc.collect()
        assert alive() is y.parent.inputs[0].info["token"]
    other = nn.Variable((2,))
    other.info = y
    y.parent.inputs[0].info["other"] = other
    z = F.exp(other)
    del y, other
    gc.collect()
    assert alive() is z.parent.inputs[0].info.parent.inputs[0].info["token"]
    del z
    gc.collect()
    gc.collect()
    assert alive() is None, "a leak"


def test_what_a_living_solver_has_is_not_collected():
    solver, x = S.Momentum(lr=0.5), leaf()
    solver.set_parameters({"x": x})
    x.info = {"solver": solver, "token": Token()}
    alive = weakref.ref(x.info["token"])
    del x
    for _ in range(3):
        gc.collect()
        assert alive() is solver.get_parameters()["x"].info["token"]
    kept = solver.get_parameters()["x"]
    del solver
    gc.collect()
    assert kept.info["solver"].get_parameters()["x"].info["token"] is alive()
    kept.info["solver"].clear_parameters()
    gc.collect()
    assert alive() is not None
    del kept
    gc.collect()
    gc.collect()
    assert alive() is None, "a leak"
