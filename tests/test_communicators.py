"""Communicators without MPI: a world of one, contexts in one process, and threads over a transport of their own."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import nnrs as nn
import nnrs.communicators as C
from nnrs._communication import launch, nccl, reductions
from thread_transport import Board, ThreadTransport, run_threads

CPU = nn.ext_utils.get_extension_context("cpu")
LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    for name in (*LAUNCHERS, "NNRS_COMMUNICATOR_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    yield
    nn.clear_parameters()


def array(*values, dtype="float32"):
    made = nn.NdArray.from_numpy_array(np.array(values, "float64"))
    made.cast(dtype)
    return made


def world_of_one(kind=C.MultiProcessDataParallelCommunicator):
    comm = kind(nn.get_current_context())
    comm.init()
    return comm


# --- one process ------------------------------------------------------------------------------------------------------


def test_names():
    import nnrs.communicator

    several = C.MultiProcessDataParallelCommunicator
    for name in ("MultiProcessCommunicator", "MultiProcessDataParalellCommunicator", "Comm", "Dist"):
        assert getattr(C, name) is several is getattr(nnrs.communicator, name)
    assert issubclass(several, C.Communicator) and nnrs.communicator.Communicator is C.Communicator
    for module in (C, nnrs.communicator):
        with pytest.raises(AttributeError, match="has no attribute 'Communicators'"):
            module.Communicators  # noqa: B018


@pytest.mark.parametrize("kind", [C.MultiProcessDataParallelCommunicator, C.DataParallelCommunicator])
def test_a_world_of_one(kind):
    comm = world_of_one(kind)
    assert (comm.size, comm.rank, comm.local_rank, comm.name) == (1, 0, 0, kind.__name__)
    x, y = array(1, 2), array(0, 0, dtype="float16")
    comm.all_reduce(x, True)
    comm.all_reduce([x, y], division=True, inplace=True)
    comm.reduce(x, 0, True, False, "world")
    comm.bcast([x], 0)
    comm.barrier()
    comm.all_gather(x, [y])
    assert y.dtype == np.float16 and y.data.tolist() == [1, 2]
    comm.reduce_scatter([x], y, division=True)
    assert y.data.tolist() == x.data.tolist() == [1, 2]
    assert comm.new_group(("me", [0])) == "me" and comm.list_groups() == {"world": [0], "me": [0]}
    assert comm.find_group("me") == [0] and comm.find_group("others") == []
    with pytest.raises(TypeError, match="find_group: argument 'group'"):
        comm.find_group([])
    comm.all_reduce(x, group="me")
    with pytest.raises(SystemExit):
        comm.abort()


def test_one_process_loads_no_mpi():
    code = (
        "import sys, nnrs as nn, nnrs.communicators as C\n"
        "c = C.MultiProcessCommunicator(nn.get_current_context()); c.init(); c.barrier()\n"
        "assert c.size == 1 and not [m for m in sys.modules if m.startswith('mpi4py')]\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in LAUNCHERS}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)


def test_registered_parameters():
    comm = world_of_one()
    v = nn.Variable.from_numpy_array(np.ones(2), grad=np.full(2, 3.0), need_grad=True)
    comm.add_context_and_parameters((nn.get_current_context(), {"v": v, "w": v}))
    comm.allreduce(True, True)
    with pytest.raises(TypeError, match="remove_context_parameters: argument 'keys': expected a list of names"):
        comm.remove_context_parameters("w")
    comm.remove_context_parameters(["w", "there is none"])
    comm.clear_context_parameters()
    comm.allreduce()
    assert v.g.tolist() == [3, 3]


@pytest.mark.parametrize(("call", "kind", "says"), [
    (lambda c, x: c.all_reduce(3), TypeError, "all_reduce: argument 'data': expected a list of NdArrays"),
    (lambda c, x: c.all_reduce([nn.Variable((1,))]), TypeError, "v.grad"),
    (lambda c, x: c.all_reduce(x, group="there"), ValueError, "argument 'group': expected one of 'world', got 'there'"),
    (lambda c, x: c.all_reduce(x, group=3), TypeError, "the name of a group"),
    (lambda c, x: c.all_reduce(x, np.zeros(2)), TypeError, "argument 'division': expected bool"),
    (lambda c, x: c.reduce(x, 1), ValueError, "argument 'dst': expected a rank of group 'world', .0., got 1"),
    (lambda c, x: c.bcast(x, -1), ValueError, "argument 'src'"),
    (lambda c, x: c.bcast(x, "a"), TypeError, "argument 'src': expected int"),
    (lambda c, x: c.all_gather(x, [x, x]), ValueError, "expected 1 arrays of shape .2,., one for each process"),
    (lambda c, x: c.all_gather(x, [nn.NdArray((3,))]), ValueError, "argument 'ndarray_list'"),
    (lambda c, x: c.reduce_scatter(x, x), TypeError, "argument 'ndarray_list': expected"),
    (lambda c, x: c.reduce_scatter([x], 3), TypeError, "argument 'ndarray': expected an NdArray"),
    (lambda c, x: c.new_group("abc"), TypeError, r"a tuple \(name, ranks\)"),
    (lambda c, x: c.new_group(("world", [0])), ValueError, "a name that is not taken"),
    (lambda c, x: c.new_group(("a", [])), ValueError, "different ranks below 1"),
    (lambda c, x: c.new_group(("a", [0, 0])), ValueError, "different ranks below 1"),
    (lambda c, x: c.new_group(("a", [1])), ValueError, "different ranks below 1"),
    (lambda c, x: c.new_group((1, [0])), TypeError, "a name and ranks"),
    (lambda c, x: c.all_reduce_callback([x], 0), ValueError, "argument 'pack_size': expected 1 or more"),
    (lambda c, x: c.all_reduce_callback([x], 1, scale_grad="a"), TypeError, "scale_grad"),
    (lambda c, x: c.add_context_and_parameters(3), TypeError, "a tuple of a Context and a dict"),
    (lambda c, x: c.add_context_and_parameters((nn.get_current_context(), {"a": 1})), TypeError, "dict of Variables"),
    (lambda c, x: C.MultiProcessCommunicator(3), TypeError, "argument 'ctx': expected a Context"),
    (lambda c, x: C.DataParallelCommunicator("cpu"), TypeError, "argument 'ctx': expected a Context"),
    (lambda c, x: c.all_reduce({x}), TypeError, "all_reduce: argument 'data': expected a list of NdArrays .*got set"),
    (lambda c, x: c.all_gather(x, {x}), TypeError, "all_gather: argument 'ndarray_list': expected a list .*got set"),
    (lambda c, x: c.all_gather(x, [array(0, 0, dtype="int32")]), TypeError, "'ndarray_list': .*takes float32"),
    (lambda c, x: c.reduce_scatter([x], array(0, 0, dtype="int8")), TypeError, "'ndarray': .*takes float32"),
    (lambda c, x: c.reduce(x, True), TypeError, "Communicator.reduce: argument 'dst': expected a rank, got bool"),
    (lambda c, x: c.new_group(("a", [True])), TypeError, "'name_ranks': expected a rank, got bool"),
    (lambda c, x: c.bcast(x, "0"), TypeError, "Communicator.bcast: argument 'src': expected int"),
    (lambda c, x: c.all_reduce_callback(x, 0), ValueError, "Communicator.all_reduce_callback: argument 'pack_size'"),
    (lambda c, x: c.all_reduce_callback(x, 1, scale_grad=float("nan")), ValueError, "'scale_grad': expected a finite"),
    (lambda c, x: c.add_context_and_parameters((CPU, {1: nn.Variable(())})), TypeError, "expected names of Variables"),
    (lambda c, x: C.Communicator(3), TypeError, "nnrs.communicators.Transport"),
])  # fmt: skip
def test_mistakes(call, kind, says):
    x = array(1, 2)
    with pytest.raises(kind, match=says):
        call(world_of_one(), x)
    assert x.data.tolist() == [1, 2]


def test_members_before_init_say_so():
    comm = C.MultiProcessCommunicator(nn.get_current_context())
    for use in (lambda: comm.size, lambda: comm.rank, comm.list_groups, comm.barrier, lambda: comm.all_reduce([])):
        with pytest.raises(RuntimeError, match=r"call init\(\) first"):
            use()


# --- launchers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LAUNCHERS if name != "WORLD_SIZE"])
def test_without_mpi4py_it_says_what_to_install(monkeypatch, name):
    monkeypatch.setenv(name, "4")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    comm = C.MultiProcessCommunicator(CPU)
    with pytest.raises(ImportError, match=r"started 4 processes.*(\n.*)*pip install 'nnrs\[mpi\]'.*torchrun"):
        comm.init()


@pytest.mark.parametrize(("variables", "says"), [
    ({}, r"'RANK': expected this process's number, from 0 and below WORLD_SIZE \(4\), got none\n.*torchrun sets"),
    ({"RANK": "4"}, "'RANK': .*got '4'"),
    ({"RANK": "0"}, "'MASTER_PORT': expected the number of a port that is free on rank 0's machine, got none"),
    ({"RANK": "0", "MASTER_PORT": "65536"}, "'MASTER_PORT': .*got '65536'"),
    ({"RANK": "0", "MASTER_PORT": "29500"}, "'MASTER_ADDR': expected the address of rank 0's machine, got none"),
])  # fmt: skip
def test_variables_of_torchrun_that_are_missing(monkeypatch, variables, says):
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"WORLD_SIZE": "4", **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(C.CommunicatorError, match=says):
        C.MultiProcessCommunicator(CPU).init()


class OneProcess:
    """mpi4py's module where MPI was started by nobody."""

    class COMM_WORLD:
        size = 1

    def Get_library_version():
        return "Open MPI v5, somewhere\n"


