"""Arrays of GPUs between processes: words by MPI or sockets, arrays by NCCL, emulated (feature `emulate`)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache

import pytest

import socket_helpers
from mpi_helpers import failing, mpirun

pytestmark = pytest.mark.host
# Each formula that comes again would be compiled, for a second.
EMULATED = {"NNRS_CUDA": "emulate:2", "NNRS_CUDA_LIBRARIES": "1", "NNRS_CUDA_COMPILER": "0"}


@cache
def why_not() -> str | None:
    code = "from nnrs.ext import cuda; print(cuda.get_device_count())"
    environment = {**os.environ, **EMULATED, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


@pytest.fixture(autouse=True)
def _emulated():
    if why_not():
        pytest.skip(f"no emulated GPU: {why_not()}")


@pytest.mark.parametrize("start", [mpirun, socket_helpers.run])
def test_collectives_are_numpys(start):
    """What tests/test_mpi.py has for the CPU, and the sums of NCCL itself."""
    assert start(2, "collectives", 2, "cudnn", **EMULATED).count("is well") == 2


@pytest.mark.parametrize("start", [mpirun, socket_helpers.run])
def test_training_is_that_of_one_process(start):
    assert start(2, "nccl", "training", **EMULATED).count("is well") == 2


def test_sync_batch_normalization_is_that_of_the_whole_batch():
    assert mpirun(2, "sync_batch_normalization", "cudnn", **EMULATED).count("is well") == 2


def test_one_that_dies_before_it_comes_to_nccl():
    """The other one, which waits for it on its GPU, is told within the timeout."""
    settings = {**EMULATED, "NNRS_COMMUNICATOR_TIMEOUT": "0.5"}
    done = failing(2, "nccl", "dies", timeout=30, options=["--enable-recovery"], **settings)
    text = done.stdout + done.stderr
    assert "rank 0 of 2 ends all processes: its communicator has failed" in text, text
    why = r"rank 0 of 2 in group 'world': AllGather of 5 float32 \(call 2\): not over after 0.5 s"
    assert re.search(r"all_reduce \(call 2, group 'world'\): DeviceError: " + why, text), text
    assert re.search(r"this communicator has ended: .*" + why, text), text


def test_one_that_dies_before_it_comes_to_nccl_over_sockets():
    """The other one is told by its GPU, or where it still waits by the connection."""
    done = socket_helpers.failing(2, "nccl", "dies", NNRS_COMMUNICATOR_TIMEOUT="0.5", **EMULATED)
    told = r"DeviceError: rank 0 of 2 in group 'world'|nnrs: rank 0 of 2 is ended: rank 1 ended without a word"
    assert all(done.statuses) and re.search(told, done.text), done


def test_a_program_over_sockets_ends_while_its_communicator_lives(tmp_path):
    out = socket_helpers.run(2, "nccl_end", "exit", TMPDIR=str(tmp_path), **EMULATED)
    assert out.count("is well") == 2 and not list(tmp_path.glob("nnrs-nccl-*"))


@pytest.mark.parametrize("how", ["end", pytest.param("exit", marks=pytest.mark.long), "raise"])
def test_a_program_ends_while_its_communicator_lives(tmp_path, how):
    """All leave NCCL: the last one takes away what the emulated one keeps on the disk. An error ends all at once."""
    done = failing(2, "nccl_end", how, timeout=60, TMPDIR=str(tmp_path), **EMULATED)
    assert (done.returncode != 0) == (how == "raise"), done.stderr
    if how == "raise":
        assert "nnrs: rank 1 of 2 ends all processes: ValueError" in done.stderr
    else:
        assert done.stdout.count("is well") == 2 and not list(tmp_path.glob("nnrs-nccl-*")), done.stderr


def test_two_processes_with_one_gpu():
    done = failing(2, "nccl", "same_gpu", timeout=30, **EMULATED)
    assert done.returncode != 0 and "is well" not in done.stdout
    assert "have one GPU" in done.stderr and "device_id=str(comm.local_rank)" in done.stderr, done.stderr


def test_without_nccl():
    done = failing(2, "nccl", "init", timeout=30, **{**EMULATED, "NNRS_CUDA_LIBRARIES": "0"})
    assert done.returncode != 0
    assert re.search(r"MissingPackageError: .*argument 'ctx': expected NCCL.*\n.*'nnrs\[cuda12\]'", done.stderr)
