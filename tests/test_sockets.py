"""Collectives between real processes over TCP sockets, started as torchrun does; what tests/test_mpi.py has for MPI."""

from __future__ import annotations

import pytest

from socket_helpers import run

pytestmark = pytest.mark.host


@pytest.mark.parametrize("size", [1, 2, 4])
def test_collectives_are_numpys(size):
    """In all types, of sizes 0, 1, 7, 40,000 and 10^7; lists, groups, calls that differ; one process needs nobody."""
    assert run(size, "collectives", size).count("is well") == size


def test_derivatives_of_sync_batch_normalization_are_graphs():
    assert run(3, "sync_gradients").count("is well") == 3


def test_sync_batch_normalization_is_that_of_the_whole_batch():
    assert run(2, "sync_batch_normalization").count("is well") == 2


def test_random_programs_are_numpys():
    assert run(3, "random_program", 1, 15).count("is well") == 3
