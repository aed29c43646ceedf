"""What backward adds to has its value, or is an error: a gradient that a run cleared is no zero."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from python_functions import OneToOne

X = np.array([0.1, 0.2], "f")


def leaf():
    return nn.Variable.from_numpy_array(X, need_grad=True)


def bound(x, loss):
    """A graph that reads the gradient of `loss`, which is the gradient of `x` too."""
    return F.sum(nn.grad([loss], [x], bind_grad_output=True)[0] ** 2)


@pytest.mark.parametrize("flags", [{"clear_buffer": True}, {"clear_no_need_grad": True}, {}])
@pytest.mark.parametrize("power", [1, 3])
def test_a_bound_gradient_that_a_run_cleared(flags, power):
    x = leaf()
    graph = bound(x, F.sum(x**power))
    graph.forward(**flags)
    y = F.sum(x * 10)
    y.forward()
    y.backward()
    np.testing.assert_allclose(x.g, power * X ** (power - 1) + 10, rtol=1e-6)


def test_training_with_a_bound_gradient():
    w, expected = leaf(), X.astype("d")
    solver = S.Sgd(0.1)
    solver.set_parameters({"w": w})
    first, second = bound(w, F.sum((w - 1) ** 2)), F.sum(w**2)
    for _ in range(5):
        first.forward(clear_buffer=True)
        second.forward(clear_no_need_grad=True)
        second.backward(clear_buffer=True)
        solver.update()
        expected -= 0.1 * (2 * (expected - 1) + 2 * expected)
    np.testing.assert_allclose(w.d, expected, rtol=1e-5)


def test_a_shared_gradient_that_backward_cleared():
    x, w = leaf(), leaf()
    h = F.exp(x)
    w.grad = h.grad
    y, q = F.sin(h), F.sum(w * 10)
    y.forward()
    y.backward(clear_buffer=True)
    q.forward()
    q.backward()  # w's gradient is the sum of what is gone and 10
    with pytest.raises(nn.Error, match="was not kept"):
        w.g  # noqa: B018
    w.g = 1
    q.backward()
    np.testing.assert_allclose(w.g, 11)


class Doubled(OneToOne):
    """2 x, whose backward adds to what it reads."""

    name = "Doubled"

    def forward_impl(self, inputs, outputs):
        outputs[0].d = 2 * inputs[0].d

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = (inputs[0].g if accum[0] else 0) + 2 * outputs[0].g


# What the second loss of `gan` makes of the image.
JUDGES = {
    "once": lambda image, d: F.cos(image * d),
    "twice": lambda image, d: F.cos(image * d) + F.sin(F.reshape(image, (1, 2), inplace=False) + d),
    "two copies": lambda image, d: F.cos(image * d) + F.sin(image.reshape((2,), unlink=True) * d),
    "beside user code": lambda image, d: Doubled()(F.cos(image * d)),
}


def gan(clear, judge=JUDGES["once"]):
    """Gradients of two phases; the second loss has the image of the first one by an unlinked copy."""
    w, d = leaf(), leaf()
    fake = F.tanh(w)
    for_w = F.sum(F.sin(fake * d))
    unlinked = fake.get_unlinked_variable(need_grad=True)
    for_d = F.sum(judge(unlinked, d))
    found = []
    for _ in range(3):
        for loss, trained in ((for_w, w), (for_d, d)):
            w.g = d.g = 0
            fake.forward()
            loss.forward(clear_no_need_grad=clear)
            loss.backward(clear_buffer=clear)
            found.append(trained.g.copy())
            trained.d = trained.d - 0.1 * trained.g
    return found, unlinked


@pytest.mark.parametrize("judge", JUDGES.values(), ids=JUDGES)
def test_an_unread_gradient_shared_with_an_unlinked_copy(judge):
    expected, _ = gan(False, judge)
    found, unlinked = gan(True, judge)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(nn.Error, match="was not kept"):
        unlinked.g  # noqa: B018


def test_a_solver_names_the_parameter_whose_gradient_is_gone():
    _, unlinked = gan(True)
    solver = S.Sgd(0.1)
    solver.set_parameters({"image": unlinked})
    for act in (solver.update, lambda: solver.clip_grad_by_norm(1.0), lambda: solver.weight_decay(0.1)):
        with pytest.raises(nn.Error, match="was not kept.*\n.*parameter 'image'"):
            act()


def bound_to_a_leaf():
    w, x = leaf(), leaf()
    loss = F.sum(F.sin(x * w))
    (g,) = nn.grad([loss], [w], bind_grad_output=True)
    return w, loss + F.sum(g**2)


def bound_to_an_intermediate():
    x = leaf()
    h = F.exp(x)
    (g,) = nn.grad([F.sum(F.sin(h))], [h], bind_grad_output=True)
    return x, F.sum(F.exp(g))


def bound_by_hand():
    x = leaf()
    h = F.exp(x)
    k = F.tanh(F.sin(h))
    h.grad = k.data
    return x, F.sum(F.sin(k))


# What NNabla 1.39 gives without flags.
BOUND = {
    bound_to_a_leaf: [0.19997, 0.39904073],
    bound_to_an_intermediate: [-1.5471563, -1.6160846],
    bound_by_hand: [0.1844269, 0.1425933],
}


@pytest.mark.parametrize("make", BOUND)
@pytest.mark.parametrize("clear", [False, True])
def test_an_array_that_is_data_and_gradient(make, clear):
    leaf, y = make()
    leaf.g = 0
    y.forward()
    held = leaf.g
    y.backward(clear_buffer=clear)
    np.testing.assert_allclose(leaf.g, BOUND[make], rtol=1e-6)
    np.testing.assert_array_equal(held, leaf.g)


@pytest.mark.parametrize("seed_of", [lambda g: g, lambda g: g.view((2,)), lambda g: g.narrow(0, 0, 2)])
@pytest.mark.parametrize("clear", [False, True])
def test_a_seed_that_is_a_gradient_in_the_graph(clear, seed_of):
    x = leaf()
    h = F.exp(F.sin(x))
    u = h.get_unlinked_variable(need_grad=True)
    z = h * 1.0
    z.forward()
    loss = F.sum(F.cos(u) * u)
    loss.forward()
    u.g = x.g = 0
    loss.backward()
    seed = u.g.copy()
    z.backward(seed_of(u.grad), clear_buffer=clear)
    np.testing.assert_allclose(x.g, seed * h.d * np.cos(X), rtol=1e-6)


READERS = {
    "mul_scalar": (lambda x: x * 10, 10),
    "sum": (F.sum, 1),
    "transpose": (lambda x: F.transpose(x, (0,)), 1),
    "concatenate": (lambda x: F.concatenate(x, x), 2),
    "slice": (lambda x: x[::-1], 1),
    "affine": (lambda x: F.affine(F.reshape(x, (1, 2)), nn.Variable.from_numpy_array(np.ones((2, 1)))), 1),
    "embed": (lambda x: F.embed(nn.Variable.from_numpy_array(np.array([0, 1])), x), 1),
    "PythonFunction": (lambda x: Doubled()(x), 2),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("changed", [False, True])
def test_a_gradient_that_is_data_of_another_graph(name, changed):
    read, slope = READERS[name]
    w, x = leaf(), leaf()
    h = F.exp(w)
    x.grad = h.data
    y = read(x)
    y.forward()
    F.sum(F.sin(h)).forward(clear_buffer=True)
    if changed:
        w.d = 5
        with pytest.raises(nn.Error, match="has changed"):
            y.backward()
        return
    y.backward()
    np.testing.assert_allclose(x.g, np.exp(X) + slope, rtol=1e-6)


@pytest.mark.parametrize("accum", [True, False])
def test_a_function_object_adds_to_what_was_cleared(accum):
    w, x = leaf(), leaf()
    h = F.exp(w)
    x.grad = h.data
    y = F.sin(x)
    y.forward()
    y.g = 1
    F.sum(F.sin(h)).forward(clear_buffer=True)
    y.parent.backward([x], [y], accum=[accum])
    np.testing.assert_allclose(x.g, np.cos(X) + accum * np.exp(X), rtol=1e-6)


def test_the_array_of_a_gradient_that_was_not_kept():
    x = leaf()
    y = F.sin(F.exp(x))
    y.forward()
    y.backward()
    a = y.parent.inputs[0].grad
    with pytest.raises(nn.Error, match="was not kept"):
        a.data  # noqa: B018
    with pytest.raises(nn.Error, match="was not kept"):
        y.parent.inputs[0].g  # noqa: B018
    a.fill(2)
    assert a.data.tolist() == y.parent.inputs[0].g.tolist() == [2, 2]
    y.forward()
    y.backward()
    np.testing.assert_allclose(a.data, np.cos(np.exp(X)), rtol=1e-6)


def test_the_array_of_a_gradient_is_taken_in_a_hook():
    x = leaf()
    y = F.sin(F.exp(x))
    y.forward()
    kept = []
    y.backward(function_pre_hook=lambda f: kept.append(f.inputs[0].grad))
    np.testing.assert_allclose(kept[0].data, np.cos(np.exp(X)), rtol=1e-6)
    np.testing.assert_allclose(kept[1].data, np.cos(np.exp(X)) * np.exp(X), rtol=1e-6)


def test_a_part_of_a_gradient_that_was_cleared():
    x = leaf()
    h = F.exp(x)
    y = F.sin(h)
    y.forward()
    y.backward(clear_buffer=True)
    part = h.grad.narrow(0, 0, 1)
    with pytest.raises(nn.Error, match="was not kept"):
        part.data  # noqa: B018
    h.g = 3
    assert part.data.tolist() == [3]
