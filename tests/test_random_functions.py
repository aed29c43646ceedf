"""Random functions that take inputs: derivatives see what forward drew; streams; what is written, and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from backend import BACKEND
from nnrs.ext_utils import get_extension_context

Array = np.ndarray
Make = Callable[[nn.Variable], nn.Variable]

LINEAR: dict[str, Make] = {
    "crop": lambda x: F.random_crop(x, (3, 4)),
    "crop samples": lambda x: F.random_crop(x, (3, 2, 3, 4)),
    "flip": lambda x: F.random_flip(x, (2, 3)),
    "flip samples": lambda x: F.random_flip(x, (0, 1, 3), base_axis=2),
    "nearest": lambda x: F.random_shift(x, (2, 3)),
    "reflect": lambda x: F.random_shift(x, (9, 3), "reflect"),
    "constant": lambda x: F.random_shift(x, (2, 3), "constant"),
    "shift samples": lambda x: F.random_shift(x, (2, 1, 1, 3), "nearest"),
    "shift one sample": lambda x: F.random_shift(x, (2, 1, 1, 3), "reflect", base_axis=0),
    "erase": lambda x: F.random_erase(x, 1.0, (0.2, 0.5), replacements=(0.0, 0.0), n=2),
    "erase channels": lambda x: F.random_erase(x, 1.0, (0.2, 0.5), replacements=(0.0, 0.0), share=False),
    "erase channel_last": lambda x: F.random_erase(
        x, 1.0, (0.2, 0.5), replacements=(0.0, 0.0), channel_last=True, share=False
    ),
}


@pytest.fixture(autouse=True)
def context() -> Any:
    nn.seed(3)
    with nn.context_scope(get_extension_context(BACKEND, type_config="double")):
        yield


def leaf(*shape: int, seed: int = 0, need_grad: bool = True) -> nn.Variable:
    values = np.random.default_rng(seed).standard_normal(shape)
    return nn.Variable.from_numpy_array(values).apply(need_grad=need_grad)


@pytest.mark.parametrize("name", LINEAR)
def test_backward_sees_the_draw_of_forward(name: str) -> None:
    """What is linear has the same product on both sides: y gy = x gx."""
    x = leaf(4, 3, 5, 6)
    y = LINEAR[name](x)
    y.persistent = True
    seen = set()
    for k in range(4):
        y.forward(clear_no_need_grad=k % 2 == 1)
        gy = np.random.default_rng(k).standard_normal(y.shape)
        x.g = 0
        y.backward(gy)
        assert np.sum(y.d * gy) == pytest.approx(np.sum(x.d * x.g), rel=1e-9)
        first = x.g.copy()
        y.backward(gy)
        np.testing.assert_allclose(x.g, 2 * first, rtol=1e-12)
        seen.add(y.d.tobytes())
    assert len(seen) == 4


@pytest.mark.parametrize("name", LINEAR)
def test_gradients_as_graphs_see_the_draw_of_forward(name: str) -> None:
    x, gy = leaf(4, 3, 5, 6), None
    y = LINEAR[name](x)
    y.persistent = True
    gy = leaf(*y.shape, seed=1)
    (gx,) = nn.grad([y], [x], grad_outputs=[gy])
    z = F.sum(gx * gx * x)
    gx.persistent = True
    for _ in range(3):
        z.forward()
        assert np.sum(y.d * gy.d) == pytest.approx(np.sum(x.d * gx.d), rel=1e-9)
        gy.g = 0
        z.backward()
        # z is of degree two in gy.
        assert np.sum(gy.d * gy.g) == pytest.approx(2 * float(z.d), rel=1e-9)


@pytest.mark.parametrize("name", LINEAR)
def test_recomputed_values_are_those_of_forward(name: str) -> None:
    x = leaf(4, 3, 5, 6)
    with nn.recompute(True):
        h = LINEAR[name](x)
        y = F.sum(F.exp(h) * 1.0)
    for _ in range(3):
        nn.seed(5)
        y.forward(clear_no_need_grad=True)
        x.g = 0
        y.backward(clear_buffer=True)
        value, gx = float(y.d), x.g.copy()
        nn.seed(5)
        fixed = LINEAR[name](x)
        z = F.sum(F.exp(fixed))
        z.forward()
        x.g = 0
        z.backward()
        assert value == pytest.approx(float(z.d))
        np.testing.assert_allclose(gx, x.g, rtol=1e-9)


def test_what_is_erased_can_have_a_gradient() -> None:
    x = leaf(3, 2, 6, 6)
    y = F.random_erase(x, 1.0, ste_fine_grained=False)
    y.forward()
    x.g = 1
    y.backward(2.0)
    assert np.all(x.g == 3)


@pytest.mark.parametrize("replace", [True, False])
def test_choices_give_gradients_to_elements_and_weights(replace: bool) -> None:
    """As in NNabla, to weights the same as to elements."""
    x, w = leaf(3, 2, 9), leaf(3, 2, 9)
    x.d = np.arange(54).reshape(3, 2, 9)
    w.d = np.random.default_rng(2).random((3, 2, 9))
    y = F.random_choice(x, w, (2, 3), replace)
    for _ in range(3):
        y.forward()
        gy = np.random.default_rng(4).standard_normal(y.shape)
        expected = np.zeros(54)
        np.add.at(expected, y.d.astype(int).ravel(), gy.ravel())
        x.g, w.g = 1, 2
        y.backward(gy)
        np.testing.assert_allclose(x.g.ravel(), expected + 1, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(w.g.ravel(), expected + 2, rtol=1e-12, atol=1e-12)
    (gx,) = nn.grad([y], [x], grad_outputs=[nn.Variable.from_numpy_array(gy)])
    nn.forward_all([y, gx])
    expected = np.zeros(54)
    np.add.at(expected, y.d.astype(int).ravel(), gy.ravel())
    np.testing.assert_allclose(gx.d.ravel(), expected, rtol=1e-12, atol=1e-12)


STREAMS: dict[str, Callable[[int], nn.Variable]] = {
    "binomial": lambda s: F.rand_binomial(100, 0.3, (50,), seed=s),
    "beta": lambda s: F.rand_beta(2, 3, (50,), seed=s),
    "gamma": lambda s: F.rand_gamma(0.7, 3, (50,), seed=s),
    "choice": lambda s: F.random_choice(F.arange(0, 50), F.constant(1, (50,)), (30,), seed=s),
    "permutation": lambda s: F.random_choice(F.arange(0, 50), F.constant(1, (50,)), (50,), False, seed=s),
    "crop": lambda s: F.random_crop(F.reshape(F.arange(0, 90), (3, 30)), (4,), seed=s),
    "flip": lambda s: F.random_flip(F.reshape(F.arange(0, 90), (30, 3)), seed=s),
    "shift": lambda s: F.random_shift(F.reshape(F.arange(0, 90), (3, 30)), (9,), seed=s),
    "erase": lambda s: F.random_erase(F.constant(0, (3, 2, 6, 6)), 1.0, seed=s),
    "augmentation": lambda s: F.image_augmentation(F.rand(shape=(2, 2, 6, 6), seed=9), noise=1, angle=0.5, seed=s),
}


@pytest.mark.parametrize("name", STREAMS)
def test_streams(name: str) -> None:
    """A seed of its own is a stream of its own; without one the global stream goes on, which `nn.seed` starts."""

    def runs(seed: int, count: int = 3) -> list[bytes]:
        y = STREAMS[name](seed)
        found = []
        for _ in range(count):
            y.forward()
            found.append(y.d.tobytes())
        return found

    assert len(set(runs(4))) == 3 and runs(4) == runs(4) != runs(5)
    nn.seed(7)
    first = runs(-1)
    assert len(set(first)) == 3 and runs(-1) != first
    nn.seed(7)
    assert runs(-1) == first


@pytest.mark.parametrize("name", STREAMS)
def test_numbers_are_the_same_for_any_number_of_threads_and_device(name: str) -> None:
    def made(context: Any, threads: int) -> Array:
        before = nn.get_num_threads()
        nn.set_num_threads(threads)
        try:
            with nn.context_scope(context):
                y = STREAMS[name](4)
            y.forward()
            return y.d.copy()
        finally:
            nn.set_num_threads(before)

    cpu = get_extension_context("cpu")
    one = made(cpu, 1)
    np.testing.assert_array_equal(made(cpu, 2), one)
    np.testing.assert_allclose(made(get_extension_context(BACKEND), 2), one, rtol=1e-5, atol=1e-5)


def test_noise_keeps_its_gradient() -> None:
    x, w = leaf(2, 3), leaf(2, 3, seed=1)
    y = F.vat_noise(x, w, eps=2.0)
    y.forward()
    w.d, x.g, w.g = 9, 3, 4
    y.backward(np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(w.d, 2 * np.arange(6.0).reshape(2, 3))
    assert np.all(x.g == 3) and np.all(w.g == 4)


@pytest.mark.parametrize(("of_x", "of_w"), [(True, False), (False, True), (False, False)])
def test_noise_keeps_its_gradient_where_one_flows(of_x: bool, of_w: bool) -> None:
    x, w = leaf(2, 3, need_grad=of_x), leaf(2, 3, need_grad=of_w)
    y = F.vat_noise(x, w)
    y.forward()
    w.d = 9
    y.backward(5.0)
    assert np.all(w.d == (5 if of_x or of_w else 9))


def test_a_mean_runs() -> None:
    nn.clear_parameters()
    x = leaf(4, 3, 2)
    y = PF.mean_subtraction(x)
    mean, t = (nn.get_parameters(grad_only=False)[f"mean_subtraction/{name}"] for name in ("mean", "t"))
    batches = [np.random.default_rng(k).standard_normal((4, 3, 2)) for k in range(3)]
    for k, batch in enumerate(batches):
        x.d = batch
        y.forward()
        expected = np.mean(batches[: k + 1], (0, 1))
        np.testing.assert_allclose(mean.d, expected, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(y.d, batch - expected, rtol=1e-6, atol=1e-9)
        assert t.d == k + 1
        x.g = 0
        y.backward(2.0)
        np.testing.assert_allclose(x.g, 2 * (1 - 1 / (4 * (k + 1))), rtol=1e-12)
    with nn.parameter_scope(""):
        z = PF.mean_subtraction(x, update_running_mean=False)
    z.forward()
    assert t.d == 3
    np.testing.assert_allclose(z.d, x.d - mean.d, rtol=1e-12)


def test_a_recomputed_mean_moves_once() -> None:
    nn.clear_parameters()
    x = leaf(4, 3)
    with nn.recompute(True):
        y = F.sum(F.exp(PF.mean_subtraction(x) * 1.0))
    for k in range(3):
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)
        assert nn.get_parameters(grad_only=False)["mean_subtraction/t"].d == k + 1


def test_boxes_that_are_left_are_counted_when_the_function_is_called() -> None:
    boxes = nn.Variable.from_numpy_array(np.float64([[[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 5, 1, 6]]]))
    scores = nn.Variable.from_numpy_array(np.float64([[[0.9, 0.8, 0.7]]]))
    y = F.onnx_non_max_suppression(boxes, scores, 0, 9, 0.5)
    assert y.shape == (2, 3) and y.parent.arguments == {
        "center_point_box": 0,
        "max_output_boxes_per_class": 9,
        "iou_threshold": 0.5,
        "score_threshold": 0.0,
    }
    y.forward()
    np.testing.assert_array_equal(y.d, [[0, 0, 0], [0, 0, 2]])
    assert y.data.dtype == np.uint64
    scores.d = [[[0.9, -0.8, -0.7]]]
    if BACKEND == "cpu":
        with pytest.raises(ValueError, match="2 boxes that are left, got 1"):
            y.forward()
        return
    y.forward()  # looking at the number would make the host wait
    np.testing.assert_array_equal(y.d, [[0, 0, 0], [2**64 - 1] * 3])


@pytest.mark.parametrize("make", [lambda x: F.nms_detection2d(x), lambda x: F.image_augmentation(x)])
def test_functions_without_a_gradient_leave_it_alone(make: Make) -> None:
    x = leaf(2, 3, 7)
    y = make(x)
    y.forward()
    x.g = 3
    y.backward()
    assert np.all(x.g == 3)
