"""What batch_normalization and layer_normalization take and give beside numbers: kinds of axes, tuples."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.experimental.graph_converters as GC
import nnrs.functions as F
import nnrs.normalization_functions as N
import nnrs.parametric_functions as PF
from nnrs.ext_utils import get_extension_context
from thread_transport import run_threads

X = np.arange(24, dtype="float32").reshape(4, 2, 3) ** 2


@pytest.mark.parametrize("axes", [1, [1], (1,), -2, np.int64(1), np.array([1]), [np.int32(-2)], [1.0]], ids=repr)
def test_axes_of_any_kind_without_running_statistics(axes: Any) -> None:
    x = nn.Variable.from_numpy_array(X)
    y = F.batch_normalization(x, None, None, None, None, axes=axes)
    y.forward()
    mean, variance = X.mean((0, 2), keepdims=True), X.var((0, 2), keepdims=True)
    np.testing.assert_allclose(y.d, (X - mean) / np.sqrt(variance + 1e-5), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("library", [F, PF])
def test_statistics_come_in_a_tuple(library: Any) -> None:
    """As NNabla's."""
    x = nn.Variable.from_numpy_array(X)
    rest = (None, None, None, None) if library is F else ()
    made = library.batch_normalization(x, *rest, output_stat=True)
    assert type(made) is tuple and [v.shape for v in made] == [(4, 2, 3), (1, 2, 1), (1, 2, 1)]
    made = library.layer_normalization(x, *rest[:2], output_stat=True)
    assert type(made) is tuple and [v.shape for v in made] == [(4, 2, 3), (4, 1, 1), (4, 1, 1)]
    nn.clear_parameters()


def leaf(*shape: int, seed: int = 0) -> nn.Variable:
    values = np.random.default_rng(seed).normal(1, 2, shape)
    return nn.Variable.from_numpy_array(values.astype("float32"), need_grad=True)


def gradients(y: nn.Variable, *leaves: nn.Variable) -> list[np.ndarray]:
    for v in leaves:
        v.grad.zero()
    y.forward()
    y.backward(np.arange(y.size, dtype="float32").reshape(y.shape) % 7 - 2)
    return [y.d.copy()] + [v.g.copy() for v in leaves]


@pytest.mark.parametrize("axes", [[1], [0, 2], [-1]])
@pytest.mark.parametrize("batch_stat", [True, False])
@pytest.mark.parametrize("with_z", [True, False])
def test_fused_batch_normalization_is_three_functions(axes: list[int], batch_stat: bool, with_z: bool) -> None:
    x, z = leaf(3, 4, 5), leaf(3, 4, 5, seed=1)
    sizes = [n if a in [b % 3 for b in axes] else 1 for a, n in enumerate(x.shape)]
    beta, gamma, mean = (leaf(*sizes, seed=s) for s in (2, 3, 4))
    variance = nn.Variable.from_numpy_array(np.full(sizes, 2, "float32"))
    args = {"axes": axes, "batch_stat": batch_stat, "decay_rate": 1.0}
    leaves = (x, beta, gamma, z) if with_z else (x, beta, gamma)
    got = F.fused_batch_normalization(x, beta, gamma, mean, variance, z if with_z else None, **args)
    want = F.batch_normalization(x, beta, gamma, mean, variance, **args)
    want = F.relu(want + z if with_z else want)
    for a, b in zip(gradients(got, *leaves), gradients(want, *leaves), strict=True):
        np.testing.assert_array_equal(a, b)


def test_fused_batch_normalization_gives_statistics_and_checks() -> None:
    x = leaf(3, 4)
    made = F.fused_batch_normalization(x, None, None, None, None, output_stat=True)
    assert type(made) is tuple and [v.shape for v in made] == [(3, 4), (1, 4), (1, 4)]
    with pytest.raises(ValueError, match="fused_batch_normalization: argument 'nonlinearity'"):
        F.fused_batch_normalization(x, None, None, None, None, nonlinearity="tanh")
    with pytest.raises(ValueError, match="fused_batch_normalization: argument 'z'"):
        F.fused_batch_normalization(x, None, None, None, None, leaf(1, 4))


