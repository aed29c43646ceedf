"""Convolutions that do what comes after them where they write: running statistics, functions of elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from test_kept_weights import convolved

Network = Callable[[nn.Variable], nn.Variable]

# (maps, kernel, stride, groups), and the shape of x: Winograd's way, bands, points, windows as a matrix, depthwise.
LAYERS = {
    "winograd": ((64, 3, 1, 1), (3, 32, 15, 14)),
    "winograd, small": ((64, 3, 1, 1), (5, 64, 7, 7)),
    "winograd, one row of taps": ((64, (1, 3), 1, 1), (3, 32, 5, 102)),
    "rows": ((33, 3, 2, 1), (2, 20, 28, 27)),
    "first": ((32, 7, 2, 1), (1, 3, 33, 47)),
    "points": ((48, 1, 1, 1), (2, 16, 13, 9)),
    "points, stride": ((48, 1, 2, 1), (2, 16, 13, 9)),
    "matrix": ((160, 3, 2, 1), (1, 150, 4, 4)),
    "depthwise": ((24, 3, 1, 24), (2, 24, 30, 31)),
    "groups": ((64, 3, 1, 2), (2, 64, 9, 11)),
}
AFTER: dict[str, Network] = {
    "nothing": lambda h: h,
    "relu": F.relu,
    "relu6": lambda h: F.minimum_scalar(F.relu(h), 6.0),
    "swish": F.swish,
    "scaled maps": lambda h: F.tanh(h * F.reshape(F.arange(0, h.shape[1]), (1, h.shape[1], 1, 1))),
}
RUNS = {"clear_buffer": {"clear_buffer": True}, "clear_no_need_grad": {"clear_no_need_grad": True}, "plain": {}}


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


Kernel = int | tuple[int, int]


def sizes_of(kernel: Kernel) -> tuple[tuple[int, int], tuple[int, int]]:
    """Of a kernel and of its padding."""
    size = (kernel, kernel) if isinstance(kernel, int) else kernel
    return size, (size[0] // 2, size[1] // 2)


def layer(x: nn.Variable, maps: int, kernel: Kernel, stride: int, group: int, name: str, bias=False) -> nn.Variable:
    size, pad = sizes_of(kernel)
    args = {"pad": pad, "stride": (stride, stride), "group": group, "with_bias": bias, "name": name}
    h = PF.convolution(x, maps, size, **args)
    return PF.batch_normalization(h, batch_stat=False, name=name)


def set_parameters() -> None:
    """Statistics, scales and shifts that are not the first ones."""
    for i, (name, p) in enumerate(nn.get_parameters(grad_only=False).items()):
        value = random(*p.shape, seed=i + 1)
        if "bn" in name:
            p.d = np.abs(value) + 0.5 if name.endswith("var") else value


def both(network: Network, shape: tuple[int, ...], run: Callable[[nn.Variable, nn.Variable], list[np.ndarray]]) -> None:
    """What a run gives must be the same to the bit without fusion."""
    results = []
    for fused in (True, False):
        nn.clear_parameters()
        old = nn.set_fusion(fused)
        try:
            nn.seed(3)
            x = nn.Variable.from_numpy_array(random(*shape), need_grad=True)
            y = network(x)
            set_parameters()
            results.append([run(x, y) for _ in range(3)])
        finally:
            nn.set_fusion(old)
    for one, other in zip(*results, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("flags", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("after", AFTER.values(), ids=AFTER)
@pytest.mark.parametrize("sizes, shape", LAYERS.values(), ids=LAYERS)
def test_the_bits_are_those_of_single_functions(sizes, shape, after, flags):
    def network(x: nn.Variable) -> nn.Variable:
        h = after(layer(x, *sizes, "first"))
        maps, _, _, group = sizes
        g = layer(h, maps, 3, 1, group, "second", bias=True)
        return after(g + h)

    def run(x: nn.Variable, y: nn.Variable) -> list[np.ndarray]:
        y.forward(**flags)
        return [y.d.copy()]

    both(network, shape, run)


@pytest.mark.parametrize("sizes, shape", LAYERS.values(), ids=LAYERS)
@pytest.mark.parametrize("dtype", ["float", "double", "half"])
def test_numbers(sizes, shape, dtype):
    (maps, kernel, stride, group), type_config = sizes, {"type_config": dtype}
    if group > 1:
        pytest.skip("the reference knows one group")
    with nn.context_scope(nn.ext_utils.get_extension_context("cpu", **type_config)):
        x = nn.Variable.from_numpy_array(random(*shape))
        r = nn.Variable.from_numpy_array(random(shape[0], maps, *((n - 1) // stride + 1 for n in shape[2:]), seed=5))
        y = F.relu(layer(x, maps, kernel, stride, group, "a", bias=True) + r)
        set_parameters()
        y.forward(clear_buffer=True)
    p = {name.split("/")[-1]: v.d.astype(np.float64) for name, v in nn.get_parameters(grad_only=False).items()}
    h = convolved(x.d, p["W"], sizes_of(kernel)[1], (stride, stride)) + p["b"].reshape(1, -1, 1, 1)
    h = (h - p["mean"]) / np.sqrt(p["var"] + 1e-5) * p["gamma"] + p["beta"]
    want = np.maximum(h + r.d, 0)
    scale = {"float": 3e-5, "double": 1e-12, "half": 2e-2}[dtype] * np.abs(want).max()
    np.testing.assert_allclose(y.d, want, rtol=0, atol=scale)


def downsampling(x: nn.Variable) -> nn.Variable:
    """Two convolutions of one input, whose results meet in one unit."""
    h = F.relu(layer(x, 64, 3, 2, 1, "a"))
    h = layer(h, 64, 3, 1, 1, "b")
    return F.relu(h + layer(x, 64, 1, 2, 1, "short"))


NETWORKS: dict[str, Network] = {
    "downsampling": lambda x: F.relu(layer(downsampling(x), 64, 3, 1, 1, "c")),
    "its own input": lambda x: F.relu(layer(x, 64, 3, 1, 1, "a") + x),
    "twice": lambda x: F.relu(layer(h := layer(x, 64, 3, 1, 1, "a"), 64, 3, 1, 1, "b")) * F.tanh(h),
    "no normalization": lambda x: F.relu(PF.convolution(x, 64, (3, 3), pad=(1, 1)) * 2.0),
    "own statistics": lambda x: F.relu(PF.batch_normalization(PF.convolution(x, 64, (3, 3)), batch_stat=True)),
    "dropout": lambda x: F.relu(F.dropout(F.relu(layer(x, 64, 3, 1, 1, "a")), 0.5)),
    "pooled": lambda x: F.max_pooling(layer(x, 64, 3, 1, 1, "a"), (2, 2)),
    "views": lambda x: F.relu(F.transpose(layer(F.transpose(x, (0, 1, 3, 2)), 64, 3, 1, 1, "a"), (0, 1, 3, 2))),
    "sums": lambda x: F.sum(F.relu(layer(x, 64, 3, 1, 1, "a"))),
}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("flags", RUNS.values(), ids=RUNS)
def test_networks_and_their_gradients(network, flags):
    def run(x: nn.Variable, y: nn.Variable) -> list[np.ndarray]:
        y.forward(**flags)
        out = y.d.copy()
        for p in nn.get_parameters().values():
            p.g = 0
        x.g = 0
        y.forward(clear_no_need_grad=True)
        y.backward(random(*y.shape, seed=9) if y.shape else 1.0, clear_buffer=True)
        return [out, x.g.copy(), *(p.g.copy() for p in nn.get_parameters().values())]

    both(network, (2, 64, 14, 13), run)


def test_gradients_after_a_run_that_keeps_nothing():
    def run(x: nn.Variable, y: nn.Variable) -> list[np.ndarray]:
        x.g = 0
        with nn.no_grad():
            z = downsampling(x)
        z.forward(clear_buffer=True)
        y.forward(clear_buffer=True)
        y.backward()
        return [z.d.copy(), x.g.copy()]

    both(downsampling, (2, 64, 14, 13), run)


def test_frozen_scales():
    """Gradients of x pass through a normalization whose scale has none."""

    def network(x: nn.Variable) -> nn.Variable:
        h = PF.convolution(x, 64, (3, 3), pad=(1, 1), fix_parameters=True)
        h = PF.batch_normalization(h, batch_stat=False, fix_parameters=True)
        return F.sum(F.relu(h))

    def run(x: nn.Variable, y: nn.Variable) -> list[np.ndarray]:
        x.g = 0
        y.forward()
        y.backward()
        return [x.g.copy()]

    both(network, (2, 64, 14, 13), run)


def test_changes_between_runs_are_seen():
    def run(x: nn.Variable, y: nn.Variable) -> list[np.ndarray]:
        out = []
        for name, p in nn.get_parameters(grad_only=False).items():
            p.d = p.d + (0.5 if name.endswith("var") else 0.25)
            y.forward(clear_buffer=True)
            out.append(y.d.copy())
        return out

    both(downsampling, (2, 64, 14, 13), run)


@pytest.mark.parametrize("flags", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("what", ["handle", "persistent", "written", "looked at", "root"])
def test_variables_in_between(what, flags):
    """Whoever holds the convolution's result finds what single functions leave there."""
    inner: list[nn.Variable] = []

    def network(x: nn.Variable) -> nn.Variable:
        h = PF.convolution(x, 64, (3, 3), pad=(1, 1), with_bias=False)
        inner[:] = [h]
        return F.relu(PF.batch_normalization(h, batch_stat=False))

    def run(x: nn.Variable, y: nn.Variable) -> list[np.ndarray]:
        (h,) = inner
        h.persistent = what == "persistent"
        if what == "written":
            h.d = 7.0
        if what == "looked at":
            h.forward()
            assert h.d.any()
        nn.forward_all([y, h] if what == "root" else [y], **flags)
        try:
            found = h.d.copy()
        except nn.Error as e:
            found = np.array([len(str(e))])
        return [y.d.copy(), found]

    both(network, (2, 32, 14, 13), run)


