"""examples/digits_parallel.py: several processes train as one does with the same batches."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import socket_helpers
from mpi_helpers import mpirun

pytestmark = pytest.mark.host
EXAMPLE = Path(__file__).parent.parent / "examples" / "digits_parallel.py"
ARGUMENTS = ("--steps", "20", "--batch-size", "48", "--output-dir")


def parameters(folder):
    nn.clear_parameters()
    nn.load_parameters(str(folder / "parameters.h5"))
    found = {name: p.d.copy() for name, p in nn.get_parameters(grad_only=False).items()}
    nn.clear_parameters()
    return found


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Parameters of one process."""
    pytest.importorskip("h5py"), pytest.importorskip("tqdm")
    folder = tmp_path_factory.mktemp("one")
    command = [sys.executable, str(EXAMPLE), "--slices", "2", *ARGUMENTS, str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=60, env={**os.environ, "NNRS_NUM_THREADS": "1"})
    return parameters(folder)


@pytest.mark.parametrize("start", [mpirun, socket_helpers.run])
def test_two_processes_are_one_with_the_same_batches(tmp_path, start, one):
    """Parameters within rounding after 20 steps; rank 0 alone prints and writes."""
    printed = start(2, EXAMPLE, *ARGUMENTS, tmp_path / "two")
    assert printed.count("held-out accuracy") == 1 and "2 processes" in printed
    two = parameters(tmp_path / "two")
    assert list(one) == list(two) and len(one) == 14
    for name, values in one.items():
        np.testing.assert_allclose(two[name], values, atol=5e-3 * max(1, abs(values).max()), err_msg=name)


@pytest.mark.parametrize(("arguments", "status", "says"), [
    (["--slices", "3"], 1, "--batch-size must be a multiple of --slices"),
    (["--batch-size", "3000"], 1, "1437 at most"),
    (["--steps", "0"], 2, "argument --steps: invalid count value: '0'"),
    (["--epochs", "-1"], 2, "argument --epochs: invalid count value: '-1'"),
])  # fmt: skip
def test_arguments_that_train_nothing_are_refused(arguments, status, says, tmp_path):
    pytest.importorskip("tqdm")
    command = [sys.executable, str(EXAMPLE), *arguments, "--output-dir", str(tmp_path / "out")]
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", timeout=60)
    assert done.returncode == status and says in done.stderr and not (tmp_path / "out").exists()
