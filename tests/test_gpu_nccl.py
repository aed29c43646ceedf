"""Arrays between GPUs: threads that stand for processes, each with a GPU; several contexts in one process.

Needs two GPUs with NCCL, or NNRS_CUDA=emulate:3 NNRS_CUDA_LIBRARIES=1 in a build with the feature `emulate`.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F
import nnrs.parametric_functions as PF
from gpu_helpers import DEVICES, gpu, graphs, numbers, replays
from nnrs._communication.nccl import NcclTransport
from nnrs.experimental.graph_converters import GraphConverter, TestModeModifier
from nnrs.ext import cuda
from thread_transport import run_threads

SIZE = min(DEVICES, 3)
TYPES = "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64".split()

pytestmark = [
    pytest.mark.skipif(SIZE < 2, reason="two GPUs are wanted"),
    pytest.mark.skipif(SIZE > 0 and "NCCL" in cuda.why_no_library(), reason="NCCL is missing"),
]


def run(work, size=SIZE, **options):
    """What `work` gives on each rank, in the context of its GPU.

    Before it reads, it waits for the others (`barrier`): who reads waits with the GIL, which the others need to come.
    """

    def there(comm):
        with nn.context_scope(gpu(device_id=str(comm.rank))):
            return work(comm)

    return run_threads(size, there, lambda t: NcclTransport(t, gpu(device_id=str(t.rank)), 30.0), **options)


def array(values, dtype="float32"):
    made = nn.NdArray.from_numpy_array(np.asarray(values))
    made.cast(dtype)
    return made


def plain(x):
    return np.asarray(x.data, "float64").ravel()


def whole(rank, n):
    """Small whole numbers, whose sums each type holds."""
    return (np.arange(n) * (rank + 3)) % 5


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_collectives_of_each_type(dtype, deterministic):
    def work(comm):
        r, n, found = comm.rank, comm.size, []
        for size in (0, 1, 7, 4000):
            given = [whole(q, size) for q in range(n)]
            total = np.sum(given, axis=0)
            some, all_ = ([g != 0 for g in given], total != 0) if dtype == "bool" else (given, total)
            x, y, z = (array(given[r], dtype) for _ in range(3))
            comm.all_reduce(x)
            comm.reduce(y, n - 1)
            comm.bcast(z, 1)
            rows = [array(np.zeros(size), dtype) for _ in range(n)]
            comm.all_gather(array(given[r], dtype), rows)
            part = array(np.zeros(size), dtype)
            comm.reduce_scatter([array(np.roll(given[r], i), dtype) for i in range(n)], part)
            comm.barrier()
            wanted = [all_, all_ if r == n - 1 else some[r], some[1], *some, np.roll(all_, r)]
            for got, want in zip((x, y, z, *rows, part), wanted, strict=True):
                assert str(got.dtype) == dtype
                np.testing.assert_array_equal(plain(got), np.asarray(want, "float64"))
            found.append(size)
        return found

    run(work, deterministic=deterministic)


@pytest.mark.parametrize("deterministic", [True, False])
def test_means(deterministic):
    """Floats of all types; whole numbers towards zero; what is scaled before."""

    def work(comm):
        n = comm.size
        for dtype in ("float16", "bfloat16", "float32", "float64"):
            x = array([comm.rank, 8.0, -3.0], dtype)
            comm.all_reduce(x, division=True)
            comm.barrier()
            near = {"float16": 1e-2, "bfloat16": 5e-2}.get(dtype, 1e-6)
            np.testing.assert_allclose(plain(x), [(n - 1) / 2, 8, -3], rtol=near)
        for dtype in ("int8", "int32", "int64"):
            x = array([-7 if comm.rank == 0 else 0, 5 if comm.rank == 0 else 0], dtype)
            comm.all_reduce(x, division=True)
            comm.barrier()
            assert plain(x).tolist() == [-(7 // n), 5 // n]

    run(work, deterministic=deterministic)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_sums_are_those_of_the_host_bit_by_bit(dtype):
    """Small arrays go to all, large ones in parts; lists go in packs."""
    shapes = [(3,), (40, 50), (70, 999), (), (2, 0)]
    given = [[numbers(*s, seed=9 * q + i) for i, s in enumerate(shapes)] for q in range(SIZE)]

    def work(comm):
        found = []
        for inplace, division in ((False, False), (True, True)):
            arrays = [array(g, dtype) for g in given[comm.rank]]
            comm.all_reduce(arrays, division, inplace)
            one = array(given[comm.rank][2], dtype)
            comm.reduce(one, 0, division)
            comm.barrier()
            found += [plain(a) for a in (*arrays, one)]
        return found

    for there, here in zip(run(work), run_threads(SIZE, work), strict=True):
        for a, b in zip(there, here, strict=True):
            np.testing.assert_array_equal(a, b)


def test_groups_and_barriers():
    def work(comm):
        comm.new_group(("ends", [SIZE - 1, 0]))
        comm.new_group(("alone", [0]))
        x, y = array([comm.rank + 1.0]), array([comm.rank + 1.0])
        comm.all_reduce(x, group="ends")
        comm.all_reduce(y, group="alone")
        comm.barrier()
        both = [array([0.0]), array([0.0])]
        comm.all_gather(array([comm.rank]), both, group="ends")
        comm.barrier()
        return float(x.data[0]), float(y.data[0]), [float(b.data[0]) for b in both]

    for rank, (x, y, both) in enumerate(run(work)):
        is_end = rank in (0, SIZE - 1)
        assert x == (SIZE + 1 if is_end else rank + 1) and y == rank + 1
        assert both == ([SIZE - 1, 0] if is_end else [0, 0])


def test_nobody_waits_and_nothing_goes_by_the_host():
    def work(comm):
        x = nn.Variable.from_numpy_array(numbers(30, 40, seed=comm.rank))
        for each in (F.tanh(x), F.exp(x)):
            each.forward()  # and once more, so that what is compiled is
        y = F.tanh(x)
        y.forward()
        comm.all_reduce(y.data)
        before = cuda.host_waits(str(comm.rank))
        y.forward()
        comm.all_reduce([y.data, x.data], division=True)
        z = F.exp(y)
        z.forward()
        assert cuda.host_waits(str(comm.rank)) == before
        comm.barrier()
        return z.d.copy()

    # The run of z makes y again, of the mean of x.
    wanted = np.exp(np.tanh(np.mean([numbers(30, 40, seed=r) for r in range(SIZE)], axis=0)))
    for found in run(work):
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_arrays_that_are_elsewhere_or_parts_or_numbers():
    def work(comm):
        base = array(np.arange(6.0).reshape(3, 2))
        part, number, empty = base.narrow(0, 1, 1), nn.NdArray((2,)), nn.NdArray((2,))
        number.fill(3)
        other = nn.Variable.from_numpy_array(np.float32([1, 2]))
        with nn.context_scope(gpu(device_id=str((comm.rank + 1) % comm.size))):
            y = F.identity(other)
            y.forward()
        view = base.data
        view[0, 0] = 7
        comm.all_reduce([part, number, empty, y.data])
        comm.barrier()
        return [plain(a).tolist() for a in (base, number, empty, y.data)]

    n = float(SIZE)
    assert run(work) == [[[7, 1, 2 * n, 3 * n, 4, 5], [3 * n, 3 * n], [0, 0], [n, 2 * n]]] * SIZE


ONE_AT_A_TIME = threading.Lock()


def network(rank):
    x = nn.Variable.from_numpy_array(numbers(4, 5, seed=rank))
    with ONE_AT_A_TIME:  # threads have one generator of initial values
        nn.seed(7)
        h = F.relu(PF.affine(x, 6, name="a"))
        h = PF.affine(F.tanh(PF.affine(h, 6, name="shared")), 6, name="shared")
    return F.mean(F.pow_scalar(h, 2)), list(nn.get_parameters().values())


@pytest.mark.parametrize("pack_size", [1, 40, 10**6])
def test_gradients_are_summed_while_backward_goes_on(pack_size):
    def work(comm, scale=3):
        with nn.parameter_scope(f"rank {comm.rank}", {}):
            y, parameters = network(comm.rank)
        callback = comm.all_reduce_callback([p.grad for p in parameters], pack_size, division=True, scale_grad=scale)
        found = []
        for _ in range(2):
            for p in parameters:
                p.grad.zero()
            y.forward(clear_no_need_grad=True)
            y.backward(clear_buffer=True, communicator_callbacks=callback)
            comm.barrier()
            found.append(np.concatenate([p.g.ravel() for p in parameters]))
        assert (found[0] == found[1]).all()
        return found[0]

    for there, here in zip(run(work), run_threads(SIZE, work), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-7)


def test_captured_runs_before_and_behind():
    """What was summed is read by a captured run, whose results are summed again."""

    def work(comm):
        x = nn.Variable.from_numpy_array(numbers(8, seed=comm.rank))
        y = F.tanh(F.mul_scalar(x, 0.5))
        for _ in range(8):
            comm.all_reduce(x.data, division=True)
            y.forward()
            comm.all_reduce(y.data)
        comm.barrier()
        return y.d.copy(), replays(y)

    with graphs(True):
        captured = run(work)
    with graphs(False):
        plainly = run(work)
    for (a, _), (b, _) in zip(captured, plainly, strict=True):
        np.testing.assert_array_equal(a, b)


def normalized(comm, shape=(4, 3, 2, 2)):
    """A network with synchronized normalization; what it is trained on differs between ranks, in size too."""
    rank = comm.rank
    x = nn.Variable.from_numpy_array(numbers(shape[0] + rank, *shape[1:], seed=rank), need_grad=True)
    v = {n: nn.Variable.from_numpy_array(numbers(1, 3, 1, 1, seed=9) ** 2, need_grad=True) for n in ("beta", "gamma")}
    v |= {n: nn.Variable.from_numpy_array(np.full((1, 3, 1, 1), 0.5, "float32")) for n in ("mean", "variance")}
    y = F.sync_batch_normalization(F.tanh(x), *v.values(), comm)
    return x, v, y, F.sum(F.pow_scalar(y, 3) * float(rank + 1))


def test_synchronized_normalization_is_that_of_the_host():
    def work(comm):
        x, v, y, loss = normalized(comm)
        learned = [x, v["beta"], v["gamma"]]
        for p in learned:
            p.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        comm.barrier()
        return [a.copy() for a in (*(p.g for p in learned), v["mean"].d, v["variance"].d, loss.d)]

    for there, here in zip(run(work), run_threads(SIZE, work), strict=True):
        for a, b in zip(there, here, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_the_gradient_of_synchronized_normalization_is_a_graph_too():
    def work(comm):
        x, v, y, loss = normalized(comm)
        gradients = nn.grad([loss], [x, v["gamma"]])
        second = sum(F.sum(F.pow_scalar(g, 2)) for g in gradients)
        for p in (x, v["gamma"]):
            p.grad.zero()
        second.forward(clear_no_need_grad=True)
        second.backward(clear_buffer=True)
        comm.barrier()
        return [a.copy() for a in (second.d, x.g, v["gamma"].g)]

    for there, here in zip(run(work), run_threads(SIZE, work), strict=True):
        for a, b in zip(there, here, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 * np.abs(b).max())


def test_synchronized_normalization_in_use_asks_nobody():
    def work(comm):
        x, v, y, _ = normalized(comm)
        used = GraphConverter(TestModeModifier()).convert(y)
        if comm.rank == 0:  # alone
            used.forward()
            want = F.batch_normalization(F.tanh(x), *v.values(), batch_stat=False)
            want.forward()
            np.testing.assert_allclose(used.d, want.d, rtol=1e-5, atol=1e-6)
        assert (v["mean"].d == 0.5).all()
        with pytest.raises(NotImplementedError, match="a batch normalization over several processes"):
            nn.graph_def.create_graph_from_variable("net", y)
        comm.barrier()

    run(work)


def test_synchronized_normalization_in_captured_runs():
    """Each replay of a captured run asks for its collectives again; nobody waits for a GPU."""

    def work(comm):
        x, v, y, loss = normalized(comm)
        found = []
        for i in range(8):
            x.data.copy_from(nn.NdArray.from_numpy_array(numbers(*x.shape, seed=10 * i + comm.rank)))
            for p in (x, v["beta"], v["gamma"]):
                p.grad.zero()
            before = cuda.host_waits(str(comm.rank))
            loss.forward()
            loss.backward()
            waits = cuda.host_waits(str(comm.rank)) - before
            comm.barrier()
            found.append(np.concatenate([a.ravel() for a in (x.g, v["gamma"].g, v["mean"].d, v["variance"].d, y.d)]))
            comm.barrier()
        return found, waits, replays(loss)

    with graphs(True):
        captured = run(work)
    with graphs(False):
        plainly = run(work)
    for (a, waits, replayed), (b, _, _) in zip(captured, plainly, strict=True):
        assert waits == 0 and len(replayed) == 2 and min(replayed) >= 2, (waits, replayed)
        np.testing.assert_array_equal(a, b)


def test_calls_that_differ_are_an_error_on_all():
    def work(comm):
        is_last = comm.rank == comm.size - 1
        for call in (
            lambda: comm.all_reduce(array(np.zeros(2 + is_last))),
            lambda: comm.all_reduce(array([1], "float16" if is_last else "float32")),
            lambda: comm.bcast(array([1]), int(is_last)),
        ):
            with pytest.raises(ValueError, match="expected the same call on all processes"):
                call()
        x = array([1.0])
        comm.all_reduce(x)
        comm.barrier()
        assert plain(x) == comm.size

    run(work)


def test_one_by_the_host_and_one_by_nccl():
    def work(comm):
        with pytest.raises(ValueError, match=r"expected the same call on all.*(\n.*)*by (threads|nccl)"):
            comm.all_reduce(array([1.0]))

    def over(t):
        return t if t.rank else NcclTransport(t, gpu(), 5.0)

    run_threads(2, work, over)


# --- several contexts in one process ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32"])
@pytest.mark.parametrize("division", [False, True])
def test_gradients_of_contexts_add_up(dtype, division):
    contexts = [gpu(device_id=str(i)) for i in range(SIZE)]
    comm = C.DataParallelCommunicator(contexts[0])
    given = [np.round(8 * numbers(5, 7, seed=i)) for i in range(SIZE)]
    made = []
    for ctx, g in zip(contexts, given, strict=True):
        v = nn.Variable((5, 7), need_grad=True)
        v.grad.copy_from(array(g, dtype))
        empty = nn.Variable((0,), need_grad=True)
        comm.add_context_and_parameters((ctx, {"w": v, "none": empty}))
        made.append(v)
    comm.init()
    comm.allreduce(division=division)
    total = np.sum(given, axis=0)
    wanted = np.fix(total / SIZE) if dtype == "int32" else total / SIZE
    for v in made:
        assert str(v.grad.dtype) == dtype
        near = {"float16": 1e-2, "bfloat16": 5e-2}.get(dtype, 1e-6)
        np.testing.assert_allclose(plain(v.grad).reshape(5, 7), wanted if division else total, rtol=near, atol=near)


def test_contexts_train_as_one():
    """Two networks, each on its GPU with a part of the batch, have the gradients of the whole."""
    x = numbers(8, 5)

    def gradients(ctx, name, part):
        with nn.context_scope(ctx), nn.parameter_scope(name):
            nn.seed(3)
            y = F.mean(
                F.pow_scalar(PF.affine(F.tanh(PF.affine(nn.Variable.from_numpy_array(part), 4, name="a")), 2), 2)
            )
            parameters = nn.get_parameters()
        for p in parameters.values():
            p.grad.zero()
        y.forward()
        y.backward()
        return parameters

    nn.clear_parameters()
    comm = C.DataParallelCommunicator(gpu())
    for i in range(2):
        ctx = gpu(device_id=str(i))
        comm.add_context_and_parameters((ctx, gradients(ctx, f"device{i}", x[4 * i : 4 * i + 4])))
    comm.init()
    comm.allreduce(division=True)
    wanted = gradients(gpu(), "whole", x)
    for _, parameters in comm._registered:
        for name, p in parameters.items():
            np.testing.assert_allclose(p.g, wanted[name].g, rtol=1e-4, atol=1e-6)
    nn.clear_parameters()
