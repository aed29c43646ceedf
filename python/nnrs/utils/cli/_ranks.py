"""The processes that mpirun started to train together: which part is whose, what they add up, who writes.

As NNabla has it: the batch of a file is that of each process, an epoch has so many fewer steps, gradients are averaged.
In a program that runs alone all is the process's own, and nothing is sent.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import numpy as np

from ..._communication.nccl import gpu_number
from ..._core import NdArray
from ...communicators import MultiProcessCommunicator
from ...logger import logger
from ...parameter import get_parameters
from ...random import set_function_seed
from ..communicator_util import create_communicator

_TOLD = (logging.INFO, 99)  # the levels of what a command tells of its work, which is once enough
_PACK = 1 << 21


class Ranks:
    """This process among those that train together, all of which make and use one."""

    def __init__(self) -> None:
        self._comm: Any = create_communicator(extension_module="cpu")
        self.rank: int = self._comm.rank if self._comm is not None else 0
        self.size: int = self._comm.size if self._comm is not None else 1
        self.is_first = self.rank == 0
        if not self.is_first:
            logger.addFilter(_is_not_told)
            set_function_seed(self.rank)  # each drops other numbers

    def use_context(self, context: Any) -> None:
        """From now on arrays go from where a context has them: between GPUs by NCCL."""
        if self._comm is not None and gpu_number(context) is not None:
            self._comm = MultiProcessCommunicator(context)
            self._comm.init()

    def share_parameters(self) -> None:
        """Have all begin with the parameters of the first one."""
        arrays = [p.data for p in get_parameters(grad_only=False).values()]
        if self._comm is not None and arrays:
            self._comm.bcast(arrays, 0)

    def reduces(self, parameters: Any) -> Any:
        """What averages the gradients of parameters while backward goes on; None if there is nobody to do it with."""
        if self._comm is None:
            return None
        return self._comm.all_reduce_callback([p.grad for p in parameters], _PACK, division=True)

    def mean(self, value: float) -> float:
        """The mean over all processes."""
        return self._together(value, lambda comm, array: comm.all_reduce(array, division=True))

    def first_says(self, value: float) -> float:
        """What the first process has: times differ, and all have to do the same."""
        return self._together(value, lambda comm, array: comm.bcast(array, 0))

    def _together(self, value: float, collective: Callable[[Any, NdArray], None]) -> float:
        if self._comm is None:
            return value
        array = NdArray.from_numpy_array(np.array([value], np.float64))
        collective(self._comm, array)
        return float(array.data[0])

    # --- data ---------------------------------------------------------------------------------------------------------

    def open(self, dataset: Any, files: ExitStack) -> Any:
        """An iterator over this process's part of a dataset, which `files` closes."""
        if self._comm is None:
            return files.enter_context(dataset.data_iterator())
        self._make_cache(dataset)
        whole = files.enter_context(dataset.data_iterator(from_cache=True))
        part: AbstractContextManager[Any] = whole.slice(None, self.size, self.rank)
        return files.enter_context(part)

    def _make_cache(self, dataset: Any) -> None:
        """Have one process write a dataset's cache; on other machines one more, where its folder is not seen."""
        if not dataset.cache_dir:
            return
        if self.is_first:
            dataset.data_iterator().close()
        self._comm.barrier()
        if not self.is_first and self._comm.local_rank == 0 and not _has_files(dataset.cache_dir):
            dataset.data_iterator().close()
        self._comm.barrier()


def _is_not_told(record: logging.LogRecord) -> bool:
    return record.levelno not in _TOLD


def _has_files(folder: str) -> bool:
    return os.path.isdir(folder) and bool(os.listdir(folder))