@pytest.mark.parametrize(
    ("name", "hint"), [("SLURM_STEP_NUM_TASKS", "srun: --mpi=pmix or pmi2"), ("PMI_SIZE", "Open MPI v5. are two")]
)
def test_a_launcher_that_starts_no_mpi(monkeypatch, name, hint):
    monkeypatch.setenv(name, "2")
    monkeypatch.setattr(launch, "_mpi4py", lambda started, timeout: OneProcess)
    with pytest.raises(C.CommunicatorError, match=f"expected 2 processes, as.*\n.*{hint}"):
        C.MultiProcessCommunicator(CPU).init()


def test_mpirun_counts_before_torchrun():
    assert launch.launched({}) == ("nobody", 1)
    assert launch.launched({"WORLD_SIZE": "3"}) == ("torchrun", 3)
    assert launch.launched({"WORLD_SIZE": "3", "PMI_SIZE": "2"}).size == 2
    by_srun = {"WORLD_SIZE": "8", "SLURM_STEP_NUM_TASKS": "2"}
    assert launch.launched(by_srun) == ("srun", 2)
    assert launch.launched({**by_srun, "TORCHELASTIC_RUN_ID": "1"}) == ("torchrun", 8)
    assert launch.launched({"WORLD_SIZE": ""}).size == 1
    for name in LAUNCHERS:
        with pytest.raises(
            C.CommunicatorError, match=f"argument '{name}': expected the number of processes, got 'many'"
        ):
            launch.launched({name: "many"})


