"""The communicator of a program that mpirun or torchrun may have started with others.

>>> create_communicator() is None, single_or_rankzero()  # this program runs alone
(True, True)
"""

from __future__ import annotations

from typing import Any

from .. import communicators
from .._communication.launch import launched
from ..ext_utils import get_extension_context
from ..logger import logger

_current: Any = None


def current_communicator() -> Any:
    """What `create_communicator` made; None if the program runs alone."""
    return _current


def create_communicator(ignore_error: bool = False, extension_module: str = "cudnn", type_config: str = "float") -> Any:
    """Make the communicator of all processes that mpirun, srun or torchrun started together.

    Args:
        ignore_error: Whether to go on alone, with a warning in the log, where the processes do not find each other. All
            of them then write files, since each is the only one.
        extension_module: Backend of its context: `"cpu"` for processes without GPUs.
        type_config: Type of its context.

    Returns:
        The communicator, or None in a program that runs alone.

    Raises:
        RuntimeError: If there is no such backend, or no GPU that it could use, whatever `ignore_error` says.
    """
    global _current
    _current = None
    if launched().size == 1:
        return None
    context = get_extension_context(extension_module, type_config=type_config)
    try:
        made = communicators.MultiProcessCommunicator(context)
        made.init()
        context.device_id = str(made.local_rank)
    except Exception as error:
        if not ignore_error:
            raise
        logger.warning("create_communicator: this process goes on alone: %s", error)
        return None
    _current = made if made.size > 1 else None
    return _current


def single_or_rankzero() -> bool:
    """Whether this is the process that writes files and logs: the only one, or the first."""
    return _current is None or _current.rank == 0
