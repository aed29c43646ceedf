"""A transport between threads that stand for processes, as a user would write one; and a way to run such threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import nnrs.communicators as C


class Board:
    """Where threads leave what they send: by group and number of the move, then by rank."""

    def __init__(self) -> None:
        self.moves: dict[Any, dict[int, Any]] = {}
        self.lock = threading.Lock()


class ThreadTransport(C.Transport):
    name = "threads"
    allows_threads = True

    def __init__(self, board: Board, rank: int, size: int, group: str = "world") -> None:
        self.board, self.rank, self.size, self.local_rank, self.group = board, rank, size, rank, group
        self.number = 0

    def _move(self, given: Any, take: Callable[[dict[int, Any]], None]) -> C.Poll:
        self.number += 1
        with self.board.lock:
            there = self.board.moves.setdefault((self.group, self.number), {})
            there[self.rank] = given

        def poll() -> bool:
            with self.board.lock:
                if len(there) < self.size:
                    return False
            take(there)
            return True

        return poll

    def all_to_all(self, send: np.ndarray, cuts: Sequence[int], received: np.ndarray) -> C.Poll:
        def take(there: dict[int, Any]) -> None:
            for rank, array in there.items():
                received[rank] = array[cuts[self.rank] : cuts[self.rank + 1]]

        return self._move(send.copy(), take)

    def all_gather(self, buffer: np.ndarray, cuts: Sequence[int]) -> C.Poll:
        return self.gather(buffer, cuts, self.rank)

    def gather(self, buffer: np.ndarray, cuts: Sequence[int], dst: int) -> C.Poll:
        def take(there: dict[int, Any]) -> None:
            for rank, part in there.items():
                if self.rank == dst:
                    buffer[cuts[rank] : cuts[rank + 1]] = part

        return self._move(buffer[cuts[self.rank] : cuts[self.rank + 1]].copy(), take)

    def bcast(self, buffer: np.ndarray, src: int) -> C.Poll:
        return self._move(buffer.copy(), lambda there: np.copyto(buffer, there[src]))

    def subset(self, ranks: Sequence[int], name: str) -> C.Transport | None:
        if self.rank not in ranks:
            return None
        return ThreadTransport(self.board, list(ranks).index(self.rank), len(ranks), name)


def run_threads(
    size: int,
    work: Callable[[C.Communicator], Any],
    over: Callable[[C.Transport], C.Transport] = lambda t: t,
    **options: Any,
) -> list[Any]:
    """What `work` gives on each of `size` ranks; raises what the first raised. `over` may wrap the transports."""
    board, found, errors = Board(), [None] * size, []

    def process(rank: int) -> None:
        try:
            found[rank] = work(C.Communicator(over(ThreadTransport(board, rank, size)), **options))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=process, args=(rank,), daemon=True) for rank in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    if errors:
        raise errors[0]
    assert not any(t.is_alive() for t in threads), "a thread waits"
    return found
