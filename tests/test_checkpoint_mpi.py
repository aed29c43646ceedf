"""Checkpoints of real processes, over MPI and over sockets on this machine."""

from __future__ import annotations

import os

import pytest

import socket_helpers
from mpi_helpers import mpirun

pytestmark = pytest.mark.host


@pytest.mark.parametrize("start", [mpirun, socket_helpers.run])
def test_a_signal_to_one_process_saves_and_stops_all(tmp_path, start):
    """They all stop behind one step, and those that go on end with the same losses and parameters."""
    whole = start(2, "checkpoint", tmp_path / "whole", "go on")
    assert start(2, "checkpoint", tmp_path / "parts", "stop") == ""
    assert sorted(os.listdir(tmp_path / "parts")) == [
        "checkpoint-000000005.rank-1.safetensors",
        "checkpoint-000000005.safetensors",
    ]
    parts = start(2, "checkpoint", tmp_path / "parts", "go on")
    assert sorted(parts.replace("from 5", "from 0").splitlines()) == sorted(whole.splitlines())
    assert parts.count("rank") == 2
