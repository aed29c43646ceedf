"""The transport over MPI, by mpi4py: non-blocking collectives of plain bytes; MPI adds nothing up."""

from __future__ import annotations

import ctypes
import os
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import CommunicatorError
from .channel import Channel
from .control import GRACE, Control, Ended, WatchedTransport, ranks_text
from .transport import Poll, Transport

_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")

_under_way: list[Any] = []
"""Holds what MPI reads and writes until a request is over, as mpi4py's requests do not always. What is never over stays
for good, since MPI goes on with it when Python has ended: this is not taken down with the module."""
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_under_way))


class MpiChannel(Channel):
    """Words over an MPI communicator of all processes that is there for them alone."""

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi, self._comm = mpi, comm
        self.rank, self.size = comm.rank, comm.size
        self.lost, self.aborted = set(), {}
        self._sends: list[Any] = []
        _under_way.append(self._sends)

    @property
    def is_over(self) -> bool:
        return bool(self._mpi.Is_finalized())

    def send(self, to: int, word: bytes) -> None:
        data = np.frombuffer(word, np.uint8)
        self._sends.append((self._comm.Isend([data, self._mpi.BYTE], to), data))

    def receive(self) -> list[tuple[int, bytes]]:
        words = []
        while self._comm.Iprobe(self._mpi.ANY_SOURCE):
            status = self._mpi.Status()
            message = self._comm.Mprobe(self._mpi.ANY_SOURCE, status=status)
            data = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
            message.Recv([data, self._mpi.BYTE])
            words.append((status.Get_source(), data.tobytes()))
        self._sends[:] = [(request, data) for request, data in self._sends if not request.Test()]
        return words

    def is_sent(self) -> bool:
        return not self._sends

    def abort(self, status: int, why: str) -> None:
        self._comm.Abort(status)

    def together(self, mask: np.ndarray) -> Any:
        """Leave of a mask what is set on all processes, when the request that this gives is over."""
        return self._comm.Iallreduce(self._mpi.IN_PLACE, mask, self._mpi.BAND)


class _Link:
    """An MPI communicator, used again when no transport has it any more: MPI frees one only on all at once."""

    def __init__(self, comm: Any, channel: MpiChannel, control: Control, local_rank: int) -> None:
        self.comm, self.channel, self.control, self.local_rank = comm, channel, control, local_rank
        self.is_taken = False
        self.moves: dict[Poll, Any] = {}
        """Those that have begun and are not over, and their arrays."""
        _under_way.append(self.moves)
        self.subsets: dict[tuple[int, ...], list[_Link]] = {}

    @property
    def is_free(self) -> bool:
        """Whether another transport may have it."""
        return not self.is_taken and not self.moves and not self.control.failed

    def release(self) -> None:
        self.is_taken = False


_worlds: list[_Link] = []
"""Those of all processes; they are made in one order everywhere."""


class MpiTransport(WatchedTransport):
    """A group of processes, as an MPI communicator of its own."""

    name = "mpi"
    is_interruptible = True

    def __init__(self, mpi: Any, link: _Link, members: Sequence[int]) -> None:
        super().__init__(link.control, members)
        self._mpi, self._link, self._comm = mpi, link, link.comm
        self.rank, self.size, self.local_rank = self._comm.rank, self._comm.size, link.local_rank
        self.allows_threads = mpi.Query_thread() == mpi.THREAD_MULTIPLE
        link.is_taken = True
        weakref.finalize(self, link.release).atexit = False

    @classmethod
    def world(cls, mpi: Any, timeout: float) -> MpiTransport:
        """All processes. They call it together."""
        if _worlds and not _worlds[0].control.is_here:
            why = "a fork of a process that takes part cannot: its messages would be taken for that process's"
            raise CommunicatorError(f"Communicator.init: {why}")
        link = _free_world(mpi, timeout)
        if link is None:
            link = _new_world(mpi, timeout)
            _worlds.append(link)
        link.control.begin_again(timeout)
        return cls(mpi, link, range(link.comm.size))

    def all_to_all(self, send: np.ndarray, cuts: Sequence[int], received: np.ndarray) -> Poll:
        kind, own = self._kind(send), received.shape[1]
        there = [received, ([own] * self.size, [own * i for i in range(self.size)]), kind]
        here = [send, _layout(cuts), kind]
        return self._poll(self._comm.Ialltoallv(here, there), here, there)

    def all_gather(self, buffer: np.ndarray, cuts: Sequence[int]) -> Poll:
        everything = [buffer, _layout(cuts), self._kind(buffer)]
        return self._poll(self._comm.Iallgatherv(self._mpi.IN_PLACE, everything), everything)

    def gather(self, buffer: np.ndarray, cuts: Sequence[int], dst: int) -> Poll:
        kind = self._kind(buffer)
        if self.rank == dst:
            everything = [buffer, _layout(cuts), kind]
            return self._poll(self._comm.Igatherv(self._mpi.IN_PLACE, everything, dst), everything)
        own = buffer[cuts[self.rank] : cuts[self.rank + 1]]
        return self._poll(self._comm.Igatherv([own, own.size, kind], None, dst), own)

    def bcast(self, buffer: np.ndarray, src: int) -> Poll:
        return self._poll(self._comm.Ibcast([buffer, buffer.size, self._kind(buffer)], src), buffer)

    def all_reduce(self, buffer: np.ndarray) -> Poll:
        operation = self._mpi.LOR if buffer.dtype == np.bool_ else self._mpi.SUM
        return self._poll(self._comm.Iallreduce(self._mpi.IN_PLACE, buffer, operation), buffer)

    def subset(self, ranks: Sequence[int], name: str) -> Transport | None:
        is_in = self.rank in ranks
        made = self._link.subsets.setdefault(tuple(ranks), []) if is_in else []
        mask = np.array([_free_ones(made) if is_in else -1], np.int64)
        self._comm.Allreduce(self._mpi.IN_PLACE, mask, self._mpi.BAND)
        if not is_in:
            return None
        link = _lowest(made, int(mask[0]))
        if link is None:
            group = self._comm.Get_group().Incl(list(ranks))
            link = _Link(self._comm.Create_group(group), self._link.channel, self._control, self.local_rank)
            group.Free()
            made.append(link)
        return MpiTransport(self._mpi, link, [self._members[r] for r in ranks])

    def _kind(self, array: np.ndarray) -> Any:
        """MPI's type of that many bytes, so that counts are those of numbers: MPI's are of 31 bits."""
        m = self._mpi
        return {1: m.BYTE, 2: m.INT16_T, 4: m.INT32_T, 8: m.INT64_T}[array.itemsize]

    def _poll(self, request: Any, *arrays: Any) -> Poll:
        moves, test = self._link.moves, request.Test

        def poll() -> bool:
            if not test():
                return False
            moves.pop(poll, None)
            return True

        moves[poll] = arrays
        return poll


