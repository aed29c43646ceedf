"""Communicators of one process: sums over all processes are the values themselves; several processes are an error."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs.ext_utils import get_extension_context

KINDS = [
    C.DataParallelCommunicator,
    C.MultiProcessCommunicator,
    C.MultiProcessDataParallelCommunicator,
    C.MultiProcessDataParalellCommunicator,
]


@pytest.fixture
def comm(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        monkeypatch.delenv(name, raising=False)
    made = C.MultiProcessDataParallelCommunicator(get_extension_context("cpu"))
    made.init()
    return made


def array(*numbers):
    return nn.NdArray.from_numpy_array(np.float32(numbers))


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_runs_alone(kind):
    import nnrs.communicator

    assert getattr(nnrs.communicator, kind.__name__) is kind and issubclass(kind, C.Communicator)
    made = kind(get_extension_context("cpu"))
    made.init()
    assert (made.size, made.rank, made.local_rank, made.name) == (1, 0, 0, kind.__name__)
    with pytest.raises(TypeError, match="'context': expected a Context"):
        kind("cpu")


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"])
def test_several_processes_are_an_error(name, monkeypatch):
    monkeypatch.setenv(name, "4")
    made = C.MultiProcessCommunicator(get_extension_context("cpu"))
    with pytest.raises(RuntimeError, match="MultiProcessCommunicator.init: 4 processes were started") as e:
        made.init()
    assert isinstance(e.value, nn.Error)


def test_the_command_line_says_so():
    code = "import sys; from nnrs.utils.cli.cli import main; sys.exit(main(['--mpi', 'version']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "OMPI_COMM_WORLD_SIZE": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and "nnrs version: " in done.stderr and "Traceback" not in done.stderr


def test_sums_are_what_the_values_are(comm):
    a, b = array(1, 2), array(3)
    comm.all_reduce(a, division=True, inplace=True)
    comm.all_reduce([a, b])
    comm.reduce([a, b], 0)
    comm.bcast(a, 0)
    comm.barrier()
    target = array(0, 0)
    comm.reduce_scatter([a], target)
    assert target.data.tolist() == a.data.tolist() == [1, 2] and b.data.tolist() == [3]
    comm.all_gather(array(5, 6), [target])
    assert target.data.tolist() == [5, 6]


def test_groups(comm):
    assert comm.new_group(("half", [0])) == "half" and comm.new_group(("none", [])) == "none"
    assert comm.list_groups() == {"world": [0], "half": [0], "none": []}
    assert (comm.find_group("half"), comm.find_group("other")) == ([0], [])
    comm.all_reduce(array(1), group="half")


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda c: c.all_reduce(array(1), group="other"), ValueError, "'group': expected one of world"),
        (lambda c: c.bcast(array(1), 1), ValueError, "expected a process of .0., got 1"),
        (lambda c: c.reduce(array(1), -1), ValueError, "expected a process"),
        (lambda c: c.all_reduce(np.ones(2)), TypeError, "NdArray"),
        (lambda c: c.all_reduce([nn.Variable((2,))]), TypeError, "NdArrays"),
        (lambda c: c.new_group(("world", [0])), ValueError, "a name that no group has"),
        (lambda c: c.new_group(("a", [1])), ValueError, "ranks of 0"),
        (lambda c: c.all_gather(array(1), [array(1), array(1)]), ValueError, "each of 1 process, got 2"),
        (lambda c: c.add_context_and_parameters(3), TypeError, "a tuple of a context"),
        (lambda c: c.all_reduce_callback([], 0), ValueError, "'pack_size': expected 1 or more"),
    ],
)
def test_what_does_not_fit(call, kind, text, comm):
    with pytest.raises(kind, match=text) as e:
        call(comm)
    assert isinstance(e.value, nn.Error)


def train(comm):
    """A script for several GPUs, in NNabla's two styles."""
    nn.clear_parameters()
    x = nn.Variable.from_numpy_array(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    loss = F.mean(PF.affine(x, 2, w_init=np.ones((3, 2))) ** 2)
    solver = S.Sgd(0.1)
    solver.set_parameters(nn.get_parameters())
    if comm is not None:
        comm.add_context_and_parameters((get_extension_context("cpu"), nn.get_parameters()))
    for step in range(4):
        loss.forward()
        solver.zero_grad()
        gradients = [v.grad for v in nn.get_parameters().values()]
        callback = comm.all_reduce_callback(gradients, 1 << 20, division=True) if comm and step % 2 else None
        loss.backward(communicator_callbacks=callback)
        if comm is not None and step % 2 == 0:
            comm.all_reduce(gradients, division=True, inplace=False)
            comm.allreduce(division=True)
        solver.update()
    return float(loss.d)


def test_training_is_that_without_a_communicator(comm):
    assert train(comm) == train(None)


def test_gradients_are_scaled(comm):
    x = nn.Variable.from_numpy_array(np.float32([1, 2]), need_grad=True)
    x.grad.zero()
    y = F.sum(x**2)
    y.forward()
    y.backward(communicator_callbacks=comm.all_reduce_callback([x.grad], 10, scale_grad=0.5))
    assert x.g.tolist() == [1, 2]


def test_batch_normalization_over_all_processes(comm):
    x = nn.Variable.from_numpy_array(np.random.RandomState(0).rand(4, 3).astype(np.float32))
    one = PF.sync_batch_normalization(x, comm)
    two = PF.batch_normalization(x, name="other")
    F.sink(one, two).forward()
    assert np.allclose(one.d, two.d, atol=1e-6)


def test_abort_ends_the_program(comm):
    with pytest.raises(SystemExit) as e:
        comm.abort()
    assert e.value.code == 1
