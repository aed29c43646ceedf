"""PythonFunction: cycles through the graph are collected, what is in use stays."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from cubes import Cube, X, fusion, leaf, raising, registry, trained  # noqa: F401 - fixtures


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
