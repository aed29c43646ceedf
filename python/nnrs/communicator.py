"""Communicators, with which processes train one network together; in this version of a process that runs alone.

A script for several GPUs runs unchanged on one: `size` is 1, `rank` 0, and sums over all processes are the values
themselves. Where mpirun has started several, `init` says that they cannot work together yet.

>>> import nnrs as nn
>>> from nnrs.ext_utils import get_extension_context
>>> comm = MultiProcessDataParallelCommunicator(get_extension_context("cpu"))
>>> comm.init()
>>> comm.size, comm.rank
(1, 0)
>>> gradient = nn.NdArray.from_numpy_array([1.0, 2.0])
>>> comm.all_reduce([gradient], division=True, inplace=False)
>>> gradient.data.tolist()
[1.0, 2.0]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ._core import Context, NdArray
from ._errors import ArgumentError, UnsupportedError, check_integer, check_list, check_number, check_type, message

if TYPE_CHECKING:
    from .communicators import CommunicatorBackwardCallback

__all__ = [
    "Communicator",
    "DataParallelCommunicator",
    "MultiProcessCommunicator",
    "MultiProcessDataParalellCommunicator",
    "MultiProcessDataParallelCommunicator",
]


class Communicator:
    """What all communicators have. Arrays that are given are NdArrays, such as `v.grad` and `v.data`.

    Args:
        context: The context in which the network runs.
    """

    def __init__(self, context: Context) -> None:
        check_type(type(self).__name__, "context", context, Context, "a Context")
        self.context = context
        self._groups: dict[str, list[int]] = {"world": [0]}
        self._parameters: list[tuple[Any, Mapping[str, Any]]] = []

    def init(self) -> None:
        """Find the other processes.

        Raises:
            RuntimeError: If mpirun has started several, which is not supported yet.
        """
        size = _processes()
        if size > 1:
            why = f"{size} processes were started, and nnrs cannot let them work together yet"
            raise UnsupportedError(message(f"{self.name}.init", None, why, hint="start one process, without mpirun"))

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    @property
    def rank(self) -> int:
        """The number of this process: 0."""
        return 0

    @property
    def local_rank(self) -> int:
        """The number of this process on its machine: 0."""
        return 0

    @property
    def size(self) -> int:
        """The number of processes: 1."""
        return 1

    def add_context_and_parameters(self, ctx_param_dict: tuple[Any, Mapping[str, Any]]) -> None:
        """Note parameters, whose gradients `allreduce` adds up.

        Args:
            ctx_param_dict: Tuple of a context and a dict of Variables by name.
        """
        expected = "a tuple of a context and a dict of parameters"
        check_type("add_context_and_parameters", "ctx_param_dict", ctx_param_dict, (tuple, list), expected)
        context, parameters = ctx_param_dict
        check_type("add_context_and_parameters", "ctx_param_dict", parameters, Mapping, expected)
        self._parameters.append((context, parameters))

    def clear_context_parameters(self) -> None:
        """Forget the parameters of `add_context_and_parameters`."""
        self._parameters.clear()

    def new_group(self, name_ranks: tuple[str, Sequence[int]]) -> str:
        """Make a group of processes.

        Args:
            name_ranks: Its name, and the numbers of its processes.

        Returns:
            The name.

        Raises:
            ValueError: If there is a group of that name, or no process of such a number.
        """
        name, ranks = name_ranks
        check_type("new_group", "name_ranks", name, str, "the group's name as a str")
        if name in self._groups:
            raise ArgumentError(message("new_group", "name_ranks", "a name that no group has", repr(name)))
        numbers = [check_integer("new_group", "name_ranks", rank) for rank in ranks]
        if set(numbers) - {0}:
            raise ArgumentError(message("new_group", "name_ranks", "ranks of 0, the only process", numbers))
        self._groups[name] = numbers
        return name

    def list_groups(self) -> dict[str, list[int]]:
        """The groups by name, each with the numbers of its processes."""
        return {name: list(ranks) for name, ranks in self._groups.items()}

    def find_group(self, group: str) -> list[int]:
        """The numbers of a group's processes; an empty list if there is no such group."""
        return list(self._groups.get(group, ()))

    def barrier(self) -> None:
        """Wait until all processes are here."""

    def abort(self) -> NoReturn:
        """End all processes: this one, with status 1."""
        sys.exit(1)

    def reduce(
        self,
        data: NdArray | Sequence[NdArray],
        dst: int,
        division: bool = False,
        inplace: bool = False,
        group: str = "world",
    ) -> None:
        """Add arrays up over all processes, in the one of number `dst`: they are what they are.

        Args:
            data: NdArray, or list of such.
            dst: Number of the process that gets the sums.
            division: Whether to divide by the number of processes.
            inplace: Whether arrays may be sent one by one.
            group: Name of the processes' group.
        """
        self._check("reduce", data, group, dst)

    def allreduce(self, division: bool = False, inplace: bool = False) -> None:
        """Add up the gradients of all noted parameters: they are what they are.

        Args:
            division: Whether to divide by the number of processes.
            inplace: Whether arrays may be sent one by one.
        """

    def all_reduce(
        self, data: NdArray | Sequence[NdArray], division: bool = False, inplace: bool = False, group: str = "world"
    ) -> None:
        """Add arrays up over all processes, in each of them: they are what they are.

        Args:
            data: NdArray, or list of such.
            division: Whether to divide by the number of processes.
            inplace: Whether arrays may be sent one by one.
            group: Name of the processes' group.
        """
        self._check("all_reduce", data, group)

    def all_reduce_callback(
        self,
        data: NdArray | Sequence[NdArray],
        pack_size: int,
        division: bool = False,
        group: str = "world",
        scale_grad: float = 1.0,
        keep_dtype: bool = False,
    ) -> CommunicatorBackwardCallback:
        """What adds gradients up while backward goes on: `y.backward(communicator_callbacks=...)`.

        Args:
            data: The gradients: NdArray, or list of such.
            pack_size: Number of elements that are sent at once.
            division: Whether to divide by the number of processes.
            group: Name of the processes' group.
            scale_grad: What gradients are multiplied with.
            keep_dtype: Whether gradients keep their types, where float32 would be sent.
        """
        arrays = self._check("all_reduce_callback", data, group)
        check_integer("all_reduce_callback", "pack_size", pack_size, 1)
        return _scaling(arrays, check_number("all_reduce_callback", "scale_grad", scale_grad))

    def reduce_scatter(
        self, ndarray_list: Sequence[NdArray], ndarray: NdArray, division: bool = False, group: str = "world"
    ) -> None:
        """Add arrays up over all processes; each gets one of the sums.

        Args:
            ndarray_list: Arrays, one for each process.
            ndarray: Gets the sum of this one's.
            division: Whether to divide by the number of processes.
            group: Name of the processes' group.
        """
        self._of_each("reduce_scatter", ndarray_list, ndarray, group)
        ndarray.copy_from(ndarray_list[0])

    def bcast(self, data: NdArray | Sequence[NdArray], src: int, inplace: bool = False, group: str = "world") -> None:
        """Give all processes the arrays of the one of number `src`: they are what they are.

        Args:
            data: NdArray, or list of such.
            src: Number of the process.
            inplace: Whether arrays may be sent one by one.
            group: Name of the processes' group.
        """
        self._check("bcast", data, group, src)

    def all_gather(self, ndarray: NdArray, ndarray_list: Sequence[NdArray], group: str = "world") -> None:
        """Give each process the arrays of all.

        Args:
            ndarray: This one's array.
            ndarray_list: Arrays that get those of the processes, one for each.
            group: Name of the processes' group.
        """
        self._of_each("all_gather", ndarray_list, ndarray, group)
        ndarray_list[0].copy_from(ndarray)

    def _check(self, function: str, data: Any, group: str, rank: int | None = None) -> list[NdArray]:
        """The arrays, if there is such a group, with such a process."""
        if group not in self._groups:
            raise ArgumentError(message(function, "group", f"one of {', '.join(self._groups)}", repr(group)))
        if rank is not None and rank not in self._groups[group]:
            raise ArgumentError(message(function, "rank", f"a process of {self._groups[group]}", rank))
        return check_list(function, "data", [data] if isinstance(data, NdArray) else data, NdArray, "NdArrays")

    def _of_each(self, function: str, arrays: Any, one: Any, group: str) -> None:
        found = self._check(function, arrays, group)
        self._check(function, one, group)
        if len(found) != 1:
            raise ArgumentError(message(function, "ndarray_list", "an array for each of 1 process", len(found)))


class DataParallelCommunicator(Communicator):
    """A communicator of several GPUs in one process; of one, so far."""


class MultiProcessCommunicator(Communicator):
    """A communicator of several processes; of one, so far."""


class MultiProcessDataParallelCommunicator(MultiProcessCommunicator):
    """A communicator of several processes that have a part of each batch; of one, so far."""


MultiProcessDataParalellCommunicator = MultiProcessDataParallelCommunicator


def _processes() -> int:
    """How many processes mpirun has started, of Open MPI or another one."""
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"):
        text = os.environ.get(name, "")
        if text.isdecimal():
            return int(text)
    return 1


def _scaling(arrays: Sequence[NdArray], scale: float) -> CommunicatorBackwardCallback:
    from .communicators import CommunicatorBackwardCallback

    class Scaling(CommunicatorBackwardCallback):
        """Scales gradients when backward is over."""

        def on_finish_backward(self) -> None:
            for array in arrays if scale != 1 else ():
                array.data *= scale

    return Scaling()
