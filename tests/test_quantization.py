"""What the quantizing functions and layers leave in other arrays, pass by pass, and gradients of their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

RNG = np.random.RandomState(0)
W = RNG.randn(4, 3).round(3)
IMAGES, FILTERS = RNG.randn(2, 2, 5, 4), RNG.randn(3, 2, 2, 2)


def variable(values: Any, need_grad: bool = True) -> Any:
    return nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=need_grad)


@pytest.fixture(autouse=True)
def no_parameters() -> Any:
    nn.clear_parameters()
    yield
    nn.clear_parameters()


@pytest.mark.parametrize("name", ["fixed_point_quantize", "pow2_quantize"])
def test_what_is_turned_off_is_x_itself(name: str) -> None:
    x = variable(W)
    assert getattr(F, name)(x, quantize=False) is x
    assert F.min_max_quantize(x, *[variable([[0]])] * 4, quantize=False) is x


def test_outputs_of_min_max_quantize_may_be_given() -> None:
    x, into = variable(W), nn.NdArray(W.shape)
    y = F.min_max_quantize(x, *(variable([[v]]) for v in (-2, 2, 0, 15)), outputs=[into])
    y.forward()
    assert y.data is into or (into.data == y.d).all()
    assert len(np.unique(into.data)) > 3


LAYERS: dict[str, tuple[np.ndarray, np.ndarray, Callable[..., Any]]] = {
    "affine": (RNG.randn(2, 4), W, F.affine),
    "convolution": (IMAGES, FILTERS, F.convolution),
}


def effective(name: str, w: np.ndarray) -> np.ndarray:
    """What a layer works with instead of the weight w."""
    if "connect" in name:
        return np.sign(w)
    axes = 0 if "affine" in name else (1, 2, 3)
    return np.sign(w) * np.abs(w).mean(axes, keepdims=True)


def second(y: Any, x: Any, w: Any) -> list[np.ndarray]:
    """Gradients of a number that depends on both gradients of y."""
    gx, gw = nn.grad([F.sum(y**2)], [x, w])
    top = F.sum(gx**2) + F.sum(gw**3)
    top.forward()
    for v in (x, w):
        v.g = 0
    top.backward()
    return [gx.d.copy(), gw.d.copy(), x.g.copy(), w.g.copy()]


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("family", ["binary_connect", "binary_weight"])
def test_gradients_of_any_order_are_those_of_the_layer_at_its_effective_weight(family: str, kind: str) -> None:
    x0, w0, layer = LAYERS[kind]
    scales = [variable(np.zeros(3), False)] if family == "binary_weight" else []
    x, w, signs = variable(x0), variable(w0), variable(np.zeros(w0.shape), False)
    got = second(getattr(F, f"{family}_{kind}")(x, w, signs, *scales), x, w)
    x, e = variable(x0), variable(effective(f"{family}_{kind}", w0))
    for a, b in zip(got, second(layer(x, e), x, e), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4)
    np.testing.assert_array_equal(signs.d, np.sign(w0))


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("family", ["binary_connect", "binary_weight", "inq"])
def test_backward_is_the_rule(family: str, kind: str) -> None:
    x0, w0, _ = LAYERS[kind]
    more = [variable(np.zeros(3), False)] if family == "binary_weight" else []
    b = variable(RNG.randn(3))
    x, w = variable(x0), variable(w0)
    y = getattr(F, f"{family}_{kind}")(x, w, variable(np.zeros(w0.shape), False), *more, b)
    gy = variable(RNG.randn(*y.shape), False)
    rule = nn.grad([y], [x, w, b], grad_outputs=[gy])
    nn.forward_all([y, *rule])
    for v in (x, w, b):
        v.g = 0
    y.backward(gy.data)
    for v, g in zip((x, w, b), rule, strict=True):
        np.testing.assert_allclose(v.g, g.d, rtol=1e-5, atol=1e-5)


# What NNabla 1.39 gives: weights and indicators after each pass; before the next, all weights are set to 0.01 less.
FIRST = [1.764, 0.4, 0.979, 2.241, 1.868, -0.977, 0.95, -0.151, -0.103, 0.411, 0.144, 0.334]
PASSES = [
    ([1.764, 0.4, 0.979, 2.241, 1.868, -0.977, 0.95, -0.151, -0.103, 0.411, 0.144, 0.334], "000000000000"),
    ([2, 0.39, 1, 2, 2, -1, 1, -0.161, -0.113, 0.401, 0.134, 0.324], "101111100000"),
    ([2, 0.38, 1, 2, 2, -1, 1, -0.171, -0.123, 0.391, 0.124, 0.314], "101111100000"),
    ([2, 0.25, 1, 2, 2, -1, 1, -0.181, -0.133, 0.5, 0.114, 0.25], "111111100101"),
    ([2, 0.25, 1, 2, 2, -1, 1, -0.25, -0.25, 0.5, 0, 0.25], "111111111111"),
    ([2, 0.25, 1, 2, 2, -1, 1, -0.25, -0.25, 0.5, 0, 0.25], "111111111111"),
]


def test_inq_fixes_weights_by_and_by() -> None:
    x, w, fixed = variable(RNG.randn(5, 4)), variable(np.reshape(FIRST, (4, 3))), variable(np.zeros((4, 3)), False)
    y = F.inq_affine(x, w, fixed, num_bits=4, inq_iterations=(1, 3, 4))
    for weights, indicators in PASSES:
        y.forward()
        np.testing.assert_allclose(w.d.ravel(), weights, atol=1e-6)
        assert "".join(str(int(i)) for i in fixed.d.ravel()) == indicators
        np.testing.assert_allclose(y.d, x.d @ w.d, rtol=1e-5, atol=1e-5)
        w.g = 0
        y.backward()
        np.testing.assert_allclose(w.g, x.d.T @ np.ones((5, 3)), rtol=1e-5, atol=1e-5)
        w.d = w.d - 0.01


@pytest.mark.parametrize("delta", [0.1, 0.3, 0.7, 1 / 3, 1e-3, 0.0625, 3.0])
def test_halves_and_limits_of_fixed_point_numbers_are_those_of_single_precision(delta: float) -> None:
    """Also where no float is the step, so that a half of it is none: as in NNabla, bit by bit."""
    step, halves = np.float32(delta), (np.arange(-140, 140) + 0.5) * delta
    x0 = np.float32(halves)
    x0 = np.concatenate([x0, np.nextafter(x0, np.float32(np.inf)), np.nextafter(x0, np.float32(-np.inf))])
    y = F.fixed_point_quantize(variable(x0), n=8, delta=delta)
    y.forward()
    whole = np.sign(x0) * np.floor(np.float64(np.abs(x0) / step) + 0.5)
    np.testing.assert_array_equal(y.d, np.float32(np.clip(whole, -127, 127)) * step)


# What NNabla 1.39 gives: weights, indicators before, iterations, indicators after each pass.
LAST_ONE = [
    ([0.7], "0", (0, 3), "1 1 1 1"),
    ([0.7, 0.3], "00", (0, 1, 2, 3), "10 10 10 11"),
    ([0.3, 0.7], "00", (0, 1, 3), "01 01 01 11"),
    ([0.7, 0.3, 0.5], "000", (0, 1, 2, 4), "100 101 101 101 111"),
    ([0.1, 0.5, 0.7], "110", (0, 2), "111 111 111"),
    ([0.1, 0.5, 0.7], "101", (0, 2), "101 101 111"),
    ([0.5, 0.5], "01", (0, 2), "11 11 11"),
    ([0.5, 0.5], "10", (0, 2), "10 10 11"),
]


@pytest.mark.parametrize(("weights", "given", "at", "after"), LAST_ONE)
def test_the_last_free_weight_waits_for_the_last_iteration_unless_it_is_the_largest(weights, given, at, after) -> None:
    w, fixed = variable([weights]), variable([[int(i) for i in given]], False)
    y = F.inq_affine(variable([[1.0]]), w, fixed, inq_iterations=at)
    for indicators in after.split():
        y.forward()
        assert "".join(str(int(i)) for i in fixed.d.ravel()) == indicators


def test_inq_at_random_fixes_each_free_weight_with_probability_one_half() -> None:
    n = 2000
    w, fixed = variable(np.linspace(-1, 1, n)[None]), variable(np.zeros((1, n)), False)
    y = F.inq_affine(variable([[1.0]]), w, fixed, inq_iterations=(0, 1, 9), selection_algorithm="random", seed=3)
    for share in (0.5, 0.75, 0.75):
        y.forward()
        assert abs(fixed.d.mean() - share) < 5 * 0.5 / np.sqrt(n)


def test_what_inq_has_fixed_stays_whatever_is_written_there() -> None:
    x, w, fixed = variable(np.ones((2, 3))), variable([[2.1], [0.5], [0.3]]), variable(np.zeros((3, 1)), False)
    y = F.inq_affine(x, w, fixed, inq_iterations=(0, 9))
    y.forward()
    assert w.d.ravel().tolist() == pytest.approx([2, 0.5, 0.3])
    w.d, fixed.d = 5.3, 0
    y.forward()
    assert w.d.ravel().tolist() == pytest.approx([2, 5.3, 5.3]) and fixed.d.ravel().tolist() == [1, 0, 0]
    fixed.d = [[1], [1], [0]]
    y.forward()
    assert w.d.ravel().tolist() == pytest.approx([2, 4, 5.3])


def test_passes_of_inq_count_from_0_for_other_shapes() -> None:
    x, w, fixed = variable(np.ones((2, 3))), variable([[2.1], [0.5], [0.3]]), variable(np.zeros((3, 1)), False)
    y = F.inq_affine(x, w, fixed, inq_iterations=(1,))
    y.forward()
    x.reset_shape((5, 3), True)
    x.d = 1
    y.forward()
    assert not fixed.d.any()
    y.forward()
    assert fixed.d.all() and w.d.ravel().tolist() == [2, 0.5, 0.25]


def test_the_random_half_of_inq_follows_the_seed() -> None:
    def chosen(seed: int) -> np.ndarray:
        w, fixed = variable(np.ones((400, 1))), variable(np.zeros((400, 1)), False)
        at = {"inq_iterations": (0, 9), "selection_algorithm": "random", "seed": seed}
        F.inq_affine(variable(np.ones((1, 400))), w, fixed, **at).forward()
        return fixed.d.ravel()

    assert (chosen(3) == chosen(3)).all() and (chosen(3) != chosen(4)).any()
    assert 140 < chosen(3).sum() < 260
    nn.random.seed_all(5) if hasattr(nn.random, "seed_all") else nn.seed(5)
    assert 140 < chosen(-1).sum() < 260


def train(layer: Callable[..., Any], steps: int = 3, **args: Any) -> Any:
    """A few steps of training of a layer on (8, 4) numbers; its last input and output."""
    nn.seed(313)
    x = variable(RNG.randn(8, 4), False)
    y = layer(x, 3, **args)
    loss = F.mean((y - 1) ** 2)
    solver = S.Momentum(0.1)
    solver.set_parameters(nn.get_parameters())
    for _ in range(steps):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
    loss.forward()
    return x, y


@pytest.mark.parametrize(
    ("layer", "quantize"),
    [
        (PF.fixed_point_quantized_affine, F.fixed_point_quantize),
        (PF.pow2_quantized_affine, lambda w: F.pow2_quantize(w, with_zero=False, m=2)),
        (PF.pruned_affine, F.prune),
    ],
)
def test_a_parameter_holds_what_the_layer_works_with(layer: Any, quantize: Any) -> None:
    x, y = train(layer)
    own = {name.split("/")[-1]: v for name, v in nn.get_parameters(grad_only=False).items()}
    for name in ("W", "b"):
        expected = quantize(variable(own[name].d))
        expected.forward()
        np.testing.assert_array_equal(own[name + "_q"].d, expected.d)
    np.testing.assert_allclose(y.d, x.d @ own["W_q"].d + own["b_q"].d, rtol=1e-5, atol=1e-5)
    assert not own["W_q"].need_grad


@pytest.mark.parametrize("follows", [False, True])
def test_min_max_quantized_layers_learn_their_range_or_follow_the_weight(follows: bool) -> None:
    x, y = train(PF.min_max_quantized_affine, w_min_max=follows, ql_max_w=15)
    own = nn.get_parameters(grad_only=False)
    scope = "min_max_quantized_affine/"
    low = own[scope + "min_max_quantize_w/min_max_quantize/qr_min"]
    assert low.need_grad
    w = own[scope + "W"].d
    assert low.d == (w.min() if follows else -2)
    assert len(np.unique(own[scope + "W_q"].d)) <= 16
    expected = x.d @ own[scope + "W_q"].d + own[scope + "b_q"].d
    np.testing.assert_allclose(y.d, expected, rtol=1e-5, atol=1e-5)


def test_a_range_that_is_too_small_is_learned() -> None:
    x = variable(RNG.randn(40, 4) * 3, False)
    y = PF.min_max_quantize(x, ql_max=15, qr_min_init=nn.initializer.ConstantInitializer(-1))
    loss = F.mean((y - x) ** 2)
    solver = S.Sgd(0.5)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for _ in range(20):
        loss.forward()
        losses.append(float(loss.d))
        solver.zero_grad()
        loss.backward()
        solver.update()
    assert losses[-1] < losses[0] / 2 and nn.get_parameters()["min_max_quantize/qr_min"].d < -2


@pytest.mark.parametrize(("layer", "scope"), [(PF.binary_connect_affine, "bicon"), (PF.binary_weight_affine, "bwn")])
def test_binary_layers_leave_signs_and_scales_in_their_parameters(layer: Any, scope: str) -> None:
    x, y = train(layer)
    own = {name.split("/")[-1]: v.d for name, v in nn.get_parameters(grad_only=False).items()}
    assert next(iter(nn.get_parameters())).startswith(scope)
    np.testing.assert_array_equal(own["Wb"], np.sign(own["W"]))
    scale = np.abs(own["W"]).mean(0) if scope == "bwn" else 1
    if scope == "bwn":
        np.testing.assert_allclose(own["alpha"], scale, rtol=1e-5)
    np.testing.assert_allclose(y.d, x.d @ (own["Wb"] * scale) + own["b"], rtol=1e-5, atol=1e-5)


def test_inq_layers_train_what_is_not_fixed() -> None:
    _, y = train(PF.inq_affine, steps=6, inq_iterations=(1, 4), selection_algorithm="largest_abs")
    own = {name.split("/")[-1]: v.d for name, v in nn.get_parameters(grad_only=False).items()}
    assert (
        own["I"].all()
        and (np.exp2(np.round(np.log2(np.abs(own["W"][own["W"] != 0])))) == np.abs(own["W"][own["W"] != 0])).all()
    )


def test_groups_and_channel_last_are_the_layers() -> None:
    x = variable(RNG.randn(2, 6, 5, 5), False)
    for layer in (PF.binary_connect_convolution, PF.binary_weight_convolution, PF.inq_convolution):
        assert layer(x, 4, (3, 3), group=2).shape == (2, 4, 3, 3)
    x = variable(RNG.randn(2, 5, 5, 6), False)
    for layer in (PF.fixed_point_quantized_convolution, PF.min_max_quantized_convolution, PF.pruned_convolution):
        y = layer(x, 4, (3, 3), channel_last=True)
        y.forward()
        assert y.shape == (2, 3, 3, 4)


@pytest.mark.parametrize("value", ["a", None, [1]])
def test_levels_are_numbers_or_variables(value: Any) -> None:
    with pytest.raises(TypeError, match="argument 'ql_min': expected a number or a Variable"):
        PF.min_max_quantize(variable(W), ql_min=value)
    with pytest.raises(TypeError, match="argument 'outputs'"):
        PF.min_max_quantize(variable(W), outputs=[3])
    assert not nn.get_parameters(grad_only=False)


@pytest.mark.parametrize("name", ["fixed_point_quantize", "pow2_quantize", "min_max_quantize"])
def test_what_is_turned_off_is_still_an_array(name: str) -> None:
    own = [variable([[0]])] * 4 if name == "min_max_quantize" else []
    with pytest.raises(TypeError, match=f"^{name}: argument 'x'"):
        getattr(F, name)("a", *own, quantize=False)
    with pytest.raises(nn.Error, match=f"^{name}: argument 'quantize'"):
        getattr(F, name)(variable(W), *own, quantize=np.ones(2))


def test_indicators_of_inq_are_whole_numbers() -> None:
    w, fixed = variable([[0.9], [0.3]]), variable([[0], [0]])
    y = F.inq_affine(variable([[1.0, 1.0]]), w, fixed, inq_iterations=(1,))
    for sum_of_fixed in (0, 2):
        y.forward()
        assert fixed.data.dtype == np.int32 and fixed.d.sum() == sum_of_fixed


def test_wrong_ranges_and_outputs_of_min_max_quantize() -> None:
    x, into, own = variable(W), nn.NdArray(W.shape), [variable([[v]]) for v in (-2, 2, 0, 15)]
    for outputs in ([into], 5):
        with pytest.raises(nn.Error, match="^min_max_quantize: argument 'qr_min'"):
            F.min_max_quantize(x, None, None, None, None, outputs=outputs)
    for outputs in (5, [], [into, into], "abc"):
        with pytest.raises(nn.Error, match="^min_max_quantize: argument 'outputs'"):
            F.min_max_quantize(x, *own, outputs=outputs)
