"""Variables of one graph that share data and gradient: unlinked copies, views in another shape, arrays given to two.

Expected values are formulas; where the order of the backward pass shows in them, NNabla 1.39's (by rank, then as
functions are met). Every test runs with fusion on and off.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from graph_helpers import close
from python_functions import OneToOne

pytestmark = pytest.mark.usefixtures("fusion")

X = np.array([1, 2], "float32")


def leaf() -> nn.Variable:
    return nn.Variable.from_numpy_array(X.copy(), need_grad=True)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def through_softmax(s, g):
    return s * (g - (s * g).sum())


def given(x):
    u = nn.Variable(x.shape, need_grad=True)
    u.data, u.grad = x.data, x.grad.view(x.shape)
    return u


COPIES = {
    "unlinked": lambda v: v.get_unlinked_variable(need_grad=True),
    "reshape": lambda v: v.reshape(v.shape, unlink=True),
    "given": given,
}

LEAVES = {
    "mul": (lambda u, x: F.sum(u * x), lambda x: 2 * x),
    "sum": (lambda u, x: F.sum(u * 1 + x), lambda x: 2 + 0 * x),
    "sin + exp": (lambda u, x: F.sum(F.sin(u) + F.exp(x)), lambda x: np.cos(x) + np.exp(x)),
    "add_n": (lambda u, x: F.sum(F.add_n(u, x, x)), lambda x: 3 + 0 * x),
    "batch_matmul": (
        lambda u, x: F.sum(F.batch_matmul(F.reshape(u, (1, 1, 2)), F.reshape(x, (1, 2, 1)))),
        lambda x: 2 * x,
    ),
    "concatenate": (lambda u, x: F.sum(F.concatenate(u, x, u) ** 2), lambda x: 6 * x),
}


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("graph", LEAVES)
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("auto", [False, True])
def test_a_leaf_and_its_copy(copy, graph, before, auto):
    make, gradient = LEAVES[graph]
    x = leaf()
    u = COPIES[copy](x)
    with nn.auto_forward(auto):
        y = make(u, x)
    y.forward()
    x.g = before
    y.backward()
    close(x.g, before + gradient(X))
    close(u.g, before + gradient(X))


def exp_sin(h, u):
    return F.sum(F.exp(h)) + F.sum(F.sin(u))


def sine(x):
    return np.sin(x), lambda g: np.cos(x) * g


def double(x):
    return x * 2, lambda g: g * 2


def normalized(x):
    return softmax(x), lambda g: through_softmax(softmax(x), g)


def both(h):
    return np.exp(h) + np.cos(h)


# The function that makes h of x, y of h and its copy u; in NumPy h and what x gets of its gradient, the gradient that h
# has at the end, and the part of it that x gets (NNabla: what is there when the function's turn comes).
COPIES_INSIDE = {
    "both": (F.sin, exp_sin, sine, both, both),
    "turned": (F.sin, lambda h, u: exp_sin(u, h), sine, both, both),
    "later": (lambda x: x * 2, lambda h, u: F.sum(h - u * 3), double, lambda h: h * 0 - 2, lambda h: h * 0 + 1),
    "at once": (F.softmax, lambda h, u: F.sum(h * u), normalized, lambda h: 2 * h, lambda h: 2 * h),
    "overwritten": (
        F.softmax,
        lambda h, u: F.sum(F.softmax(h) * u),
        normalized,
        lambda h: through_softmax(softmax(h), h),
        lambda h: through_softmax(softmax(h), h),
    ),
}


@pytest.mark.parametrize("copy", ["unlinked", "reshape"])
@pytest.mark.parametrize("case", COPIES_INSIDE)
@pytest.mark.parametrize("clear", [False, True])
def test_an_intermediate_variable_and_its_copy(copy, case, clear):
    if case == "turned" and clear:
        pytest.skip("NNabla gives what is left in memory that it has cleared")
    function, graph, plain, total, part = COPIES_INSIDE[case]
    x = leaf()
    h = function(x)
    u = COPIES[copy](h)
    y = graph(h, u)
    y.forward()
    wanted, back = plain(X)
    for _ in range(2):
        y.forward()
        x.g = h.g = 0
        y.backward(clear_buffer=clear)
        close(x.g, back(part(wanted)))
        if not clear:
            close(h.g, total(wanted))
            close(u.g, total(wanted))


STOPPED = {
    "difference": (lambda x: x * 2, lambda h, u: F.sum(h - u), lambda x: 0, lambda x: 2 + 0 * x),
    "squares": (
        F.relu,
        lambda h, u: F.mean(h * 3) + F.mean((u - 1) ** 2),
        lambda x: np.mean(3 * x) + np.mean((x - 1) ** 2),
        lambda x: 1.5 + 0 * x,
    ),
    "two units": (
        F.sin,
        exp_sin,
        lambda x: np.exp(np.sin(x)).sum() + np.sin(np.sin(x)).sum(),
        lambda x: np.cos(x) * np.exp(np.sin(x)),
    ),
    "straight through": (
        lambda x: x * 1,
        lambda h, u: F.sum((h + (F.round(u * 3) - u)) ** 2),
        lambda x: (np.round(x * 3) ** 2).sum(),
        lambda x: 2 * np.round(x * 3),
    ),
}


@pytest.mark.parametrize("case", STOPPED)
@pytest.mark.parametrize("held", [True, False])
def test_a_copy_that_stops_the_gradient(case, held):
    function, graph, value, gradient = STOPPED[case]
    x = leaf()
    h = function(x)
    u = h.get_unlinked_variable(need_grad=False)
    y = graph(h, u)
    if not held:
        del h, u
    for step in range(3):
        y.forward(clear_no_need_grad=True)
        x.g = 0
        y.backward(clear_buffer=True)
        close(y.d, value(X + step))
        close(x.g, gradient(X + step))
        x.d = x.d + 1


@pytest.mark.parametrize("copy", ["unlinked", "reshape"])
def test_data_that_is_gone_is_made_again_for_a_copy(copy):
    x = leaf()
    h = F.sin(x)
    u = COPIES[copy](h)
    z = F.sum(u)
    y = F.sum(F.exp(h))
    y.forward(clear_buffer=True)
    z.forward()
    close(z.d, np.sin(X).sum())


@pytest.mark.parametrize("copy", ["unlinked", "reshape"])
def test_recomputed_data_is_there_for_a_copy(copy):
    x = leaf()
    h = F.sin(x)
    h.recompute = True
    u = COPIES[copy](h)
    y = F.sum(F.exp(h)) + F.sum(u)
    for _ in range(2):
        y.forward()
        close(y.d, (np.exp(np.sin(X)) + np.sin(X)).sum())


class Product(OneToOne):
    """Adds to its gradients as the manual has it."""

    name = "Product"
    reads = True

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d * inputs[1].d

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        for x, other, add in zip(inputs, inputs[::-1], accum, strict=True):
            g = outputs[0].g * other.d
            if add:
                x.g += g
            else:
                x.g[...] = g


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("before", [0, 1])
def test_a_python_function_of_a_variable_and_its_copy(copy, auto, before):
    x = leaf()
    with nn.auto_forward(auto):
        y = F.sum(Product()(x, COPIES[copy](x)))
    y.forward()
    x.g = before
    y.backward()
    close(x.g, before + 2 * X)


def test_the_gradient_of_an_output_without_handles():
    x, w = leaf(), leaf()
    w.d = 3
    f = F.mul2(x, w).parent
    f.forward(f.inputs, f.outputs)
    f.outputs[0].g = X
    x.g = 0
    f.backward(f.inputs, f.outputs, [True, True])
    close(x.g, 3 * X)
    close(f.outputs[0].g, X)


def sigmoid_slope(x):
    s = 1 / (1 + np.exp(-x))
    return s * (1 - s)


# How v is made of h, and the gradient of h where that of v is g.
THROUGH = {
    "identity": (F.identity, lambda h, g: g),
    "reshape": (lambda h: F.reshape(h, (2,)), lambda h, g: g),
    "reshape in a copy": (lambda h: F.reshape(h, (2,), inplace=False), lambda h, g: g),
    "broadcast": (lambda h: F.broadcast(h, (2,)), lambda h, g: g),
    "transpose": (lambda h: F.transpose(h, (0,)), lambda h, g: g),
    "flip": (lambda h: F.flip(h, axes=[0]), lambda h, g: g[::-1]),
    "mul_scalar": (lambda h: F.mul_scalar(h, 2.0), lambda h, g: 2 * g),
    "sigmoid": (F.sigmoid, lambda h, g: sigmoid_slope(h) * g),
    "softmax": (lambda h: F.softmax(h, axis=0), lambda h, g: through_softmax(softmax(h), g)),
}


@pytest.mark.parametrize("how", ["one array", "bind"])
@pytest.mark.parametrize("name", THROUGH)
def test_input_and_output_of_a_function_have_one_gradient_array(name, how):
    make, through = THROUGH[name]
    x = leaf()
    h = F.exp(x)
    v = make(h)
    y = F.sin(v)
    if how == "bind":
        nn.grad([y], [h, v], bind_grad_output=True)
    else:
        h.grad = v.grad
    y.forward()
    e = np.exp(X)
    for _ in range(2):
        x.g = 0
        y.backward()
        close(x.g, through(e, np.cos(v.d)) * e)
        close(h.g, through(e, np.cos(v.d)))


@pytest.mark.parametrize("name", THROUGH)
def test_the_seed_is_the_gradient_of_the_leaf(name):
    make, through = THROUGH[name]
    x = leaf()
    y = make(x)
    y.forward()
    x.g = [3, -1]
    y.backward(x.grad)
    close(x.g, np.array([3, -1]) + through(X, np.array([3.0, -1])))


def set_to_zero(w, solver):
    w.g = 0


def data_to_zero(w, solver):
    w.grad.data = 0


def copied(w, solver):
    w.grad.zero()
    w.grad.copy_from(w.grad)


def read(w, solver):
    w.grad.zero()
    _ = w.g


def clipped(w, solver):
    w.grad.zero()
    solver.clip_grad_by_norm(1.0)


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("solver, moves", [(S.Momentum, 0.8973426), (S.Adam, 0.8329942)])
@pytest.mark.parametrize(
    "how, takes_part",
    [
        (lambda w, solver: w.grad.zero(), False),
        (lambda w, solver: solver.zero_grad(), False),
        (set_to_zero, False),
        (data_to_zero, False),
        (clipped, False),
        (lambda w, solver: w.grad.fill(0), True),
        (copied, True),
        (read, True),
    ],
)
def test_a_gradient_that_is_zeroed_and_not_computed_takes_no_part(how, takes_part, solver, moves, part):
    """Also where it is a part of one array for all. Values are NNabla 1.39's."""
    w = nn.Variable.from_numpy_array(np.ones(2, dtype=np.float32), need_grad=True)
    if part:
        w.grad = nn.NdArray.from_numpy_array(np.arange(4, dtype=np.float32)).narrow(0, 2, 2)
    y = F.sum(F.sin(w))
    solver = solver(0.1)
    solver.set_parameters({"w": w})
    y.forward()
    w.grad.zero()
    y.backward()
    solver.update()
    first = w.d.copy()
    how(w, solver)
    solver.update()
    np.testing.assert_allclose(w.d, [moves] * 2 if takes_part else first, rtol=1e-4)


