"""`nn.grad`: its options, gradients of high order, and its second derivatives against those of `backward`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import function_harness as h
import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from each_case import each_case
from nnrs.ext_utils import get_extension_context


def leaf(values, need_grad=True):
    v = nn.Variable.from_numpy_array(np.asarray(values), need_grad=need_grad)
    v.g = 0
    return v


def values(grads):
    nn.forward_all(grads)
    return [g.d.tolist() for g in grads]


# What is reached


def test_zeros_where_no_gradient_comes():
    x, w, out = leaf([1.0, 2.0]), leaf([3.0, 4.0], need_grad=False), leaf([1.0])
    z = x * w
    z = z * z
    assert values(nn.grad([z], [x, w, out])) == [[18, 64], [0, 0], [0]]
    with nn.auto_forward():
        plain = nn.Variable.from_numpy_array([5.0])  # whose history is not kept
        assert [g.d.tolist() for g in nn.grad([plain * 2 + z], [plain, out])] == [[0], [0]]
    nn.grad([z], [out], bind_grad_output=True)[0].forward()
    assert out.g.tolist() == [0]
    mask = leaf([1.0, 2.0])
    assert values(nn.grad(F.greater_scalar(mask, 1.5) * x, [x, mask])) == [[0, 1], [0, 0]]
    i, table = nn.Variable.from_numpy_array(np.array([1, 0])), leaf([[1.0, 2], [3, 4]])
    assert values(nn.grad(F.sum(F.embed(i, table)), [table, i])) == [[[1, 1], [1, 1]], [0, 0]]


def test_places_have_no_gradient():
    x = leaf([3.0, 1.0, 2.0])
    order = F.sort(x, only_index=True)
    for ask in (lambda: nn.grad([F.sum(x), order], [x]), order.backward):
        with pytest.raises(nn.Error, match="sort: .*not differentiable"):
            ask()
    # Deeper in a graph gradients end at them.
    y = F.sum(x * F.gather(x, order))
    (g,) = nn.grad([y], [x])
    g.forward()
    np.testing.assert_array_equal(g.d, [1 + 2, 2 + 3, 3 + 1])  # x[order], and x of where each goes
    # Where NNabla's nn.grad gives zeros, so does this.
    assert values(nn.grad([F.max(x, only_index=True)], [x])) == [[0, 0, 0]]


def test_gradients_end_at_variables_that_need_none():
    x = leaf([1.0, 2.0])
    y = x * x
    z = y * y
    assert values(nn.grad(z, [y, x])) == [[2, 8], [4, 32]]
    y.need_grad = False
    assert values(nn.grad(z, [y, x])) == [[0, 0], [0, 0]]


def test_a_parameter_is_the_same_variable_wherever_it_is_used():
    nn.clear_parameters()
    x = nn.Variable.from_numpy_array(np.array([[1.0, 2.0]], np.float32))
    h = PF.affine(PF.affine(x, 2, name="a", with_bias=False), 2, name="a", with_bias=False)
    (g,) = nn.grad(F.sum(h), nn.get_parameters().values())
    w = nn.get_parameters()["a/affine/W"]
    w.g = 0
    nn.forward_all([h, g])
    F_sum = F.sum(h)
    F_sum.forward()
    F_sum.backward()
    np.testing.assert_allclose(g.d, w.g, rtol=1e-5)
    nn.clear_parameters()


# Options


@pytest.mark.parametrize(
    "given, factor",
    [
        (None, 1),
        (2, 2),
        (2.5, 2.5),
        (np.float32(3), 3),
        (np.array(2.0), 2),
        ("array", [1, 10]),
        ("nd", [1, 10]),
        ("v", [1, 10]),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_grad_outputs(given, factor, listed):
    a = np.array([1.0, 10.0], np.float32)
    kinds = {"array": a, "nd": nn.NdArray.from_numpy_array(a), "v": nn.Variable.from_numpy_array(a)}
    seed = kinds[given] if isinstance(given, str) else given
    x = leaf([1.0, 2.0])
    (g,) = nn.grad(x * x, x, grad_outputs=[seed] if listed else seed)
    g.forward()
    assert np.array_equal(g.d, np.array([2, 4]) * factor)


def test_several_outputs_are_summed():
    x = leaf([1.0, 2.0])
    outputs = [x * x, x * 3]
    assert values(nn.grad(outputs, [x])) == [[5, 7]]
    assert values(nn.grad(outputs, [x], grad_outputs=[2, np.array([1.0, 10.0])])) == [[7, 38]]
    assert values(nn.grad(outputs, [x], grad_outputs=[None, nn.Variable.from_numpy_array(np.zeros(2))])) == [[2, 4]]


@pytest.mark.parametrize("wrong", [[1, 2], [], np.ones(3), [np.ones((2, 1))], "a", [object()]])
def test_wrong_grad_outputs(wrong):
    x = leaf([1.0, 2.0])
    with pytest.raises((ValueError, TypeError), match="grad"):
        nn.grad(x * x, [x], grad_outputs=wrong)


def test_wrong_variables():
    x = leaf([1.0, 2.0])
    for call in (lambda: nn.grad(3, [x]), lambda: nn.grad([x * x], 3), lambda: nn.grad([x.data], [x])):
        with pytest.raises(TypeError, match="grad"):
            call()


def test_persistent_outputs():
    x = leaf([1.0, 2.0])
    y, z = x * x, x * 3
    nn.grad([y, z], [x])
    assert y.persistent and z.persistent
    nn.grad([y, z], [x], persistent_outputs=[False, True])
    assert not y.persistent and z.persistent
    with pytest.raises(ValueError, match="persistent_outputs"):
        nn.grad([y, z], [x], persistent_outputs=[True])


def test_solvers_use_bound_gradients():
    x = leaf([1.0, 2.0])
    (g,) = nn.grad(F.sum(x * x), [x], bind_grad_output=True)
    g.forward()
    assert np.shares_memory(x.g, g.d)
    solver = S.Sgd(0.5)
    solver.set_parameters({"x": x})
    solver.update()
    assert x.d.tolist() == [0, 0]


# High orders


def network(x, w1, w2):
    return F.sum(F.tanh(F.affine(F.sigmoid(F.affine(x, w1)), w2)))


def third(x, w1, w2, direction):
    """The second derivative along `direction` twice, by nn.grad, and the third as its gradient."""
    d = nn.Variable.from_numpy_array(direction)
    y = network(x, w1, w2)
    (g,) = nn.grad(y, [w1])
    (hv,) = nn.grad(F.sum(g * d), [w1])
    s = F.sum(hv * d)
    return s, nn.grad(s, [w1, w2, x])


def test_third_derivatives_of_a_network():
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(s) for s in ((2, 3), (3, 4), (4, 2))]
    direction = rng.standard_normal((3, 4))
    with nn.context_scope(get_extension_context("cpu", type_config="double")):
        x, w1, w2 = (leaf(a) for a in arrays)
        s, grads = third(x, w1, w2, direction)
        nn.forward_all(grads)
        step = 1e-4
        for v, g in zip((w1, w2, x), grads, strict=True):
            for place in np.ndindex(v.shape):
                kept, ends = v.d[place], []
                for sign in (1, -1):
                    v.d[place] = kept + sign * step
                    s.forward()
                    ends.append(float(s.d))
                v.d[place] = kept
                assert abs((ends[0] - ends[1]) / (2 * step) - g.d[place]) < 1e-6


def test_any_order():
    x = leaf([0.3, 1.1])
    y = F.sin(x)
    for _ in range(6):
        (y,) = nn.grad([y], [x])
    y.forward()
    np.testing.assert_allclose(y.d, -np.sin([0.3, 1.1]), rtol=1e-5)
    y.backward()
    np.testing.assert_allclose(x.g, -np.cos([0.3, 1.1]), rtol=1e-5)


def twice(case):
    """Cases with a second derivative."""
    return case.differentiable and case.second


@each_case(h.targets(wanted=twice))
def test_second_derivatives_of_grad_are_those_of_backward(target):
    inputs = target.inputs("double")
    wants = target.case.wants_grad(inputs)
    places = [k for k, want in enumerate(wants) if want]
    if not places:
        pytest.skip("no input has a gradient")
    with h.scope("double"):
        leaves = h.variables(inputs, wants)
        chosen = h.differentiated(target, target.call(leaves))
        ws = h.weights([y.shape for y in chosen], seed=1)
        gxs = nn.grad(chosen, [leaves[p] for p in places], grad_outputs=[h.variable(w) for w in ws])
        us = h.weights([g.shape for g in gxs], seed=2)
        reached = [F.sum(g * h.variable(u)) for g, u in zip(gxs, us, strict=True)]
        total = F.add_n(*reached)
        total.forward()
        total.backward()
        seconds = nn.grad(total, [leaves[p] for p in places])
        for p, g in zip(places, seconds, strict=True):
            expected = leaves[p].g
            got = np.zeros_like(expected) if g is None else h.run([g])[0]
            assert h.error(got, expected) <= 1e-10


def test_the_gradient_penalty_example_trains():
    path = Path(__file__).parent.parent / "examples" / "gradient_penalty.py"
    spec = importlib.util.spec_from_file_location("gradient_penalty", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    losses, penalties = example.train(steps=25, weight=0.1, log=False)
    assert losses[-1] < 0.8 * losses[0] and penalties[-1] < 0.5 * max(penalties)
    assert np.isfinite(losses).all() and np.isfinite(penalties).all()
    nn.clear_parameters()


def test_parts_without_a_gradient_of_their_own_keep_their_history_in_auto_forward():
    """As in NNabla: a gradient that runs again reads what there is now everywhere."""
    v = leaf([[1.0, -2.0]])
    with nn.auto_forward():
        with nn.no_grad():
            w = v + v
        u = F.abs(v)
        y = u * w
        g, _ = nn.grad([y], [v, u])
    assert g.d.tolist() == [[2.0, 4.0]]
    w.d = [[5.0, 7.0]]
    g.forward()
    assert g.d.tolist() == [[5.0, -7.0]]


@pytest.mark.parametrize("auto", [False, True])
def test_a_gradient_that_is_the_seed_itself_can_run(auto):
    """For an output itself, and where the rule passes on what it gets; it follows the seed."""
    x, seed = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    with nn.auto_forward(auto):
        y = F.identity(x)
        for made in (nn.grad([y], [x, y], [seed]), nn.grad([y], [y, x], seed), nn.grad([x], [x], [seed])):
            for g in made:
                g.forward()
                assert g.d.tolist() == [3.0, 4.0]
        g = nn.grad([y], [y])[0]
        g.forward()
        assert g.d.tolist() == [1.0, 1.0]
    g = nn.grad([y], [y], [seed], bind_grad_output=True)[0]
    seed.d = [5.0, 6.0]
    g.forward()
    assert g.d.tolist() == y.g.tolist() == [5.0, 6.0]