@pytest.mark.parametrize(
    "members", [{"size": 0}, {"size": "2"}, {"rank": 1}, {"size": 2, "rank": -1}, {"local_rank": "x"}]
)
def test_a_transport_that_is_of_no_process(members):
    transport = C.Alone()
    for name, value in members.items():
        setattr(transport, name, value)
    with pytest.raises((ValueError, TypeError), match=f"Alone: argument '{list(members)[-1]}': expected"):
        C.Communicator(transport)


def test_a_move_without_an_answer_is_an_error():
    """It would be taken for one that is over: the sum would be of what is not there yet."""

    class Forgetful(ThreadTransport):
        def all_to_all(self, send, cuts, received):
            super().all_to_all(send, cuts, received)

    def work(comm):
        with pytest.raises(TypeError, match=r"Forgetful: expected moves that give a function, .* got NoneType None"):
            comm.all_reduce(nn.NdArray.from_numpy_array(np.ones(100000)))

    run_threads(2, work, lambda t: Forgetful(t.board, t.rank, t.size))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_communicator_is_not_copied(copied):
    with pytest.raises(TypeError, match="Communicator: no copy and no pickle"):
        copied(C.Communicator())


def test_a_gpu_context_with_others_wants_nccl(monkeypatch):
    """One process needs none."""
    two = ThreadTransport(Board(), 0, 2)
    monkeypatch.setattr(launch, "world", lambda timeout: two)
    monkeypatch.setattr(C, "gpu_number", lambda context: 0)
    report = [("cuDNN", True, "libcudnn.so.9"), ("NCCL", False, "NCCL was not found")]
    monkeypatch.setattr(nccl._core, "cuda_libraries", lambda number: report, raising=False)
    comm = C.MultiProcessCommunicator(CPU)
    says = r"argument 'ctx': expected NCCL.*got NCCL was not found\n.*nnrs\[cuda12\].*context of the CPU"
    with pytest.raises(ImportError, match=says):
        comm.init()
    monkeypatch.setattr(launch, "world", lambda timeout: C.Alone())
    comm.init()
    assert comm.size == 1


