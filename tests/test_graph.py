"""Graphs: forward, backward, need_grad, several roots.

Every test runs with fusion on and off; expected values are NumPy formulas; orders were asked of NNabla 1.39.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf, names
from nnrs import NdArray

pytestmark = pytest.mark.usefixtures("fusion")


# Forward and backward


def test_forward_and_backward_of_a_small_network():
    rng = np.random.default_rng(0)
    xv, wv, bv = rng.normal(size=(4, 3)), rng.normal(size=(3, 5)), rng.normal(size=5)
    x, w, b = leaf(xv, False), leaf(wv), leaf(bv)
    y = F.mean(F.tanh(F.affine(x, w, b)) ** 2)
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
