"""PythonFunction: gradients of any order by registered rules."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from cube_function import Cube, X, fusion, leaf, raising, registry, trained  # noqa: F401 - fixtures
from nnrs import Variable, backward_functions


def cube_rule(grad_inputs, inputs, input_shapes, outputs, output_shapes, **arguments):
    return grad_inputs[0] * inputs[0] ** 2 * 3.0


def test_derivatives_of_any_order_by_a_rule():
    backward_functions.register("Cube", cube_rule)
    for scope in (None, nn.auto_forward()):
        x = leaf()
        if scope:
            scope.__enter__()
        y = Cube()(x)
        for expected in (3 * X**2, 6 * X, np.full(3, 6.0)):
            (y,) = nn.grad([y], [x])
            if not scope:
                y.forward()
            np.testing.assert_allclose(y.d, expected, rtol=1e-6)
        if scope:
            scope.__exit__(None, None, None)


def test_a_gradient_graph_is_differentiated_by_backward():
    """The gradient penalty: backward through a graph of nn.grad that has a Python function in it."""
    backward_functions.register("Cube", cube_rule)
    x = leaf()
    y = F.sum(Cube()(F.tanh(x)))
    (g,) = nn.grad([y], [x])
    penalty = F.sum(g * g)
    value, gradient = trained(penalty, x)
    t = np.tanh(np.float64(X))
    first = 3 * t**2 * (1 - t**2)
    second = (6 * t * (1 - t**2) - 6 * t**3) * (1 - t**2)
    np.testing.assert_allclose(value, np.sum(first**2), rtol=1e-5)
    np.testing.assert_allclose(gradient, 2 * first * second, rtol=1e-4)


def test_without_a_rule():
    x = leaf()
    with pytest.raises(ValueError, match=r"no gradient rule is registered for 'Cube'(.|\n)*functions.register"):
        nn.grad([Cube()(x)], [x])


@pytest.mark.parametrize("result, kind, words", [
    (np.zeros(3), TypeError, "Variable"),
    ("text", TypeError, "Variable"),
    ((None, None), ValueError, "1 gradients"),
    ([Variable((4,))], ValueError, r"shape \(3,\)"),
])  # fmt: skip
def test_wrong_results_of_a_rule(result, kind, words):
    backward_functions.register("Cube", lambda *args, **more: result)
    x = leaf()
    with pytest.raises(kind, match=words) as caught:
        nn.grad([Cube()(x)], [x])
    assert "rule registered for 'Cube'" in str(caught.value)


def test_an_exception_of_a_rule():
    def rule(*args, **more):
        raise KeyError("mine")

    backward_functions.register("Cube", rule)
    x = leaf()
    with pytest.raises(KeyError, match="mine"):
        nn.grad([Cube()(x)], [x])


def test_a_rule_in_place_of_an_own_one():
    x = leaf()
    seen = []

    def rule(grad_inputs, inputs, input_shapes, outputs, output_shapes, **arguments):
        seen.append((input_shapes, output_shapes, arguments))
        return grad_inputs[0] * 100.0

    def gradient():
        (g,) = nn.grad([F.leaky_relu(x, alpha=0.5)], [x])
        g.forward()
        return g.d.tolist()

    backward_functions.register("LeakyReLU", rule)
    assert gradient() == [100, 100, 100]
    assert seen == [([(3,)], [(3,)], {"alpha": 0.5, "inplace": False})]
    backward_functions.unregister("LeakyReLU")
    assert gradient() == [1, 0.5, 1]
    with pytest.raises(KeyError):
        backward_functions.unregister("LeakyReLU")
    with pytest.raises(TypeError):
        backward_functions.register("LeakyReLU", 3)


def test_the_registry_is_shown(capsys):
    backward_functions.register("Cube", cube_rule)
    assert backward_functions.registry["Cube"] is cube_rule
    backward_functions.show_registry()
    shown = capsys.readouterr().out.splitlines()
    assert all(any(line.startswith(start) for line in shown) for start in ("Affine <", "Cube <function cube_rule"))