# Outputs that no gradient arrives at


def two_parts():
    x = nn.Variable.from_numpy_array(np.ones((2, 2), "float32"), need_grad=True)
    return (x, *F.split(x, axis=1))


@pytest.mark.parametrize("shared", [False, True])
def test_what_an_earlier_run_left_in_another_output_is_no_gradient(shared):
    x, a, b = two_parts()
    w = leaf()
    w.g = 0
    if shared:
        w.grad = a.grad
    c, s = F.sum(a * 3 + b), F.sum(F.sin(b))
    nn.forward_all([s, c])
    c.backward()
    assert a.g.tolist() == [3, 3]
    x.grad.zero()
    s.backward()
    close(x.g, [[0, np.cos(1)]] * 2)
    close(b.g, [np.cos(1)] * 2)
    assert a.g.tolist() == [0, 0] and w.g.tolist() == [0, 0]  # as in NNabla


def test_what_the_script_wrote_into_another_output_is_no_gradient():
    x, a, b = two_parts()
    c = F.sum(a)
    nn.forward_all([c, b])
    seen = []
    for hook in None, lambda f: seen.append([y.g.tolist() for y in f.outputs]):
        b.g, x.g = 7, 0
        c.backward(function_pre_hook=hook)
        assert x.g.tolist() == [[1, 0]] * 2 and b.g.tolist() == [0, 0]
    assert seen[-1] == [[1, 1], [0, 0]]
    b.g, x.g = 7, 0
    a.backward(1.0)  # of the root's own function: NNabla leaves it alone too
    assert x.g.tolist() == [[1, 0]] * 2 and b.g.tolist() == [7, 7]
