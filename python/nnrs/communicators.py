"""What several processes that train one network say to each other, with NNabla's names.

    # mpirun -n 4 python script.py, or torchrun --nproc-per-node 4 script.py
    comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
    comm.init()
    part = iterator.slice(rng=None, num_of_slices=comm.size, slice_pos=comm.rank)
    ...
    loss.backward(clear_buffer=True)
    comm.all_reduce([p.grad for p in nn.get_parameters().values()], division=True)
    solver.update()

A process that was started alone is a world of one: nothing is sent, no MPI is loaded, and the script needs no branch.

Sums are made in the order of ranks, whatever the machines are: the same numbers on the same number of processes give
the same bits. Each collective first compares what the processes ask for, so that different calls are an error, not a
hang; and a process that waits longer than `timeout` (NNRS_COMMUNICATOR_TIMEOUT, 600 seconds) ends with an error that
names the collective and those who did not come.

>>> import nnrs as nn, nnrs.communicators as C
>>> comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
>>> comm.init()
>>> comm.size, comm.rank
(1, 0)
>>> x = nn.NdArray.from_numpy_array([1.0, 2.0])
>>> comm.all_reduce(x, division=True)
>>> print(x.data)
[1. 2.]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._communication.arrays import sum_type, values, write
from ._communication.callback import CommunicatorBackwardCallback
from ._communication.communicator import Communicator
from ._communication.membership import Member
from ._communication.nccl import NcclTransport, check_nccl, gpu_number
from ._communication.transport import Alone, Call, Poll, Transport, done
from ._core import Context, Variable, cuda_sum, ordered_sum
from ._errors import CommunicatorError, ShapeError, UnsupportedError, check_switch, check_type, message

__all__ = [
    "Alone",
    "Call",
    "Comm",
    "Communicator",
    "CommunicatorBackwardCallback",
    "CommunicatorError",
    "Context",
    "DataParallelCommunicator",
    "Dist",
    "MultiProcessCommunicator",
    "MultiProcessDataParalellCommunicator",
    "MultiProcessDataParallelCommunicator",
    "Poll",
    "Transport",
    "done",
]


class MultiProcessDataParallelCommunicator(Communicator):
    """The processes that mpirun, srun or torchrun started together, each with a network over the same parameters.

    MPI finds the processes, by mpi4py (`pip install 'nnrs[mpi]'`), loaded only where there are others; those that
    torchrun started connect by TCP sockets, without MPI. With the context of the CPU arrays go the same way. With a
    GPU's context they go by NCCL, between the GPUs: each process has one of its own, the one that `device_id` names,
    and arrays that are elsewhere are brought there. A collective is then asked for in order with the GPU's other work,
    and no process waits for its GPU.

    Args:
        ctx: Context of the arrays. Its `device_id` counts when the first array is sent: it may be set after `init`.
        timeout: Seconds to wait for the others in a collective; by default NNRS_COMMUNICATOR_TIMEOUT, or 600.
        deterministic: See `Communicator`. With GPUs, if not, sums are NCCL's own: half types are not summed in
            float32, and means of floats are sums of quotients.

    Raises:
        ImportError: From `init`, where mpirun started others and mpi4py is missing, or NCCL for a GPU's context.
        RuntimeError: From `init`, where the others do not come, or the launcher started no MPI and is not torchrun;
            from members before `init`.
    """

    def __init__(self, ctx: Context, *, timeout: float | None = None, deterministic: bool = True) -> None:
        check_type(type(self).__name__, "ctx", ctx, Context, "a Context")
        super().__init__(deterministic=deterministic)
        self._ctx, self._timeout = ctx, timeout
        self._groups = {}

    def init(self) -> None:
        if self._groups:
            return
        from ._communication import launch

        timeout = launch.timeout_setting(self._timeout)
        world = launch.world(timeout)
        if world.size > 1 and gpu_number(self._ctx) is not None:
            check_nccl(self.name, self._ctx)
            world = NcclTransport(world, self._ctx, timeout)
        self._use(world)


class DataParallelCommunicator(Communicator):
    """Several networks in one process, each with parameters of its own, of the same names and shapes.

        comm = C.DataParallelCommunicator(ctx)
        for i, ctx in enumerate(contexts):
            with nn.parameter_scope(f"device{i}"):
                comm.add_context_and_parameters((ctx, nn.get_parameters()))
        comm.init()
        ...
        comm.allreduce()

    Sums are made in the order of contexts. Between GPUs gradients go from device to device; each stays on its own.
    `size` is the number of contexts, `rank` is 0. The other collectives are for several processes: with more than one
    context they are errors.

    >>> import numpy as np, nnrs as nn, nnrs.communicators as C
    >>> ctx = nn.get_current_context()
    >>> comm = C.DataParallelCommunicator(ctx)
    >>> networks = [{"w": nn.Variable.from_numpy_array([0.0], grad=[g])} for g in (1.0, 5.0)]
    >>> for parameters in networks:
    ...     comm.add_context_and_parameters((ctx, parameters))
    >>> comm.init()
    >>> comm.allreduce(division=True)
    >>> print(networks[0]["w"].g, networks[1]["w"].g)
    [3.] [3.]
    """

    def __init__(self, ctx: Context) -> None:
        check_type(type(self).__name__, "ctx", ctx, Context, "a Context")
        super().__init__()

    @property
    def size(self) -> int:
        """How many contexts have been added, and 1 at least."""
        return max(len(self._registered), 1)

    def init(self) -> None:
        """Check what has been added: the same names and shapes in each context."""
        self._rows()

    def allreduce(self, division: bool = False, inplace: bool = False) -> None:
        """The gradients of each name become their sum over the contexts, added up in the order in which those came."""
        divide = self.size if check_switch(f"{self.name}.allreduce", "division", division) else 1
        check_switch(f"{self.name}.allreduce", "inplace", inplace)
        devices = [gpu_number(context) for context, _ in self._registered]
        for row in self._rows():
            if len(row) < 2:
                continue
            if None not in devices and len({str(v.grad.dtype) for v in row}) == 1:
                cuda_sum([v.grad for v in row], devices, divide)  # type: ignore[arg-type]
            else:
                _sum_by_the_host(row, divide)

    def _rows(self) -> list[list[Variable]]:
        """For each name its variables, one of each context."""
        if not self._registered:
            return []
        first = self._registered[0][1]
        for number, (_, parameters) in enumerate(self._registered):
            if {n: v.shape for n, v in parameters.items()} != {n: v.shape for n, v in first.items()}:
                expected = "the same names and shapes of parameters in each context"
                raise ShapeError(message(self.name, None, expected, f"others in context {number} than in the first"))
        return [[parameters[name] for _, parameters in self._registered] for name in first]

    def barrier(self) -> None:
        """There is one process: it waits for nobody."""

    def _member(self, here: str, group: Any) -> Member:
        if self.size > 1:
            hint = "use allreduce, or processes and MultiProcessDataParallelCommunicator"
            raise UnsupportedError(message(here, None, "not for several contexts", hint=hint))
        return super()._member(here, group)


def _sum_by_the_host(row: list[Variable], divide: int) -> None:
    """Each gradient keeps its type; they are summed in one that has the values of all."""
    grads = [v.grad for v in row]
    kind = np.result_type(*map(sum_type, grads))
    total = np.empty(grads[0].size, kind)
    ordered_sum(np.stack([values(g).astype(kind) for g in grads]), total, divide)
    for g in grads:
        write(g, total)


MultiProcessCommunicator = MultiProcessDataParallelCommunicator
MultiProcessDataParalellCommunicator = MultiProcessDataParallelCommunicator  # NNabla's older spelling
Comm = Dist = MultiProcessDataParallelCommunicator
