"""Collectives between real processes over TCP sockets, started as torchrun does; what tests/test_mpi.py has for MPI."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mpi_helpers import PROGRAMS
from socket_helpers import run

pytestmark = pytest.mark.host


@pytest.mark.parametrize("size", [1, 2, pytest.param(4, marks=pytest.mark.long)])
def test_collectives_are_numpys(size):
    """In all types, of sizes 0, 1, 7, 40,000 and 10^7; lists, groups, calls that differ; one process needs nobody."""
    assert run(size, "collectives", size).count("is well") == size


def test_derivatives_of_sync_batch_normalization_are_graphs():
    assert run(3, "sync_gradients").count("is well") == 3


def test_sync_batch_normalization_is_that_of_the_whole_batch():
    assert run(2, "sync_batch_normalization").count("is well") == 2


def test_random_programs_are_numpys():
    assert run(3, "random_program", 1, 6).count("is well") == 3


def test_backward_runs_that_fail_on_some_are_told_to_all():
    assert run(3, "failed_runs", 2, 20).count("is well") == 3


def test_failed_runs_are_told_to_all_communicators_whatever_threads_use_them():
    assert run(3, "failed_runs_in_threads", 1, 20).count("is well") == 3


def test_threads_with_a_communicator_each():
    assert run(3, "threads").count("is well") == 3


@pytest.mark.long
def test_many_random_programs_are_numpys():
    assert run(3, "random_program", 3, 400, timeout=600).count("is well") == 3


@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3, 4])
def test_many_backward_runs_that_fail_on_some(size):
    assert run(size, "failed_runs", size, 400, timeout=600).count("is well") == size


def test_torchrun_starts_them_again():
    """It keeps the port itself; what has failed once meets anew."""
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1"]
    settings = {"NNRS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    call = [*command, "--standalone", str(PROGRAMS / "torchrun.py")]
    done = subprocess.run(
        call, env={**os.environ, **settings}, capture_output=True, encoding="utf-8", check=False, timeout=120
    )
    assert done.returncode == 0 and done.stdout.count("is well after 1 restart") == 2, done
    assert "rank 1 ended all processes: ValueError: only once" in done.stderr, done


def test_a_program_that_a_rank_starts_is_no_rank():
    assert run(2, "child").count("is well") == 2
