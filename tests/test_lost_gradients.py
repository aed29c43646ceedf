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
    with pytest.raises(nn.Error, match="was not kept"):
        q.backward()
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
