"""Convolutions of few points keep their weights in the order that the kernel reads, until somebody changes these."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from nnrs import memory

# Winograd's way, bands with both orders of taps, windows as a matrix, one point.
LAYERS = {
    "winograd": ((48, 64, 3, 3), 12, {"pad": (1, 1)}),
    "winograd, one row of taps": ((48, 64, 1, 3), 28, {"pad": (0, 1)}),
    "rows": ((20, 24, 3, 3), 28, {"pad": (1, 1), "stride": (2, 2)}),
    "columns": ((64, 64, 3, 3), 7, {"pad": (1, 1), "dilation": (1, 2)}),
    "few": ((150, 140, 3, 3), 4, {"pad": (1, 1), "stride": (2, 2)}),
    "point": ((40, 70, 1, 1), 14, {"stride": (2, 2)}),
}


def convolved(x: np.ndarray, w: np.ndarray, pad=(0, 0), stride=(1, 1), dilation=(1, 1)) -> np.ndarray:
    """By NumPy, in double."""
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *((p, p) for p in pad)])
    sizes = [
        (n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(x.shape[2:], dilation, w.shape[2:], stride, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *sizes))
    for i in range(w.shape[2]):
        for j in range(w.shape[3]):
            rows, columns = (
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip((i, j), dilation, sizes, stride, strict=True)
            )
            y += np.einsum("bchw,oc->bohw", x[:, :, rows, columns], w[:, :, i, j].astype(np.float64))
    return y


class Layer:
    """A convolution that has run so often that its weights are kept."""

    def __init__(self, name: str) -> None:
        shape, side, self.options = LAYERS[name]
        self.rng = np.random.default_rng(7)
        self.x = nn.Variable.from_numpy_array(self.random(1, shape[1], side, side))
        self.w = nn.Variable.from_numpy_array(self.random(*shape), need_grad=True)
        self.y = F.convolution(self.x, self.w, **self.options)
        self.check(3)

    def random(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def check(self, runs: int = 1) -> None:
        for _ in range(runs):
            self.y.forward(clear_no_need_grad=True)
            got = self.y.data.get_data("r").copy()
        want = convolved(self.x.data.get_data("r"), self.w.data.get_data("r"), **self.options)
        np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * np.abs(want).max())


def part_is_written(layer: Layer) -> None:
    layer.w.d[3, 5] = 7


def solver_updates(layer: Layer) -> None:
    solver = S.Sgd(0.1)
    solver.set_parameters({"w": layer.w})
    layer.w.grad.fill(1.0)
    solver.update()


def another_thread_writes(layer: Layer) -> None:
    def write() -> None:
        layer.w.d = layer.random(*layer.w.shape)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()


def memory_is_shown(layer: Layer) -> None:
    shown = np.from_dlpack(layer.w.data)
    shown.flags.writeable and shown.fill(0.25)


CHANGES: dict[str, Callable[[Layer], object]] = {
    "assigned": lambda layer: setattr(layer.w, "d", layer.random(*layer.w.shape)),
    "a part": part_is_written,
    "filled": lambda layer: layer.w.data.fill(0.5),
    "zeroed": lambda layer: layer.w.data.zero(),
    "copied": lambda layer: layer.w.data.copy_from(nn.NdArray.from_numpy_array(layer.random(*layer.w.shape))),
    "another array": lambda layer: setattr(layer.w, "data", nn.NdArray.from_numpy_array(layer.random(*layer.w.shape))),
    "another type": lambda layer: layer.w.data.cast(np.float64).__setitem__(1, 2),
    "for writing": lambda layer: layer.w.data.get_data("w").fill(3),
    "a solver": solver_updates,
    "another thread": another_thread_writes,
    "dlpack": memory_is_shown,
    "in place": lambda layer: layer.w.data.__imul__(2),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", LAYERS)
def test_weights_that_change(name: str, change: str) -> None:
    layer = Layer(name)
    for _ in range(2):
        CHANGES[change](layer)
        layer.check(3)


@pytest.mark.parametrize("name", LAYERS)
def test_a_view_that_is_held(name: str) -> None:
    layer = Layer(name)
    view = layer.w.d
    for value in (1.0, 2.0):
        view[2] = value
        layer.check(3)
    view[3] = 5
    del view
    layer.check(3)


def test_loaded_parameters(tmp_path: Path) -> None:
    with nn.parameter_scope("", {}):
        layer = Layer("winograd")
        nn.parameter.set_parameter("w", layer.w)
        nn.save_parameters(str(tmp_path / "p.h5"))
        layer.w.d = 1
        layer.check(3)
        nn.load_parameters(str(tmp_path / "p.h5"))
        layer.check(3)


def test_one_array_in_two_convolutions() -> None:
    layer = Layer("winograd")
    other = F.convolution(layer.x, layer.w, stride=(2, 2))
    flat = F.convolution(F.reshape(layer.x, (1, 64, 1, 144)), F.reshape(layer.w, (48, 64, 1, 9), inplace=True))
    for _ in range(4):
        other.forward()
        flat.forward()
        layer.check()
    want = convolved(layer.x.data.get_data("r"), layer.w.data.get_data("r"), stride=(2, 2))
    np.testing.assert_allclose(other.d, want, rtol=0, atol=1e-3)


def test_bits_are_those_of_weights_that_are_not_kept() -> None:
    for name in LAYERS:
        layer = Layer(name)
        kept = layer.y.d.copy()
        layer.w.d = layer.w.d.copy()
        layer.y.forward()
        np.testing.assert_array_equal(layer.y.d, kept)


def test_exact_convolutions_in_turn() -> None:
    layer = Layer("winograd")
    for on in (True, False, True):
        before = nn.set_exact_convolution(on)
        layer.check(3)
        nn.set_exact_convolution(before)


def test_what_is_kept_counts_and_goes() -> None:
    layer = Layer("winograd")
    layer.y.data.clear()
    kept = memory.stats().live
    layer.w.data.zero()  # no memory at all
    size = 4 * int(np.prod(layer.w.shape))
    assert kept - memory.stats().live >= 2 * size
    layer.check(3)


def test_training_keeps_nothing() -> None:
    layer = Layer("winograd")
    solver = S.Sgd(0.01)
    solver.set_parameters({"w": layer.w})
    loss = F.mean(layer.y)
    for _ in range(2):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
    before = memory.stats().live
    for _ in range(3):
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.update()
    assert memory.stats().live <= before


@pytest.mark.parametrize("kind", ["float", "half"])
def test_a_context_of_exact_convolutions(kind: str) -> None:
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 64, 16, 16), (64, 64, 3, 3)))

    def run(backend: str) -> list[np.ndarray]:
        with nn.context_scope(nn.Context([backend])):
            v = [nn.Variable.from_numpy_array(a, need_grad=True) for a in (x, w)]
            y = F.convolution(*v, pad=(1, 1))
        y.forward()
        y.backward(1)
        return [y.d.copy(), *(a.g.copy() for a in v)]

    fast, exact = run(f"cpu:{kind}"), run(f"cpu:{kind}:exact")
    before = nn.set_exact_convolution(True)
    told = run(f"cpu:{kind}")
    nn.set_exact_convolution(before)
    for a, b in zip(exact, told, strict=True):
        np.testing.assert_array_equal(a, b)
    if kind == "float":
        assert any((a != b).any() for a, b in zip(exact, fast, strict=True)), "the other way rounds otherwise"


def test_backends_that_are_no_exact_ones() -> None:
    assert nn.Context(["cpu:double:exact"]).backend == ["cpu:double:exact"]
    for backend in ("cpu:float:exact:exact", "cudnn:float:exact", "cpu:exact:float", ":exact"):
        with pytest.raises(nn.Error, match="no backend of"):
            nn.Context([backend])