def test_which_gpu_a_context_means(monkeypatch):
    class Named:
        def __init__(self, backend, device_id="0"):
            self.backend, self.device_id = backend, device_id

    monkeypatch.setattr(nccl._core, "cuda_device_count", lambda: 2)
    assert nccl.gpu_number(CPU) is None and nccl.gpu_number(Named(["cpu:float", "cudnn:float"], "1")) is None
    assert nccl.gpu_number(Named(["tpu:float", "cudnn:half", "cpu:float"], "1")) == 1
    assert nccl.gpu_number(Named(["cuda|float"])) == 0
    with pytest.raises(ValueError, match="argument 'ctx': expected the context of a GPU, with its number"):
        nccl.gpu_number(Named(["cuda:float"], "first"))

    def none():
        raise nn.Error("there is no GPU")

    monkeypatch.setattr(nccl._core, "cuda_device_count", none)
    assert nccl.gpu_number(Named(["cuda:float", "cpu:float"])) is None


@pytest.mark.parametrize("text", ["soon", "-1", "0", "nan"])
def test_a_timeout_that_is_none(monkeypatch, text):
    monkeypatch.setenv("NNRS_COMMUNICATOR_TIMEOUT", text)
    with pytest.raises(ValueError, match="NNRS_COMMUNICATOR_TIMEOUT': expected seconds above 0"):
        world_of_one()
    monkeypatch.setenv("NNRS_COMMUNICATOR_TIMEOUT", "3")
    assert launch.timeout_setting(None) == 3 and launch.timeout_setting(2.0) == 2


# --- contexts in one process ------------------------------------------------------------------------------------------


def contexts(*gradients):
    comm = C.DataParallelCommunicator(CPU)
    made = [nn.Variable.from_numpy_array(np.zeros(2), grad=np.full(2, g), need_grad=True) for g in gradients]
    for v in made:
        comm.add_context_and_parameters((CPU, {"w": v}))
    comm.init()
    return comm, made


@pytest.mark.parametrize("division", [False, True])
def test_gradients_of_contexts_add_up(division):
    comm, made = contexts(1.0, 2.0, 6.0)
    assert comm.size == 3 and comm.rank == 0
    comm.allreduce(division=division)
    assert [v.g.tolist() for v in made] == [[3, 3] if division else [9, 9]] * 3
    with pytest.raises(NotImplementedError, match="all_reduce: not for several contexts\n.*allreduce"):
        comm.all_reduce([v.grad for v in made])
    with pytest.raises(NotImplementedError, match="not for several contexts"):
        comm.all_reduce_callback([v.grad for v in made], 1)
    comm.barrier()


