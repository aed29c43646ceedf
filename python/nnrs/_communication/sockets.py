"""The transport over TCP sockets, for processes that torchrun started, or something else that sets its variables."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator, Sequence

import numpy as np

from .._errors import CommunicatorError
from . import reductions
from .channel import Channel
from .control import GRACE, Control, Ended, WatchedTransport, aborted_text, died_text, ranks_text, say
from .mesh import ABORT, WORD, Mesh, as_bytes
from .rendezvous import Place, meet
from .transport import Poll, Transport

_INIT = 2
"""The group of the moves in which all processes come to `init`; that of a transport is a larger number."""
_LOOKS = 0.5
"""Seconds between two looks of the thread that hears of the end while the script computes."""
_LAST_STEPS = 10.0
"""Seconds that a handler of SIGTERM's has, which may want the script to come to the end of a step."""


class _World:
    """What the groups of one communicator share."""

    def __init__(self, mesh: Mesh, control: Control, local_rank: int) -> None:
        self.mesh, self.control, self.local_rank = mesh, control, local_rank


class _Process:
    """This process among all: its connections, and what was made for communicators, in one order everywhere."""

    def __init__(self, place: Place, timeout: float) -> None:
        met = meet(place, timeout)
        self.mesh, self.local_rank, self.inits = Mesh(place.rank, met.sockets), met.local_rank, 0
        self.controls: list[Control] = []
        self._worlds: list[weakref.ref[_World]] = []
        self.pid = os.getpid()
        threading.Thread(target=self._hear_beside, name="nnrs sockets", daemon=True).start()

    def new_world(self, timeout: float) -> _World:
        """For one more communicator, with the control of one that is gone on all processes if there is such a one."""
        self.inits += 1
        free = sum(1 << i for i, world in enumerate(self._worlds[:62]) if world() is None)
        free = self._come_together(free, timeout)
        index = (free & -free).bit_length() - 1 if free else len(self.controls)
        if not free:
            control = Control(SocketChannel(self.mesh, index), timeout)
            control.watch_the_end()
            self.controls.append(control)
        control = self.controls[index]
        control.begin_again(timeout)
        world = _World(self.mesh, control, self.local_rank)
        self._worlds[index : index + 1] = [weakref.ref(world)]
        return world

    def _come_together(self, mask: int, timeout: float) -> int:
        """What is set in the masks of all processes, when they all have come to `init`."""
        masks = np.zeros(self.mesh.size, np.int64)
        masks[self.mesh.rank] = mask
        others = [r for r in range(self.mesh.size) if r != self.mesh.rank]
        parts = {r: as_bytes(masks[r : r + 1]) for r in range(self.mesh.size)}
        sends, receives = [(r, parts[self.mesh.rank]) for r in others], [(r, parts[r]) for r in others]
        move, deadline = self.mesh.begin(_INIT, self.inits, sends, receives), time.monotonic() + timeout
        ended = Ended(self.controls)
        while not move.is_over:
            self.mesh.progress()
            why = ended.text() or self._why_not(sorted(move.wanted), time.monotonic() > deadline, timeout)
            if why is not None:
                for control in self.controls[:1]:
                    control.failed = True
                raise CommunicatorError(f"Communicator.init: {why}")
            time.sleep(0)
        return int(np.bitwise_and.reduce(masks))

    def _why_not(self, wanted: Sequence[int], is_late: bool, timeout: float) -> str | None:
        """Why the others will not come, if so."""
        if self.mesh.aborted:
            return aborted_text(self.mesh.aborted)
        lost = [r for r in wanted if r in self.mesh.lost]
        if lost:
            return died_text(lost)
        return f"{ranks_text(wanted)} did not come to it within {timeout:g} s" if is_late and wanted else None

    def _hear_beside(self) -> None:
        """End this process when another one has died or ends all, also while its script computes or hangs."""
        while not any(control.is_leaving for control in self.controls):
            time.sleep(_LOOKS)
            if time.monotonic() - self.mesh.asked < 2 * _LOOKS:  # who asks hears it himself, as an error
                continue
            self.mesh.progress_unasked()
            if any(control.failed or control.is_leaving for control in self.controls):
                continue
            if self.mesh.aborted or self.mesh.lost:
                why = aborted_text(self.mesh.aborted) if self.mesh.aborted else died_text(sorted(self.mesh.lost))
                say(self.mesh.rank, self.mesh.size, f"is ended: {why}")
                os.kill(self.pid, signal.SIGTERM)
                time.sleep(_LAST_STEPS)
                os._exit(128 + signal.SIGTERM)