def _layout(cuts: Sequence[int]) -> tuple[list[int], list[int]]:
    """MPI's counts and displacements."""
    return [b - a for a, b in zip(cuts, cuts[1:], strict=False)], list(cuts[:-1])


def _free_ones(links: Sequence[_Link]) -> int:
    """A bit for each that may be used again, of the first ones."""
    return sum(1 << i for i, link in enumerate(links[:62]) if link.is_free)


def _lowest(links: Sequence[_Link], mask: int) -> _Link | None:
    """The first one that is free on all processes."""
    return links[(mask & -mask).bit_length() - 1] if mask else None


def _free_world(mpi: Any, timeout: float) -> _Link | None:
    """What an earlier communicator of all processes had, if that is gone on all of them."""
    if not _worlds:
        return None
    mask = np.array([_free_ones(_worlds)], np.int64)
    # Over messages of the first one that are between two processes each otherwise.
    request = _worlds[0].channel.together(mask)
    try:
        _await(request, _RollCall(mpi), timeout)
    except CommunicatorError:
        _under_way.append((request, mask))
        _worlds[0].control.failed = True  # whoever comes later would wait for this process
        raise
    return _lowest(_worlds, int(mask[0]))


def _new_world(mpi: Any, timeout: float) -> _Link:
    """Two communicators of all processes that nobody else sends over: for arrays, and for words on who is missing."""
    roll, made = _RollCall(mpi), []
    try:
        for _ in range(2):
            comm, request = mpi.COMM_WORLD.Idup()
            _await(request, roll, timeout)
            made.append(comm)
    except CommunicatorError:
        _under_way.append((comm, request))
        control = Control(MpiChannel(mpi, mpi.COMM_WORLD), timeout)
        control.failed = True
        control.watch_the_end()  # MPI's own would wait for those that did not come
        raise
    channel = MpiChannel(mpi, made[1])
    control = Control(channel, timeout)
    control.watch_the_end()
    return _Link(made[0], channel, control, _local_rank(mpi, made[0]))


def _await(request: Any, roll: _RollCall, timeout: float) -> None:
    """Return when all processes have come to `init`; an error names who has not."""
    deadline, ended = time.monotonic() + timeout, Ended(link.control for link in _worlds)
    while not request.Test():
        roll.answer()
        why = ended.text()
        if why:
            raise CommunicatorError(f"Communicator.init: {why}")
        if time.monotonic() > deadline:
            missing = roll.missing()
            who = ranks_text(missing) if missing else "a rank"
            raise CommunicatorError(f"Communicator.init: {who} did not come to it within {timeout:g} s")
        time.sleep(0)


class _RollCall:
    """Who has come to `init`: asked where time is up, over all processes' communicator by a tag of its own."""

    TAG = 29_871
    ASK, HERE = b"?", b"!"

    def __init__(self, mpi: Any) -> None:
        self._mpi, self._world = mpi, mpi.COMM_WORLD
        self._here = {self._world.rank}
        self._sends: list[Any] = []
        _under_way.append(self._sends)

    def answer(self) -> None:
        """Take what has come."""
        while self._world.Iprobe(self._mpi.ANY_SOURCE, self.TAG):
            status, said = self._mpi.Status(), bytearray(1)
            self._world.Recv([said, self._mpi.BYTE], self._mpi.ANY_SOURCE, self.TAG, status)
            self._here.add(status.Get_source())  # who asks is here too
            if said == self.ASK:
                self._send(status.Get_source(), self.HERE)

    def missing(self) -> list[int]:
        """Those that give no answer."""
        everyone = range(self._world.size)
        for r in everyone:
            if r not in self._here:
                self._send(r, self.ASK)
        deadline = time.monotonic() + GRACE
        while len(self._here) < len(everyone) and time.monotonic() < deadline:
            self.answer()
            time.sleep(0)
        return [r for r in everyone if r not in self._here]

    def _send(self, to: int, what: bytes) -> None:
        self._sends.append((self._world.Isend([what, self._mpi.BYTE], to, self.TAG), what))


def _local_rank(mpi: Any, comm: Any) -> int:
    """This process's place on its machine: as the launcher says, else as MPI finds."""
    for name in _LOCAL_RANK:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    here = comm.Split_type(mpi.COMM_TYPE_SHARED)
    rank = here.rank
    here.Free()
    return int(rank)
