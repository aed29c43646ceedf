"""Collectives between real processes, over MPI on this machine."""

from __future__ import annotations

import pytest

from mpi_helpers import mpirun

pytestmark = pytest.mark.host


@pytest.mark.parametrize("size", [1, 2, 4])
def test_collectives_are_numpys(size):
    """In all types, of sizes 0, 1, 7, 40,000 and 10^7; lists, groups, calls that differ; one process needs no MPI."""
    assert mpirun(size, "collectives", size).count("is well") == size
