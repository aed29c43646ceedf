"""A connection to each other process, over which messages go both ways at once, without waiting.

A message is a header and plain bytes. The header says to which move of which group it belongs, so those of several
groups share a connection. Bytes of a move that has begun here go straight into its array; those that come earlier wait
in memory of their own. Whoever asks after a move moves on all messages, also those of other moves.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np

from .._errors import CommunicatorError

_HEADER = struct.Struct("<QQQ")  # group, number of the move, bytes that follow
WORD, ABORT = 0, 1
"""Groups of messages that belong to no move: words, with a number for who is to hear them; why a process ends all."""
_READS_AT_A_TIME = 16
"""How often one connection is read until the others' turn comes."""

Message = tuple[int, memoryview]
"""From or to which rank, and the bytes."""


class Move:
    """What is on its way for one process's part of a move."""

    def __init__(self) -> None:
        self.unsent = 0
        self.wanted: set[int] = set()
        """Ranks from which something is to come."""

    @property
    def is_over(self) -> bool:
        return not self.unsent and not self.wanted


class _Incoming:
    """A message that is being read, or will be."""

    def __init__(self, into: memoryview, move: Move | None) -> None:
        self.into, self.move, self.count = into, move, 0


class _Outgoing:
    """A message that is being sent."""

    def __init__(self, group: int, number: int, view: memoryview, move: Move | None) -> None:
        self.parts, self.move = [memoryview(_HEADER.pack(group, number, len(view))), view], move

    def sent(self, count: int) -> bool:
        """Note that so many bytes more have left; whether that was all."""
        while self.parts and count >= len(self.parts[0]):
            count -= len(self.parts.pop(0))
        if self.parts:
            self.parts[0] = self.parts[0][count:]
        return not self.parts


class _Connection:
    """One other process."""

    def __init__(self, rank: int, connected: socket.socket) -> None:
        self.rank, self.socket = rank, connected
        self.outgoing: deque[_Outgoing] = deque()
        self.header = memoryview(bytearray(_HEADER.size))
        self.header_count = 0
        self.key = (0, 0)
        self.incoming: _Incoming | None = None