@pytest.mark.parametrize("kinds", [
    ("float16", "float32"),
    ("float32", "bfloat16"),
    ("bfloat16", "bfloat16"),
    ("float64", "float32"),
    ("int8", "float32"),
])  # fmt: skip
def test_gradients_of_contexts_keep_their_types(kinds):
    comm, made = contexts(1.5, 6.0)
    for v, kind in zip(made, kinds, strict=True):
        v.grad.cast(kind)
    comm.allreduce()
    assert [str(np.dtype(v.grad.dtype)) if v.grad.dtype != "bfloat16" else "bfloat16" for v in made] == list(kinds)
    want = 7 if "int8" in kinds else 7.5
    assert [v.grad.data.tolist() for v in made] == [[int(want) if kind == "int8" else want] * 2 for kind in kinds]


def test_contexts_with_other_parameters():
    comm, _ = contexts(1.0)
    comm.add_context_and_parameters((CPU, {"v": nn.Variable((2,))}))
    with pytest.raises(ValueError, match="same names and shapes of parameters in each context.*context 1"):
        comm.init()
    comm.clear_context_parameters()
    comm.init()


# --- a transport of one's own -----------------------------------------------------------------------------------------


def test_collectives_over_threads():
    def work(comm):
        r, n = comm.rank, comm.size
        x = array(*np.arange(10) + r)
        comm.all_reduce([x, array(dtype="int32")], division=True)
        assert x.data.tolist() == (np.arange(10) + 1).tolist()
        comm.new_group(("two", [2, 0]))
        both = [array(0), array(0)]
        comm.all_gather(array(r), both, group="two")
        parts = [array(r + i, dtype="int64") for i in range(n)]
        comm.reduce_scatter(parts, parts[0])
        y = array(r)
        comm.reduce(y, 2, group="two")
        return [float(v.data[0]) for v in both], int(parts[0].data[0]), float(y.data[0])

    assert run_threads(3, work) == [([2, 0], 3, 0), ([0, 0], 6, 1), ([2, 0], 9, 2)]


def test_halves_are_rounded_once():
    """2048 + 1 + 1 is 2048 in float16, step by step; the sum in float32 is 2050."""

    def work(comm):
        kinds = ("float16", "bfloat16")
        made = [array([2048.0, 1.0, 1.0][comm.rank], dtype=k) for k in kinds]
        comm.all_reduce(made)
        assert [str(x.dtype) for x in made] == list(kinds)
        return [float(x.data[0]) for x in made]

    assert run_threads(3, work) == [[2050.0, 2048.0]] * 3


def test_the_same_array_twice_is_summed_once():
    def work(comm):
        x = array(1.0)
        comm.all_reduce([x, x])
        y = nn.NdArray.from_numpy_array(np.ones(70000, "float32"))
        comm.all_reduce([y, y, x])
        return float(x.data[0]), float(y.data[-1])

    assert run_threads(2, work) == [(4.0, 2.0)] * 2


def test_whole_numbers():
    def work(comm):
        x = array(-7, 7, 1, dtype="int8")
        y = nn.NdArray.from_numpy_array(np.int64([2**62 + comm.rank, -(2**61)]))
        z = array(comm.rank, 0, dtype="bool")
        comm.all_reduce([x], division=True)
        comm.all_reduce([y], division=False)
        comm.all_reduce([z], division=True)
        return x.data.tolist(), y.data.tolist(), z.data.tolist()

    wrapped = (2 * 2**62 + 1) - 2**64
    assert run_threads(2, work) == [([-7, 7, 1], [wrapped, -(2**62)], [True, False])] * 2
    out = np.array([0, 0, 0], "int64")
    reductions.ordered_sum(np.int64([[-7, 7, 2**62 + 1]]), out, 2)
    assert out.tolist() == [-3, 3, 2**61]