_process: _Process | None = None


class SocketTransport(WatchedTransport):
    """A group of processes, with messages of its own over the connections that all groups share."""

    name = "sockets"
    allows_threads = True

    def __init__(self, world: _World, members: Sequence[int], path: str) -> None:
        super().__init__(world.control, members)
        self._world, self._mesh, self._path = world, world.mesh, path
        self.rank, self.size, self.local_rank = self._members.index(self._mesh.rank), len(members), world.local_rank
        self._group = int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little") | 1 << 63
        self._moves = self._subsets = 0

    @classmethod
    def world(cls, place: Place, timeout: float) -> SocketTransport:
        """All processes. They call it together."""
        global _process
        if _process is None:
            _process = _Process(place, timeout)
        elif _process.pid != os.getpid():
            why = "a fork of a process that takes part cannot: its messages would be taken for that process's"
            raise CommunicatorError(f"Communicator.init: {why}")
        return cls(_process.new_world(timeout), range(place.size), f"world {_process.inits}")

    def all_to_all(self, send: np.ndarray, cuts: Sequence[int], received: np.ndarray) -> Poll:
        parts = [send[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
        received[self.rank] = parts[self.rank]
        return self._begin([(i, parts[i]) for i in self._others()], [(i, received[i]) for i in self._others()])

    def all_gather(self, buffer: np.ndarray, cuts: Sequence[int]) -> Poll:
        parts = [buffer[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
        own = parts[self.rank]
        return self._begin([(i, own) for i in self._others()], [(i, parts[i]) for i in self._others()])

    def gather(self, buffer: np.ndarray, cuts: Sequence[int], dst: int) -> Poll:
        parts = [buffer[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
        if self.rank != dst:
            return self._begin([(dst, parts[self.rank])], [])
        return self._begin([], [(i, parts[i]) for i in self._others()])

    def bcast(self, buffer: np.ndarray, src: int) -> Poll:
        if self.rank != src:
            return self._begin([], [(src, buffer)])
        return self._begin([(i, buffer) for i in self._others()], [])

    def all_reduce(self, buffer: np.ndarray) -> Poll:
        """Sums in the order of ranks: the network does not add, so no other order is faster."""
        return reductions.as_move(reductions.all_reduce(self, buffer, reductions.Scratch()))

    def subset(self, ranks: Sequence[int], name: str) -> Transport | None:
        self._subsets += 1
        if self.rank not in ranks:
            return None
        return SocketTransport(self._world, [self._members[r] for r in ranks], f"{self._path}/{self._subsets}")

    def _others(self) -> Iterator[int]:
        """All but this one; each process begins with another one."""
        return ((self.rank + i) % self.size for i in range(1, self.size))

    def _begin(self, sends: Sequence[tuple[int, np.ndarray]], receives: Sequence[tuple[int, np.ndarray]]) -> Poll:
        self._moves += 1
        mesh, members = self._mesh, self._members
        move = mesh.begin(
            self._group,
            self._moves,
            [(members[i], as_bytes(x)) for i, x in sends],
            [(members[i], as_bytes(x)) for i, x in receives],
        )

        def poll() -> bool:
            if not move.is_over:
                mesh.progress()
            return move.is_over

        return poll


class SocketChannel(Channel):
    """Words over the connections of the moves; `number` is that of the control whose words they are."""

    def __init__(self, mesh: Mesh, number: int) -> None:
        self._mesh, self._number = mesh, number
        self.rank, self.size, self.lost, self.aborted = mesh.rank, mesh.size, mesh.lost, mesh.aborted

    def send(self, to: int, word: bytes) -> None:
        self._mesh.say(to, WORD, self._number, word)

    def receive(self) -> list[tuple[int, bytes]]:
        self._mesh.progress()
        return self._mesh.heard(self._number)

    def is_sent(self) -> bool:
        return self._mesh.is_sent()

    def abort(self, status: int, why: str) -> None:
        for r in range(self.size):
            if r != self.rank:
                self._mesh.say(r, ABORT, 0, why.encode())
        deadline = time.monotonic() + GRACE
        while not self._mesh.is_sent() and time.monotonic() < deadline:
            self._mesh.progress()
            time.sleep(0.001)
        os._exit(status)
