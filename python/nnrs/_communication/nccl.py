"""Arrays between GPUs by NCCL: a transport whose words go by another one (MPI), and the collectives of its arrays.

Words are what processes agree on before each collective, names of groups, and barriers. A collective is asked for in
order with the GPU's other work, once all processes have come to it; nobody waits for the GPU, and no array goes by the
host.
"""

from __future__ import annotations

import atexit
import contextlib
import weakref
from collections.abc import Callable, Generator, Sequence

import numpy as np

from .. import _core
from .._core import Context, NcclGroup, NdArray
from .._errors import ArgumentError, CommunicatorError, MissingPackageError, message
from .exchange import Exchange, Pack
from .reductions import Steps, until
from .transport import Call, Poll, Transport

ID_BYTES = 128
_joined_groups: weakref.WeakSet[NcclTransport] = weakref.WeakSet()


def gpu_number(context: Context) -> int | None:
    """The number of the GPU on which a context computes; None where that is the host."""
    known = (name.replace("|", ":").split(":")[0] for name in context.backend)
    if next((name for name in known if name in ("cpu", "cuda", "cudnn")), "cpu") == "cpu":
        return None
    try:
        return int(context.device_id) if _core.cuda_device_count() else None
    except _core.Error:  # there is none, of which the context has told: it computes on the host
        return None
    except ValueError:
        expected = "the context of a GPU, with its number as device_id"
        raise ArgumentError(message("Communicator", "ctx", expected, repr(context.device_id))) from None


def check_nccl(here: str, context: Context) -> None:
    """Raise where NCCL is missing on this machine."""
    for library, is_there, why in _core.cuda_libraries(gpu_number(context) or 0):
        if library == "NCCL" and not is_there:
            expected = "NCCL, by which processes exchange the arrays of GPUs"
            install = "pip install 'nnrs[cuda12]' or 'nnrs[cuda13]' (nvidia-nccl-cu12, nvidia-nccl-cu13)"
            hint = f"{install}; or give the communicator the context of the CPU: arrays then go by the host"
            raise MissingPackageError(message(f"{here}.init", "ctx", expected, why, hint))


class NcclTransport(Transport):
    """A group of processes with a GPU each, which joins NCCL's group when the first array is sent.

    Args:
        words: What carries all that is no array.
        context: The context whose GPU it is, as it is when the first array is sent.
        timeout: Seconds that a collective may take on the GPU.
        group: The group's name, for errors.
    """

    name = "nccl"

    def __init__(self, words: Transport, context: Context, timeout: float, group: str = "world") -> None:
        self._words, self._context, self._timeout, self._group = words, context, timeout, group
        self.rank, self.size, self.local_rank = words.rank, words.size, words.local_rank
        self.allows_threads = words.allows_threads
        self._devices: NcclGroup | None = None

    @property
    def devices(self) -> NcclGroup:
        """The group of GPUs, which has been joined."""
        assert self._devices is not None, "joined first"
        return self._devices

    def is_of(self, context: Context) -> bool:
        """Whether a context computes on this process's GPU."""
        return gpu_number(context) == (gpu_number(self._context) or 0)

    def join(self) -> Steps:
        """Join with all others, once: the first rank makes a name for the group and tells it."""
        if self._devices is not None:
            return
        number, name, failure = gpu_number(self._context) or 0, np.zeros(ID_BYTES, np.uint8), None
        if self.rank == 0:
            try:
                name[:] = np.frombuffer(_core.nccl_id(number), np.uint8)
            except _core.Error as error:
                failure = error  # once the others have been told
        yield from until(self._words.bcast(name, 0))
        if failure is not None:
            raise failure
        if not name.any():
            raise CommunicatorError(f"rank {self.rank} of group {self._group!r}: rank 0 could not begin with NCCL")
        self._devices = NcclGroup(number, self.rank, self.size, name.tobytes(), self._group, self._timeout)
        if not _joined_groups:
            atexit.register(_settle_all)  # now, so that it comes before the end of the words
        _joined_groups.add(self)

    def settle(self) -> None:
        """Wait until all that was asked for is over; a group that has failed ends all processes with an error."""
        try:
            _core.cuda_synchronize(gpu_number(self._context) or 0)
        except _core.Error:
            self.broken()

    def leave(self) -> None:
        """Leave NCCL's group; one that has failed has ended before."""
        if self._devices is not None:
            self._devices.leave()

    def subset(self, ranks: Sequence[int], name: str) -> Transport | None:
        words = self._words.subset(ranks, name)
        if words is None or words.size == 1:
            return words
        return NcclTransport(words, self._context, self._timeout, name)

    def all_to_all(self, send: np.ndarray, cuts: Sequence[int], received: np.ndarray) -> Poll:
        return self._words.all_to_all(send, cuts, received)

    def all_gather(self, buffer: np.ndarray, cuts: Sequence[int]) -> Poll:
        return self._words.all_gather(buffer, cuts)

    def gather(self, buffer: np.ndarray, cuts: Sequence[int], dst: int) -> Poll:
        return self._words.gather(buffer, cuts, dst)

    def bcast(self, buffer: np.ndarray, src: int) -> Poll:
        return self._words.bcast(buffer, src)

    def waiting(self, call: Call, seconds: float) -> None:
        self._words.waiting(call, seconds)

    def finished(self, call: Call) -> None:
        self._words.finished(call)

    def owes(self, group: str, count: int, advance: Callable[[], None]) -> None:
        self._words.owes(group, count, advance)

    def broken(self) -> None:
        self._words.broken()

    def abort(self) -> None:
        self._words.abort()