@pytest.mark.parametrize("dtype", "? i1 u1 i2 u2 i4 u4 i8 u8 f4 f8".split())
def test_ordered_sums_have_the_bits_of_numpys(dtype):
    random = np.random.default_rng(3)
    for count, n in [(1, 5), (2, 70_001), (3, 1), (4, 0), (5, 2049)]:
        rows = (random.normal(size=(count, n)) * 100).astype("int64").astype(dtype)
        if rows.dtype.kind == "f":
            rows += random.normal(size=(count, n)).astype(dtype)
        expected = rows[0].copy()
        for row in rows[1:]:
            expected += row
        out = np.empty_like(expected)
        reductions.ordered_sum(rows, out)
        np.testing.assert_array_equal(out, expected)
        reductions.ordered_sum(rows, out, 3)
        if rows.dtype.kind == "f":
            expected = expected / rows.dtype.type(3)
        elif rows.dtype.kind in "iu":
            expected = (expected - np.fmod(expected, expected.dtype.type(3))) // expected.dtype.type(3)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(("rows", "out", "divide_by"), [
    (np.zeros((2, 3)), np.zeros(4), 1),
    (np.zeros((2, 3)), np.zeros(3, "f4"), 1),
    (np.zeros((3, 2)).T, np.zeros(3), 1),
    (np.zeros((2, 3)), np.zeros(6)[::2], 1),
    (np.zeros((2, 3)), np.zeros(3), 0),
    (np.zeros((2, 3), ">f8"), np.zeros(3), 1),
    (np.zeros((2, 3)), np.frombuffer(bytes(24)), 1),
    (np.zeros(()), np.zeros(()), 1),
    (np.zeros((2, 3), "c16"), np.zeros(3, "c16"), 1),
])  # fmt: skip
def test_ordered_sums_that_cannot_be(rows, out, divide_by):
    with pytest.raises(ValueError, match="ordered_sum"):
        reductions.ordered_sum(rows, out, divide_by)


def test_ordered_sums_in_their_own_memory():
    x = np.arange(6.0)
    with pytest.raises(ValueError, match="other memory"):
        reductions.ordered_sum(x.reshape(2, 3), x[:3])
    reductions.ordered_sum(x[None], x, 2)
    assert x.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]


@pytest.mark.parametrize("segment", [1, 3, 7, 1000])
def test_large_arrays_go_in_segments(monkeypatch, segment):
    monkeypatch.setattr(reductions, "SEGMENT", segment)
    monkeypatch.setattr(reductions, "FEW", 0)

    def work(comm):
        x = array(*np.arange(8) * (comm.rank + 1))
        y = array(*np.arange(8) * (comm.rank + 1))
        comm.all_reduce(x)
        comm.reduce(y, 1)
        comm.bcast(x, 0)
        return x.data.tolist(), y.data.tolist()

    found = run_threads(3, work)
    total = (np.arange(8) * 6).tolist()
    assert [x for x, _ in found] == [total] * 3
    assert [y for _, y in found] == [list(range(8)), total, [3 * i for i in range(8)]]


def test_calls_that_differ_are_an_error_for_all():
    def work(comm):
        with pytest.raises(ValueError, match="expected the same call on all processes"):
            comm.all_reduce(array(*range(2 + comm.rank)))
        x = array(1)
        comm.all_reduce(x)
        return float(x.data[0])

    assert run_threads(2, work) == [2, 2]


def test_long_calls_show_where_they_differ():
    def work(comm):
        arrays = [nn.NdArray((k, 3)) for k in range(1, 100)]
        if comm.rank:
            arrays[70] = nn.NdArray((5, 5, 5))
        with pytest.raises(ValueError) as caught:
            comm.all_reduce(arrays)
        return str(caught.value)

    for text in run_threads(2, work):
        assert "float32(71, 3)" in text and "float32(5, 5, 5)" in text and "float32(1, 3)" not in text
        assert len(text) < 900


def test_an_error_of_the_transport_ends_the_communicator():
    class Broken(C.Alone):
        size = 2

        def all_gather(self, buffer, cuts):
            raise OSError("the cable is out")

    comm = C.Communicator(Broken())
    with pytest.raises(C.CommunicatorError, match=r"all_reduce \(call 1, group 'world'\): OSError: the cable is out"):
        comm.all_reduce(array(1))
    with pytest.raises(C.CommunicatorError, match="has ended: all_reduce"):
        comm.barrier()