class Mesh:
    """The connections of this process; any thread may use them.

    Args:
        rank: This process's.
        sockets: By the other ranks.
    """

    def __init__(self, rank: int, sockets: Mapping[int, socket.socket]) -> None:
        self.rank, self.size = rank, len(sockets) + 1
        self.lost: set[int] = set()
        self.aborted: dict[int, str] = {}
        self.asked = time.monotonic()
        """When somebody asked last."""
        self._lock = threading.RLock()
        self._expected: dict[tuple[int, int, int], _Incoming] = {}  # by rank, group, number
        self._early: dict[tuple[int, int, int], _Incoming] = {}
        self._words: dict[int, list[tuple[int, bytes]]] = {}
        self._selector = selectors.DefaultSelector()
        self._connections = {r: _Connection(r, s) for r, s in sockets.items()}
        for c in self._connections.values():
            c.socket.setblocking(False)
            c.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(c.socket, selectors.EVENT_READ, c)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._close)

    def begin(self, group: int, number: int, sends: Iterable[Message], receives: Iterable[Message]) -> Move:
        """Send messages and wait for others; those without bytes are none."""
        with self._lock:
            move = Move()
            for rank, view in receives:
                if len(view):
                    self._expect((rank, group, number), view, move)
            for rank, view in sends:
                if len(view):
                    move.unsent += 1
                    self._send(rank, _Outgoing(group, number, view, move))
            return move

    def say(self, to: int, kind: int, number: int, word: bytes) -> None:
        """Send a message that belongs to no move, a `WORD` or `ABORT`."""
        with self._lock:
            self._send(to, _Outgoing(kind, number, memoryview(word), None))

    def heard(self, number: int) -> list[tuple[int, bytes]]:
        """The words that have come, and from whom."""
        with self._lock:
            return self._words.pop(number, [])

    def is_sent(self) -> bool:
        """Whether all messages have left this process."""
        return not any(c.outgoing for c in self._connections.values())

    def progress(self) -> None:
        """Send and read what can be without waiting."""
        self.asked = time.monotonic()
        self.progress_unasked()

    def progress_unasked(self) -> None:
        """The same for a thread on which nobody waits."""
        with self._lock:
            for c in self._connections.values():
                if c.outgoing:
                    self._write(c)
            for found, _ in self._selector.select(0):
                self._read(found.data)

    def _close(self) -> None:
        """In a fork: the others shall see when this process ends, whatever becomes of the fork."""
        for c in self._connections.values():
            c.socket.close()

    def _send(self, rank: int, message: _Outgoing) -> None:
        c = self._connections[rank]
        if rank in self.lost:
            return
        c.outgoing.append(message)
        if len(c.outgoing) == 1:
            self._write(c)

    def _write(self, c: _Connection) -> None:
        while c.outgoing:
            first = c.outgoing[0]
            try:
                count = c.socket.sendmsg(first.parts)
            except BlockingIOError:
                return
            except OSError:
                c.outgoing.clear()  # what it has sent is still to be read
                return
            if first.sent(count):
                c.outgoing.popleft()
                if first.move is not None:
                    first.move.unsent -= 1

    def _expect(self, key: tuple[int, int, int], view: memoryview, move: Move) -> None:
        """Wait for a message, which may have come in part."""
        early = self._early.pop(key, None)
        if early is None:
            self._expected[key] = _Incoming(view, move)
            move.wanted.add(key[0])
            return
        self._check_length(key[0], len(early.into), len(view))
        view[: early.count] = early.into[: early.count]
        if early.count < len(view):
            early.into, early.move = view, move
            move.wanted.add(key[0])

    def _check_length(self, rank: int, count: int, expected: int) -> None:
        if count != expected:
            raise CommunicatorError(f"rank {self.rank}: rank {rank} sent {count} bytes where {expected} were expected")

    def _read(self, c: _Connection) -> None:
        for _ in range(_READS_AT_A_TIME):
            incoming = c.incoming
            into = c.header[c.header_count :] if incoming is None else incoming.into[incoming.count :]
            try:
                count = c.socket.recv_into(into)
            except BlockingIOError:
                return
            except OSError:
                count = 0
            if not count:
                self._lose(c)
                return
            if incoming is None:
                c.header_count += count
                if c.header_count == _HEADER.size:
                    self._begin_message(c)
            else:
                incoming.count += count
                if incoming.count == len(incoming.into):
                    self._end_message(c, incoming)

    def _begin_message(self, c: _Connection) -> None:
        group, number, length = _HEADER.unpack(c.header)
        c.key, c.header_count = (group, number), 0
        key = (c.rank, group, number)
        c.incoming = self._expected.pop(key, None)
        if c.incoming is not None:
            self._check_length(c.rank, length, len(c.incoming.into))
            return
        c.incoming = _Incoming(as_bytes(np.empty(length, np.uint8)), None)
        if group not in (WORD, ABORT):
            self._early[key] = c.incoming
        if not length:
            self._end_message(c, c.incoming)

    def _end_message(self, c: _Connection, message: _Incoming) -> None:
        c.incoming = None
        if message.move is not None:
            message.move.wanted.discard(c.rank)
        elif c.key[0] == WORD:
            self._words.setdefault(c.key[1], []).append((c.rank, bytes(message.into)))
        elif c.key[0] == ABORT:
            self.aborted[c.rank] = bytes(message.into).decode(errors="replace")

    def _lose(self, c: _Connection) -> None:
        self.lost.add(c.rank)
        c.outgoing.clear()
        self._selector.unregister(c.socket)
        c.socket.close()


def as_bytes(x: np.ndarray) -> memoryview:
    """The memory of a flat array."""
    return memoryview(x.view(np.uint8).data)