def test_a_result_over_the_memory_of_what_is_read():
    def network(x: nn.Variable) -> nn.Variable:
        r = nn.Variable.from_numpy_array(random(2, 64, 14, 13, seed=4))
        y = F.relu(layer(x, 64, 3, 1, 1, "a") + r)
        y.data = r.data
        return y

    def run(x: nn.Variable, y: nn.Variable) -> list[np.ndarray]:
        y.forward(clear_buffer=True)
        return [y.d.copy()]

    both(network, (2, 64, 14, 13), run)


def test_hooks_see_every_function():
    x = nn.Variable.from_numpy_array(random(2, 64, 14, 13))
    y, names = downsampling(x), []
    y.forward(clear_buffer=True)
    y.forward(clear_buffer=True, function_post_hook=lambda f: names.append(f.name))
    assert names.count("Convolution") == names.count("BatchNormalization") == 3


def test_threads_change_no_bit():
    x = nn.Variable.from_numpy_array(random(9, 64, 14, 13))
    y, before = downsampling(x), nn.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3):
            nn.set_num_threads(threads)
            y.forward(clear_buffer=True)
            results.append(y.d.copy())
    finally:
        nn.set_num_threads(before)
    assert all((r == results[0]).all() for r in results)


def test_what_is_in_between_takes_no_memory(fusion):
    x = nn.Variable.from_numpy_array(random(8, 32, 56, 56))
    h = PF.convolution(x, 64, (3, 3), pad=(1, 1), fix_parameters=True)
    y = F.relu(PF.batch_normalization(h, batch_stat=False, fix_parameters=True))
    planned, size = nn.memory.plan(y, clear_buffer=True).peak, y.size * 4
    before = nn.memory.stats().live
    nn.memory.reset_peak()
    y.forward(clear_buffer=True)
    peak = nn.memory.stats().peak - before
    assert abs(planned - x.size * 4 - peak) < 0.1 * peak
    assert (peak < 1.9 * size) == fusion and peak >= size
