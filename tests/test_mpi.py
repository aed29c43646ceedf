"""Collectives between real processes, over MPI on this machine."""

from __future__ import annotations

import pytest

from mpi_helpers import mpirun

pytestmark = pytest.mark.host


@pytest.mark.parametrize("size", [1, pytest.param(2, marks=pytest.mark.long), 4])
def test_collectives_are_numpys(size):
    """In all types, of sizes 0, 1, 7, 40,000 and 10^7; lists, groups, calls that differ; one process needs no MPI."""
    assert mpirun(size, "collectives", size).count("is well") == size


def test_derivatives_of_sync_batch_normalization_are_graphs():
    assert mpirun(3, "sync_gradients").count("is well") == 3


def test_gradients_are_known_by_their_memory():
    assert mpirun(2, "views").count("is well") == 2


def test_sync_batch_normalization_is_that_of_the_whole_batch():
    """Gradients and running statistics too, with sums of parameters' gradients between those of the normalizations."""
    assert mpirun(2, "sync_batch_normalization").count("is well") == 2


def test_random_programs_are_numpys():
    assert mpirun(3, "random_program", 1, 6).count("is well") == 3


def test_backward_runs_that_fail_on_some_are_told_to_all():
    assert mpirun(3, "failed_runs", 2, 20).count("is well") == 3


@pytest.mark.parametrize("size", [2, 3])
def test_failed_runs_are_told_to_all_communicators_whatever_threads_use_them(size):
    assert mpirun(size, "failed_runs_in_threads", size, 20).count("is well") == size


def test_sums_under_way_when_a_program_ends_keep_their_arrays():
    assert mpirun(3, "unfinished_at_the_end").count("is well") == 3


@pytest.mark.long
def test_many_random_programs_are_numpys():
    assert mpirun(3, "random_program", 3, 400, timeout=600).count("is well") == 3


@pytest.mark.long
@pytest.mark.parametrize("size", [2, 3, 4])
def test_many_backward_runs_that_fail_on_some(size):
    assert mpirun(size, "failed_runs", size, 400, timeout=600).count("is well") == size
    assert mpirun(size, "failed_runs_in_threads", size + 10, 400, timeout=600).count("is well") == size


def test_a_program_that_a_rank_starts_is_no_rank():
    assert mpirun(2, "child").count("is well") == 2
