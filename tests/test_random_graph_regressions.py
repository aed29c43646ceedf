"""What the state machine (`machine/`) found, each as its shortest script.

Every test runs with fusion on and off; expected values are NumPy formulas.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf
from machine.engine import Square, prepare
from nnrs.ext_utils import get_extension_context

pytestmark = pytest.mark.usefixtures("fusion")


def alive():
    gc.collect()
    return (*nn._core.live_nodes(), nn.memory.stats().live)


def test_forward_all_of_a_variable_and_what_is_computed_from_it_leaves_nothing():
    before = alive()
    x = leaf(X)
    h = F.sin(x)
    y = F.exp(h)
    for roots in ([h, y], [y, h], [x, y], [x, h, y]):
        nn.forward_all(roots)
    del x, h, y, roots
    assert alive() == before


def test_outputs_of_one_function_that_ran_each_leave_nothing():
    before = alive()
    x = leaf([X, X])
    a, b = F.split(x, axis=0)
    for y in (a, b):
        y.forward()
        y.backward()
    close(x.g, np.ones((2, 3)))
    del x, a, b, y
    assert alive() == before


def test_rewire_frees_what_was_there_before():
    x = leaf(X)
    h = F.cos(x)
    h.forward()
    y = F.abs(h)
    functions = nn._core.live_nodes()[0]
    y.rewire_on(h)
    del y
    assert nn._core.live_nodes()[0] == functions - 2


@pytest.mark.parametrize("clear", [False, True])
def test_what_is_rewired_on_a_recomputed_variable_is_computed_again(clear):
    x = leaf(X)
    with nn.auto_forward():
        with nn.recompute():
            h = F.mul_scalar(x, 0.5)
        y = F.tanh(h)
    y.backward(clear_buffer=clear)
    y.rewire_on(h)
    del h
    close(y.d, X * 0.5)


@pytest.mark.parametrize("clear", [False, True])
def test_a_hook_after_a_function_sees_its_inputs(clear):
    x = leaf(X)
    y = F.sin(F.exp(x))
    y.parent.inputs[0].recompute = not clear
    seen = []
    y.forward(clear_buffer=clear, function_post_hook=lambda f: seen.append(f.inputs[0].d.copy()))
    close(seen[0], X)
    close(seen[1], np.exp(X))


def test_hooks_go_by_rank():
    x = leaf(X)
    a = x * x
    y = F.add_n(F.sum(x - 0.4, keepdims=True) ** 3 * a, a)
    ranks = []
    y.forward(function_pre_hook=lambda f: ranks.append(f.rank))
    assert ranks == sorted(ranks)


def test_data_that_backward_cleared_is_made_again():
    x = leaf(X)
    with nn.auto_forward():
        h = F.sin(x)
        y = F.sin(h)
    y.backward(clear_buffer=True)
    close(h.d, np.sin(X))
    y.backward()
    close(x.g, 2 * np.cos(np.sin(X)) * np.cos(X))
    a, b, _ = F.split(leaf([X, X, X]), axis=0)
    a.forward()
    b.backward(clear_buffer=True)
    close(a.d, X)


def test_backward_twice_through_a_python_function():
    x = leaf(X)
    y = Square()(Square()(x))
    y.forward()
    y.backward(clear_buffer=True)
    y.backward()
    close(x.g, 2 * 4 * X**3)


def test_backward_after_another_backward_that_cleared_what_is_computed_again_from():
    x = leaf([[0.5, 1.0]])
    s = F.softmax(x)
    t = F.tanh(s)
    r, w = F.relu(s), t**2
    del t
    nn.forward_all([s, r, w], clear_buffer=True)
    r.backward(clear_buffer=True)
    x.g = 0
    w.backward(clear_buffer=True)
    p = np.exp(x.d) / np.exp(x.d).sum()
    g = 2 * np.tanh(p) * (1 - np.tanh(p) ** 2)
    close(x.g, p * (g - (g * p).sum()))


def test_two_outputs_that_were_not_kept_are_computed_again_together():
    x = leaf([X, X * 2, X * 3])
    p, q, r = F.split(F.exp(x), axis=0)
    q.forward(clear_no_need_grad=True)
    with nn.auto_forward(), nn.no_grad():
        y = F.stack(p, r)
    close(y.d, np.exp([X, X * 3]))
    close(p.d, np.exp(X))


def test_another_number_of_outputs_is_an_error():
    x = leaf(np.ones((3, 1)))
    c = F.split(F.sin(x), axis=0)[2]
    x.reset_shape((4, 1), True)
    with pytest.raises(ValueError, match="split.*as many outputs.*3"):
        c.forward()


def test_a_function_does_not_write_to_an_output_that_was_rewired_or_cut():
    x = leaf([X, X * 2])
    a, b = F.split(x, axis=0)
    b.rewire_on(F.abs(a))
    b.forward()
    close(b.d, np.abs(X))
    x.d = [X * 3, X * 4]
    a.forward()
    close(b.d, np.abs(X))
    c, d = F.split(x, axis=0)
    d.parent = None
    d.d = X
    c.forward()
    close(d.d, X)


def test_a_cut_variable_whose_data_was_not_kept():
    x = leaf(X)
    h = F.tanh(x)
    y = F.sin(h)
    with_hooks = {"function_post_hook": lambda f: None}
    y.forward(clear_buffer=True, **with_hooks)
    h.parent = None
    z = F.cos(h)
    try:
        z.forward()
    except RuntimeError as e:
        assert "not kept" in str(e)
    else:
        close(z.d, np.cos(np.tanh(X)))


def test_an_unlinked_copy_of_what_was_not_kept():
    x = leaf([X, X])
    h = F.exp(x)
    u = h.get_unlinked_variable()
    F.max(h, axis=0).forward(clear_buffer=True)
    z = F.sin(u)
    try:
        nn.forward_all([z, u])
    except RuntimeError as e:
        assert "not kept" in str(e)
    else:
        close(z.d, np.sin(np.exp([X, X])))


def test_an_array_of_another_size_is_not_taken_for_unchanged():
    x = leaf([X, X, X])
    y = F.max(x, axis=1)
    z = F.softmax(y)
    z.forward(clear_buffer=True)
    x.reset_shape((1, 3), True)
    with pytest.raises(RuntimeError, match="changed since forward"):
        y.d  # noqa: B018


def test_gradients_of_an_earlier_run_are_not_shown():
    x = leaf(X)
    h = F.tanh(x)
    y = F.sum(h)
    y.forward()
    y.backward(clear_buffer=True)
    y.forward()
    y.backward()
    y.forward()
    y.backward(clear_buffer=True)
    with pytest.raises(RuntimeError, match="not kept by backward"):
        h.g  # noqa: B018
    with pytest.raises(RuntimeError, match="not kept by backward"):
        h.backward(grad=None)


def test_hooks_that_read_what_auto_forward_marked_to_be_computed_again():
    x = leaf([X, X])
    with nn.auto_forward(), nn.recompute():
        h = F.concatenate(x, x, axis=0)
    y = F.sum(h, axis=1)
    del h
    y.forward(function_pre_hook=lambda f: f.inputs[0].d)
    close(y.d, np.full(4, X.sum()))


def test_another_array_of_a_leaf_is_a_change():
    w = leaf(X * 5)
    x = leaf(X)
    h = F.exp(x)
    y = F.sin(h)
    y.forward(clear_buffer=True)
    x.data = w.data  # written before forward
    with pytest.raises(RuntimeError, match="changed since forward"):
        h.d  # noqa: B018


@pytest.mark.parametrize("view", [lambda v: v.d, lambda v: v.data.data, lambda v: v.data.get_data("r")])
@pytest.mark.parametrize("f", [F.identity, lambda x: F.reshape(x, (3, 1))])
def test_a_view_of_an_output_that_shares_memory_stays_up_to_date(f, view):
    x = leaf(X)
    y = f(x)
    y.forward()
    a = view(y)
    x.d = X * 2
    y.forward()
    close(a.ravel(), X * 2)
    y.d = np.reshape(X * 3, y.shape).astype("float32")
    close(a.ravel(), X * 3)


@pytest.mark.parametrize("flags", [{}, {"clear_buffer": True}, {"clear_no_need_grad": True}])
def test_a_view_of_a_root_stays_up_to_date(flags):
    r = F.rand(shape=(3,))
    y = F.leaky_relu(r + r)
    y.forward()
    a = y.d
    y.forward(**flags)
    close(a, y.d)


def test_an_array_that_is_read_is_computed_again_in_the_type_of_its_function():
    with nn.context_scope(get_extension_context("cpu", type_config="double")):
        x = nn.Variable.from_numpy_array(np.array([0.1, 0.2]))
        h = F.tanh(x)
        a = h.data
        y = h + h
        y.forward(clear_buffer=True)
        del h
        np.testing.assert_allclose(a.data, np.tanh([0.1, 0.2]), rtol=1e-14)


@pytest.mark.parametrize("clear", [False, True])
def test_a_gradient_that_ends_at_a_variable_stays(clear):
    """Nothing behind it needs a gradient, so backward ends there as at a leaf: NNabla leaves it alone."""
    h = F.cos(leaf(X, need_grad=False))
    h.need_grad = True
    y = F.sin(h)
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=clear)
    close(h.g, np.cos(np.cos(X)))


def test_inputs_of_a_sink_keep_their_gradients():
    x = leaf(X)
    y = F.sin(x)
    s = F.sink(y, one_input_grad=False)
    s.forward()
    y.g = 2
    s.backward(clear_buffer=True)
    close(y.g, [2, 2, 2])


def test_a_sink_sets_the_gradients_of_its_inputs_to_one():
    x = leaf(X)
    x.g = 7
    y = F.sin(leaf(X))
    s = F.sink(x, y, y)
    s.forward()
    s.backward()
    close(x.g, [1, 1, 1])
    close(y.g, [1, 1, 1])


def test_the_gradient_of_an_output_that_came_back_is_no_zeros():
    p, q = F.split(leaf([X, X]))
    y = p - q
    y.forward()
    y.backward()
    del y, p
    close(q.parent.outputs[0].g, [1, 1, 1])


def test_forward_all_after_a_cut_leaves_nothing():
    before = alive()
    x = leaf(X)
    b = F.sin(x * x)
    h = F.tanh(b)
    k = F.sin(h)
    k.forward()
    y = F.sin(k)
    h.parent = None
    nn.forward_all([b, y])
    del x, b, h, k, y
    assert alive() == before


def test_a_gradient_graph_over_user_code_whose_input_got_the_shape_that_it_had():
    prepare()
    x = leaf(X)
    y = Square()(x)
    x.reset_shape(x.shape, True)
    (g,) = nn.grad([F.sum(F.sin(y))], [x])
    g.forward()
    close(g.d, 2 * X * np.cos(X * X))
    x.reset_shape((2, 2), True)
    with pytest.raises(nn.Error, match="has changed since it was set up"):
        nn.grad([y], [x])