class Processes:
    """Communicators of threads that stand for processes."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size, timeout=60)
        self.given: dict[int, np.ndarray] = {}

    def all_reduce(
        self, array: nn.NdArray, division: bool = False, inplace: bool = False, group: str = "world"
    ) -> None:
        assert inplace and not division and group == "world"
        self.given[threading.get_ident()] = array.data.copy()
        self.barrier.wait()
        total = sum(self.given.values())
        self.barrier.wait()
        array.data = total
        self.given.clear()
        self.barrier.wait()


def test_sync_batch_normalization_of_several_processes_is_that_of_all_batches() -> None:
    """Batches of different sizes; the gradients of beta and gamma add up to those of the whole."""
    whole, cut = leaf(5, 3, 4), (0, 2, 5)
    beta, gamma = leaf(1, 3, 1, seed=2), leaf(1, 3, 1, seed=3)
    running = [leaf(1, 3, 1, seed=4), nn.Variable.from_numpy_array(np.ones((1, 3, 1), "float32"))]
    start = [v.d.copy() for v in running]
    y, mean, variance = F.batch_normalization(whole, beta, gamma, *running, output_stat=True)
    gy = np.random.default_rng(5).normal(size=whole.shape).astype("float32")
    for v in (whole, beta, gamma):
        v.grad.zero()
    y.forward()
    y.backward(gy)
    comm, found = Processes(2), {}

    def process(rank: int) -> None:
        rows = slice(cut[rank], cut[rank + 1])
        x = nn.Variable.from_numpy_array(whole.d[rows].copy(), need_grad=True)
        own = [nn.Variable.from_numpy_array(v.d.copy(), need_grad=True) for v in (beta, gamma)]
        own += [nn.Variable.from_numpy_array(v.copy()) for v in start]
        made = F.sync_batch_normalization(x, *own, comm, output_stat=True)
        for v in (x, *own[:2]):
            v.grad.zero()
        made[0].forward()
        made[0].backward(gy[rows])
        found[rank] = [made[0].d, x.g, own[0].g, own[1].g, own[2].d, own[3].d]

    threads = [threading.Thread(target=process, args=(rank,)) for rank in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    def near(got: np.ndarray, want: np.ndarray) -> None:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

    assert len(found) == 2
    near(np.concatenate([found[r][0] for r in range(2)]), y.d)
    near(np.concatenate([found[r][1] for r in range(2)]), whole.g)
    near(found[0][2] + found[1][2], beta.g)
    near(found[0][3] + found[1][3], gamma.g)
    for rank in range(2):
        near(found[rank][4], running[0].d)
        near(found[rank][5], running[1].d)


@pytest.mark.parametrize("kind, bound", [("half", 2e-3), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("recompute", [False, True])
def test_sync_batch_normalization_in_half_types_computes_in_float(kind: str, bound: float, recompute: bool) -> None:
    """Counts, sums and sums of squares are beyond what a half type holds; so are sums of scaled gradients."""
    values = np.random.default_rng(0).normal(8, 2, (8, 2, 128, 128)).astype("float32")
    gy = np.random.default_rng(1).uniform(0, 100, values.shape).astype("float32")

    def process(comm: Any) -> list[np.ndarray]:
        with nn.context_scope(get_extension_context("cpu", type_config=kind)):
            x = nn.Variable.from_numpy_array(values[comm.rank :: 2], need_grad=True)
            running = [nn.Variable.from_numpy_array(np.full((1, 2, 1, 1), n, "float32")) for n in (0, 1)]
            with nn.recompute(recompute):
                h = F.sync_batch_normalization(F.identity(x), None, None, *running, comm)
            y = F.identity(h)
            x.grad.zero()
            y.forward()
            y.backward(gy[comm.rank :: 2])
            assert str(y.data.dtype) == {"half": "float16"}.get(kind, kind)
            return [np.float64(np.asarray(a, "float32")) for a in (y.d, x.g, *(v.d for v in running))]

    axes = (0, 2, 3)
    exact = np.float64(values)
    mean, var = exact.mean(axes, keepdims=True), exact.var(axes, keepdims=True)
    normal = (exact - mean) / np.sqrt(var + 1e-5)
    means = [(np.float64(gy) * other).mean(axes, keepdims=True) for other in (1, normal)]
    gx = (gy - means[0] - normal * means[1]) / np.sqrt(var + 1e-5)
    for rank, (y, g, running_mean, running_var) in enumerate(run_threads(2, process)):
        np.testing.assert_allclose(y, normal[rank::2], atol=bound * 4)
        np.testing.assert_allclose(g, gx[rank::2], atol=bound * 100)
        np.testing.assert_allclose(running_mean, 0.1 * mean, rtol=bound)
        np.testing.assert_allclose(running_var, 0.9 + 0.1 * var, rtol=bound)


def test_sync_batch_normalization_in_use_asks_nobody() -> None:
    """Converters put the running statistics in the place of those of the batches, and no process waits for another."""
    values = np.random.default_rng(0).normal(5, 3, (2, 4, 3)).astype("float32")
    converters = [GC.TestModeModifier(), [GC.IdentityModifier(), GC.BatchNormBatchStatModifier()]]

    def process(comm: Any) -> list[np.ndarray]:
        x = nn.Variable.from_numpy_array(values[comm.rank])
        running = [nn.Variable.from_numpy_array(np.full((1, 3), n, "float32")) for n in (2, 4)]
        y = F.relu(F.sync_batch_normalization(x, None, None, *running, comm))
        y.forward()
        moved = [v.d.copy() for v in running]
        made = []
        for modifiers in converters:
            z = GC.GraphConverter(modifiers).convert(y)
            if comm.rank == 0:  # alone
                z.forward()
                made.append(z.d)
                want = np.maximum((values[0] - moved[0]) / np.sqrt(moved[1] + 1e-5), 0)
                np.testing.assert_allclose(z.d, want, rtol=1e-5, atol=1e-6)
        assert all(np.array_equal(v.d, old) for v, old in zip(running, moved, strict=True))
        return made

    assert [len(made) for made in run_threads(2, process)] == [2, 0]


@pytest.mark.parametrize("recompute", [False, True])
def test_a_converted_network_with_sync_batch_normalization_moves_statistics_once(recompute: bool) -> None:
    """Forward moves them; neither backward, which may compute again, nor reading: that asks no process."""

    def process(comm: Any) -> None:
        x = nn.Variable.from_numpy_array(np.full((2, 3), comm.rank * 10, "float32"), need_grad=True)
        running = [nn.Variable.from_numpy_array(np.zeros((1, 3), "float32")) for _ in range(2)]
        y = F.sync_batch_normalization(F.tanh(x), None, None, *running, comm, output_stat=True)
        with nn.recompute(recompute):
            made = GC.GraphConverter([GC.IdentityModifier()]).convert([F.sum(F.sin(y[0])), y[1]])
        x.grad.zero()
        nn.forward_all(made, clear_no_need_grad=True)
        moved = running[0].d.copy()
        made[0].backward(clear_buffer=True)
        np.testing.assert_allclose(moved, 0.05 * np.tanh(10), rtol=1e-6)
        if comm.rank == 0:  # alone
            np.testing.assert_allclose(made[1].d, 0.5 * np.tanh(10), rtol=1e-6)
        assert np.array_equal(running[0].d, moved)

    run_threads(2, process)


@pytest.mark.parametrize("axes", [[1], [3], [1, 2], [1, 3], [-3]])
def test_sync_batch_normalization_has_gradients_of_two_orders(axes: list[int]) -> None:
    """Of what is normalized and of the statistics, by the engine and as a graph, over all batches together."""
    rng = np.random.default_rng(1)
    values, cut, sizes = rng.normal(size=(5, 3, 4, 2)), (0, 2, 5), [3, 4, 2]
    shape = (1, *(n if i + 1 in [a % 4 for a in axes] else 1 for i, n in enumerate(sizes)))
    scales = [rng.uniform(0.5, 2, shape) for _ in range(2)]
    by = rng.normal(size=values.shape)

    def derivatives(rows: slice, normalize: Any, ranks: int) -> list[np.ndarray]:
        with nn.context_scope(get_extension_context("cpu", type_config="double")):
            x = nn.Variable.from_numpy_array(values[rows], need_grad=True)
            beta, gamma = (nn.Variable.from_numpy_array(v, need_grad=True) for v in scales)
            y, mean, variance = normalize(F.sin(x), beta, gamma, None, None, axes=axes, output_stat=True)
            of_batch = F.sum(F.pow_scalar(mean, 3)) + F.sum(F.exp(variance))
            loss = F.sum(F.pow_scalar(y, 3) * nn.Variable.from_numpy_array(by[rows])) + of_batch / ranks
            (gx,) = nn.grad([loss], [x])
            second = F.sum(F.pow_scalar(gx, 2))
            for p in (x, beta, gamma):
                p.grad.zero()
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)
            found = [x.g.copy(), gamma.g.copy()]
            x.grad.zero()
            second.forward()
            second.backward()
            return [*found, gx.d.copy(), x.g.copy()]

    gx, gamma, again, second = derivatives(slice(None), F.batch_normalization, 1)

    def process(comm: Any) -> list[np.ndarray]:
        rows = slice(*cut[comm.rank : comm.rank + 2])
        return derivatives(rows, functools.partial(F.sync_batch_normalization, comm=comm), 2)

    parts = list(zip(*run_threads(2, process), strict=True))
    np.testing.assert_allclose(np.concatenate(parts[0]), gx, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(sum(parts[1]), gamma, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(np.concatenate(parts[2]), again, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(np.concatenate(parts[3]), second, rtol=1e-8, atol=1e-9)


def test_what_is_computed_again_asks_nobody() -> None:
    """With `nn.recompute` and by reading alone; each process may do so as it likes."""

    def process(comm: Any) -> None:
        x = nn.Variable.from_numpy_array(np.random.default_rng(comm.rank).normal(size=(2 + comm.rank, 3)), None, True)
        y = F.sync_batch_normalization(F.sin(x), None, None, None, None, comm)
        with nn.recompute(comm.rank == 1):
            gx = nn.grad([F.sum(F.pow_scalar(y, 3))], [x])[0]
            loss = F.sum(F.pow_scalar(F.sin(gx), 2))
        x.grad.zero()
        loss.forward()
        loss.backward()
        want, gradient = gx.d.copy(), x.g.copy()
        x.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        np.testing.assert_allclose(x.g, gradient, rtol=1e-5, atol=1e-6)
        if comm.rank == 0:
            np.testing.assert_allclose(gx.d, want, rtol=1e-5, atol=1e-6)

    run_threads(2, process)


def test_folded_sync_batch_normalization_asks_nobody() -> None:
    def process(comm: Any) -> None:
        x = nn.Variable.from_numpy_array(np.random.default_rng(comm.rank).normal(size=(2, 3, 5, 5)))
        w, own = leaf(4, 3, 3, 3), [leaf(1, 4, 1, 1, seed=n) for n in range(2)]
        own += [nn.Variable.from_numpy_array(np.full((1, 4, 1, 1), n, "float32")) for n in (0.5, 2)]
        y = F.relu(F.sync_batch_normalization(F.convolution(x, w), *own, comm))
        folded = GC.GraphConverter(GC.BatchNormalizationFoldingModifier()).convert(y)
        if comm.rank == 0:
            folded.forward()
            want = F.relu(F.batch_normalization(F.convolution(x, w), *own, batch_stat=False))
            want.forward()
            np.testing.assert_allclose(folded.d, want.d, rtol=1e-4, atol=1e-5)

    run_threads(2, process)


@pytest.mark.parametrize("name", ["batch", "layer", "group", "instance", "tensor"])
@pytest.mark.parametrize("scale, shift, factor", [(3, 20, 1), (2000, 0, 1000)])
def test_gradients_as_graphs_in_half_types(name: str, scale: float, shift: float, factor: float) -> None:
    """Sums and squares beyond the range of a half type: the graph of the gradient is of floats."""
    values = np.random.default_rng(0).normal(size=(400, 4, 30)) * scale + shift

    def normalized(x: nn.Variable) -> nn.Variable:
        call = {
            "batch": lambda: F.batch_normalization(x, None, None, None, None),
            "layer": lambda: F.layer_normalization(x, None, None, batch_axis=1),
            "group": lambda: F.group_normalization(x, None, None, 2),
            "instance": lambda: F.instance_normalization(x, None, None),
            "tensor": lambda: F.tensor_normalization(x, 1, None, None),
        }
        return call[name]()

    def gradient(kind: str) -> np.ndarray:
        with nn.context_scope(get_extension_context("cpu", type_config=kind)):
            x = nn.Variable.from_numpy_array(values.astype("float16"), need_grad=True)
            y = normalized(x)
            grad_y = nn.Variable.from_numpy_array(np.cos(np.arange(y.size)).reshape(y.shape) * factor)
            (gx,) = nn.grad([y], [x], [grad_y])
            gx.forward()
            assert str(gx.data.dtype) == {"half": "float16", "float": "float32"}[kind]
            return np.float32(gx.d)

    got, want = gradient("half"), gradient("float")
    assert np.abs(want).max() > 1e-2
    np.testing.assert_allclose(got, want, rtol=5e-3, atol=5e-3 * np.abs(want).max())


def test_sync_batch_normalization_in_other_layouts() -> None:
    """It is one function, which modifiers know: in training, and where the running statistics have taken its place."""
    values = np.random.default_rng(0).normal(5, 3, (2, 3, 4, 5, 4)).astype("float32")

    def process(comm: Any) -> None:
        x = nn.Variable.from_numpy_array(values[comm.rank])
        own = [nn.Variable.from_numpy_array(np.full((1, 4, 1, 1), n, "float32")) for n in (2, 3, 0, 1)]
        bare = F.sync_batch_normalization(x, None, None, None, None, comm).parent
        assert [float(v.d.sum()) for v in bare.inputs[1:]] == [0, 4, 0, 0]
        y = F.sync_batch_normalization(F.tanh(x), *own, comm)
        assert y.parent.info.type_name == "SyncBatchNormalization" and y.parent.inputs[1:] == own
        args = y.parent.info.args
        assert list(args) == ["comm", "group", "axes", "decay_rate", "eps", "batch_stat"] and args["comm"] is comm
        made = nn.function.SyncBatchNormalization(nn.get_current_context(), **args)
        again, mean, variance = made(*y.parent.inputs, n_outputs=3)
        assert again.parent.info.args == args and mean.shape == variance.shape == (1, 4, 1, 1)
        y.forward()
        for before in ([], [GC.TestModeModifier()]):
            plain = GC.GraphConverter([*before, GC.IdentityModifier()]).convert(y)
            last = GC.ChannelLastModifier([x])
            moved = GC.GraphConverter([*before, last]).convert(y)
            first = GC.GraphConverter([GC.ChannelFirstModifier(last.inputs_cl)]).convert(moved)
            for v in (plain, moved, first):
                v.forward()
            np.testing.assert_allclose(moved.d.transpose(0, 3, 1, 2), plain.d, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(first.d, plain.d, rtol=1e-5, atol=1e-5)

    run_threads(2, process)


def test_sync_batch_normalization_alone_is_batch_normalization() -> None:
    class Alone:
        size = 1

        def all_reduce(self, *args: Any, **kw: Any) -> None:
            raise AssertionError("there is nobody to speak to")

    x, beta, gamma = leaf(4, 3), leaf(1, 3, seed=1), leaf(1, 3, seed=2)
    got = F.sync_batch_normalization(x, beta, gamma, None, None, Alone())
    want = F.batch_normalization(x, beta, gamma, None, None)
    for a, b in zip(gradients(got, x, beta, gamma), gradients(want, x, beta, gamma), strict=True):
        np.testing.assert_array_equal(a, b)
    assert PF.sync_batch_normalization(x, Alone()).shape == (4, 3)
    nn.clear_parameters()
    with pytest.raises(TypeError, match="sync_batch_normalization: argument 'comm'"):
        F.sync_batch_normalization(x, beta, gamma, None, None, None)


def test_axes_are_joined_and_come_back() -> None:
    adapter = nn.normalization_functions.BatchNormalizationInOutAdapter(3, [0, 2])
    x = nn.Variable.from_numpy_array(X)
    y = adapter(x)
    back = adapter.inv(y)
    back.forward()
    assert y.shape == (2, 12)
    np.testing.assert_array_equal(back.d, X)


def test_u_of_spectral_norm_moves_once_where_forward_runs_again() -> None:
    w, u = leaf(3, 4), leaf(3, seed=1)
    first = u.d.copy()
    with nn.recompute():
        y = F.spectral_norm(w * 1, u)
    z = F.sum(y * y)
    w.grad.zero()
    z.forward(clear_no_need_grad=True)
    v = w.d.T @ first
    last = w.d @ (v / np.linalg.norm(v))
    last /= np.linalg.norm(last)
    np.testing.assert_allclose(u.d, last, rtol=1e-5)
    z.backward(clear_buffer=True)
    np.testing.assert_allclose(u.d, last, rtol=1e-5)
    assert np.isfinite(w.g).all()
    z.forward()
    assert not np.allclose(u.d, last, rtol=1e-5)


def test_makers_take_the_arguments_of_the_functions() -> None:
    ctx, x, own = nn.get_current_context(), nn.Variable((4, 6)), [nn.Variable((1, 6)) for _ in range(4)]
    rest = (False, False)
    assert nn.function.BatchNormalization(ctx, [1], 0.9, 1e-5, True, *rest)(x, *own).shape == (4, 6)
    assert nn.function.GroupNormalization(ctx, 3, 1, [0], 1e-5, *rest)(x, *own[:2]).shape == (4, 6)
    assert nn.function.SpectralNorm(ctx, 0, 1, 1e-12, False, False)(x, nn.Variable((4,))).shape == (4, 6)


def test_outputs_that_nnabla_has_not_are_not_seen() -> None:
    w, u = leaf(3, 4), leaf(3, seed=1)
    own = [leaf(1, 1) for _ in range(4)]
    assert len(F.spectral_norm(w, u).parent.outputs) == len(F.min_max_quantize(w, *own).parent.outputs) == 1
    assert [y.shape for y in F.spectral_norm(w, u, output_u=True)[0].parent.outputs] == [(3, 4), (3,)]
    y, into = F.spectral_norm(w, u, test=True), nn.Variable((3, 4))
    y.parent.forward([w, u], [into])
    y.forward()
    np.testing.assert_array_equal(into.d, y.d)
    w.grad.zero()
    into.g = 1
    y.parent.backward([w, u], [into])
    direct = w.g.copy()
    w.grad.zero()
    y.backward()
    np.testing.assert_allclose(w.g, direct, rtol=1e-5)


def test_normalizations_of_the_module_take_arrays_for_outputs() -> None:
    w, u, into = leaf(3, 4), leaf(3, seed=1), nn.NdArray((3, 4))
    N.norm_normalization(w, None, None, 1e-12, -1, [into])
    y = N.spectral_norm(w, u, 0, 1, 1e-12, True, False, -1, [nn.NdArray((3, 4))])
    assert y.shape == (3, 4) and isinstance(N.spectral_norm(w, u, output_u=True), tuple)


def test_the_count_of_mean_subtraction_is_whole() -> None:
    x, mean, t = leaf(2, 3), leaf(3), leaf(1, seed=2)
    t.d = 0
    F.mean_subtraction(x, mean, t).forward()
    assert t.data.dtype == np.int32 and t.d.tolist() == [1] and mean.data.dtype.kind == "f"


@pytest.mark.parametrize(("t", "moved"), [(0.7, [3, 4]), (3.7, [1.125, 1.375]), (-0.5, [3, 4])])
def test_fractions_of_a_batch_are_cut_off(t: float, moved: list[float]) -> None:
    """NNabla 1.39's running means."""
    x, mean, count = (nn.Variable.from_numpy_array(v) for v in (np.arange(8.0).reshape(4, 2), [0.5, 0.5], [t]))
    F.mean_subtraction(x, mean, count).forward()
    assert mean.d.tolist() == moved and count.d.tolist() == [int(t) + 1]


@pytest.mark.parametrize(
    ("function", "argument", "call"),
    [
        ("batch_normalization", "batch_stat", lambda x, many: F.batch_normalization(x, *[None] * 4, batch_stat=many)),
        ("unique", "flatten", lambda x, many: F.unique(x, flatten=many)),
    ],
)
def test_arrays_are_no_flags(function, argument, call):
    with pytest.raises(nn.Error, match=rf"{function}: argument '{argument}': expected bool, got ndarray array"):
        call(nn.Variable.from_numpy_array([[1, 2, 3]]), np.arange(3))