# At a program's end its GPU's work has to be over, then all processes meet (control.py, where one that has failed ends
# all), and then they leave NCCL's groups: what one of them frees, no other one reads. Not when Python takes modules
# apart, by when a driver may be gone.


def _settle_all() -> None:
    for transport in list(_joined_groups):
        with contextlib.suppress(Exception):
            transport.settle()


@atexit.register
def _leave_all() -> None:
    for transport in list(_joined_groups):
        with contextlib.suppress(Exception):
            transport.leave()


class DeviceExchange(Exchange):
    """From GPU to GPU. Sums in the order of ranks are made by kernels of ours, others by NCCL."""

    def __init__(self, deterministic: bool) -> None:
        self._deterministic = deterministic

    def all_reduce(self, t: Transport, arrays: Sequence[NdArray], inplace: bool, mean: bool) -> Steps:
        devices = yield from _joined(t)
        devices.all_reduce(list(arrays), self._deterministic, mean, 1.0, not inplace)

    def reduce(self, t: Transport, arrays: Sequence[NdArray], dst: int, inplace: bool, mean: bool) -> Steps:
        devices = yield from _joined(t)
        devices.reduce(list(arrays), dst, self._deterministic, mean, not inplace)

    def bcast(self, t: Transport, arrays: Sequence[NdArray], src: int, inplace: bool) -> Steps:
        devices = yield from _joined(t)
        devices.bcast(list(arrays), src, not inplace)

    def all_gather(self, t: Transport, x: NdArray, arrays: Sequence[NdArray]) -> Steps:
        devices = yield from _joined(t)
        devices.all_gather(x, list(arrays))

    def reduce_scatter(self, t: Transport, arrays: Sequence[NdArray], y: NdArray, mean: bool) -> Steps:
        devices = yield from _joined(t)
        devices.reduce_scatter(list(arrays), y, self._deterministic, mean)

    def pack(self, t: Transport, arrays: Sequence[NdArray], scale: float, mean: bool, name: str) -> Pack:
        def steps() -> Steps:
            devices = yield from _joined(t)
            devices.all_reduce(list(arrays), self._deterministic, mean, scale, True)

        # Asked for by the thread that runs backward alone: on the GPU it stands behind what makes the gradients.
        return Pack(steps, [], is_free=False)


def _joined(t: Transport) -> Generator[None, None, NcclGroup]:
    assert isinstance(t, NcclTransport)
    yield from t.join()
    return t.devices
