"""Modes: auto_forward and no_grad.

Every test runs with fusion on and off; expected values are NumPy formulas.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf
from nnrs.recompute import set_global_recompute
from nnrs.utils.data_iterator import data_iterator_simple
from signal_helpers import Late, raising_at

pytestmark = pytest.mark.usefixtures("fusion")


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
    with pytest.raises(ZeroDivisionError), nn.auto_forward():
        raise ZeroDivisionError
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


def network(n, depth, axis=1):
    """A network that does not fuse, of buffers of n floats, and its result; nothing between is held."""
    x = leaf(np.ones((1, n)))
    h = x
    for _ in range(depth):
        h = F.softmax(F.transpose(h, (1, 0)), axis=axis)
        h = F.transpose(h, (1, 0)) * 0.5
    return x, h


@pytest.mark.parametrize("auto_forward", [False, True])
def test_no_grad_leaves_no_intermediate_buffer(auto_forward):
    """By the allocator's statistics: after forward the leaf and the result are there, and little more at any time."""
    n, depth = 100_000, 12
    before = nn.memory.stats().live
    nn.memory.reset_peak()
    with nn.auto_forward(auto_forward), nn.no_grad():
        x, y = network(n, depth)
        if not auto_forward:
            y.forward()
    size = 4 * n
    assert nn.memory.stats().live - before <= 2 * size + 4096
    assert nn.memory.stats().peak - before <= 4 * size + 4096
    np.testing.assert_allclose(y.d, 0.5)


def test_a_static_graph_made_under_no_grad_gives_gradients_all_the_same():
    """As in NNabla; what was not kept is computed again."""
    n, depth = 1000, 4
    x, y = network(n, depth, axis=0)
    with nn.no_grad():
        x2, y2 = network(n, depth, axis=0)
    for v in (x, x2):
        v.d = np.linspace(-1, 1, n)[None]
        v.g = 0
    for v in (y, y2):
        v.forward()
        v.backward(np.linspace(0, 1, n)[None])
    np.testing.assert_array_equal(y2.d, y.d)
    np.testing.assert_array_equal(x2.g, x.g)
    assert x.g.any()


def test_auto_forward_frees_what_nothing_refers_to_while_it_runs():
    n = 100_000
    size = 4 * n
    x = leaf(np.ones((1, n)), need_grad=False)
    before = nn.memory.stats().live
    nn.memory.reset_peak()
    with nn.auto_forward():
        h = x
        for _ in range(20):
            h = F.transpose(F.softmax(F.transpose(h, (1, 0)), axis=1), (1, 0)) * 0.5
            assert nn.memory.stats().live - before <= size + 4096
    assert nn.memory.stats().peak - before <= 3 * size + 4096


MODES = {
    "context": lambda: nn.context_scope(nn.Context(["cpu:half"])),
    "auto_forward": nn.auto_forward,
    "no_grad": nn.no_grad,
    "recompute": nn.recompute,
    "parameters": lambda: nn.parameter_scope("a"),
}


def modes():
    """What is set, of those."""
    y = F.exp(nn.Variable((1,)))
    no_grad, scope = nn.parameter.current_no_grad, id(nn.parameter.get_current_parameter_scope())
    return str(nn.get_current_context()), nn.get_auto_forward(), no_grad, y.recompute, scope


@pytest.mark.parametrize("name", MODES)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_leaves_no_mode_on(name):
    """Not even one that comes as the mode is entered or left, nor where the exception is caught."""
    wanted, before, at, is_over = modes(), sys.gettrace(), 0, False
    sys.settrace(raising_at(-1, None, ("nnrs", "contextlib")))  # CPython 3.13 traces what it has once traced
    with MODES[name]():
        sys.settrace(before)
    while not is_over:
        at += 1
        trace = raising_at(at, Late(), ("nnrs", "contextlib"))
        sys.settrace(trace)
        try:
            with MODES[name]():
                pass
        except Late:
            sys.settrace(before)
            assert modes() == wanted
        sys.settrace(before)
        is_over = trace.seen < at
        assert modes() == wanted
    assert at > 2


@pytest.mark.parametrize("name", MODES)
def test_modes_nest_and_decorate(name):
    @MODES[name]()
    def deeper(depth):
        scope = nn.parameter.get_current_parameter_scope()
        return [(modes(), scope)] + (deeper(depth - 1) if depth else [])

    outside, outermost = modes(), nn.parameter.get_current_parameter_scope()
    for _ in range(2):
        nn.clear_parameters()
        for inside, _ in deeper(1):
            assert sum(i != o for i, o in zip(inside, outside, strict=True)) == 1 and modes() == outside
    scopes = [scope for _, scope in deeper(1)]
    if name == "parameters":
        assert outermost["a"] is scopes[0] and outermost["a"]["a"] is scopes[1]
    nn.clear_parameters()


SETTERS = {
    "context": (nn.set_default_context, nn.Context(["cpu:half"]), nn.get_current_context()),
    "auto_forward": (nn.set_auto_forward, True, False),
    "recompute": (set_global_recompute, True, False),
}


def in_thread(f):
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(f).result()


@pytest.mark.parametrize("name", SETTERS)
def test_what_is_set_holds_for_all_threads(name):
    """As in NNabla. Blocks hold for their thread; what is set within one ends with it."""
    set_to, value, before = SETTERS[name]
    outside = modes()

    def within():
        with MODES[name]():
            return modes()

    inside = within()
    assert inside != outside
    with MODES[name]():
        assert in_thread(modes) == outside
        set_to(before)
        assert modes() == outside
    assert modes() == in_thread(modes) == outside and in_thread(within) == inside
    for setter in (lambda: set_to(value), lambda: in_thread(lambda: set_to(value))):
        setter()
        try:
            assert modes() == in_thread(modes) == inside
        finally:
            set_to(before)
        assert modes() == in_thread(modes) == outside


def test_threads_of_iterators_have_the_modes_of_who_asks():
    def load(i):
        return F.sin(nn.Variable.from_numpy_array(np.float32([i]))).d.copy(), nn.get_current_context().backend[0]

    with nn.auto_forward(), nn.context_scope(nn.Context(["cpu:double"])):
        batches = data_iterator_simple(load, 6, 2, shuffle=False)
        found = [next(batches) for _ in range(3)]
    batches.close()
    np.testing.assert_allclose(np.concatenate([x for x, _ in found])[:, 0], np.sin(np.arange(6)), rtol=1e-6)
    assert {name for _, names in found for name in np.ravel(names)} == {"cpu:double"}
