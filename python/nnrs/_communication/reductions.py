"""Collectives as generators over a transport, which yield each move that has begun, and go on when it is over.

Sums are made here, not by the transport: every process gets one part of the numbers from all others, adds them up in
the order of ranks, and gives the sum to those that want it; of few numbers every process gets all. So the bits depend
on the numbers and on how many processes there are, and on nothing else: not on the transport, the machines, or how
arrays were packed. It costs what a ring costs: each number travels twice.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._core import ordered_sum
from .transport import Poll, Transport, block_cuts, even_cuts

Steps = Iterator[Poll]

SEGMENT = 1 << 19
"""Numbers that a process sums at a time, so that they stay in its cache."""
MOST_SCRATCH = 1 << 24
"""Numbers that all processes sum at a time, at most: what scratch memory has room for."""
FEW = 1 << 13
"""Up to so many numbers, counted over all processes, one exchange of all is quicker than two of parts."""


class Scratch:
    """Memory that stays: one array for each use and type, as long as was ever wanted."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, Any], np.ndarray] = {}

    def __call__(self, use: str, dtype: Any, count: int) -> np.ndarray:
        key = (use, np.dtype(dtype))
        if key not in self._kept or self._kept[key].size < count:
            self._kept[key] = np.empty(count, dtype)
        return self._kept[key][:count]


class Thread(threading.local):
    """What is to be known of the thread that runs here."""

    computes_beside = False
    """Whether another one runs the script meanwhile, whose functions are to have the engine's threads."""


thread = Thread()


def _sum(rows: np.ndarray, out: np.ndarray, divide_by: int) -> None:
    ordered_sum(rows, out, divide_by, thread.computes_beside)


def as_move(steps: Steps) -> Poll:
    """The moves of a collective as one."""
    first = next(steps, None)

    def poll() -> bool:
        nonlocal first
        while first is not None and first():
            first = next(steps, None)
        return first is None

    return poll


def _sum_own_part(t: Transport, x: np.ndarray, cuts: Sequence[int], scratch: Scratch, divide_by: int) -> Steps:
    """This process's part of x becomes the sum over all."""
    own = x[cuts[t.rank] : cuts[t.rank + 1]]
    received = scratch("received", x.dtype, own.size * t.size).reshape(t.size, own.size)
    yield t.all_to_all(x, cuts, received)
    _sum(received, own, divide_by)


def _segments(t: Transport, x: np.ndarray) -> Iterator[np.ndarray]:
    step = min(SEGMENT * t.size, MOST_SCRATCH)
    for start in range(0, x.size, step):
        yield x[start : start + step]


def all_reduce(t: Transport, x: np.ndarray, scratch: Scratch, divide_by: int = 1) -> Steps:
    """x becomes the sum over all processes, everywhere."""
    if t.size == 1:
        return
    if 0 < x.size * t.size <= FEW:
        rows = scratch("received", x.dtype, x.size * t.size).reshape(t.size, x.size)
        rows[t.rank] = x
        yield from all_gather(t, rows)
        _sum(rows, x, divide_by)
        return
    for part in _segments(t, x):
        cuts = even_cuts(part.size, t.size)
        yield from _sum_own_part(t, part, cuts, scratch, divide_by)
        yield t.all_gather(part, cuts)


def all_reduce_by_transport(t: Transport, x: np.ndarray, scratch: Scratch, divide_by: int = 1) -> Steps:
    """The same in the transport's own order of sums."""
    if x.size:
        yield t.all_reduce(x)
        _sum(x[None], x, divide_by)


def reduce(t: Transport, x: np.ndarray, dst: int, scratch: Scratch, divide_by: int = 1) -> Steps:
    """x becomes the sum over all processes on rank `dst`, and stays what it was elsewhere."""
    for part in _segments(t, x):
        cuts = even_cuts(part.size, t.size)
        if t.rank != dst:
            part = _copy(part, scratch)
        yield from _sum_own_part(t, part, cuts, scratch, divide_by)
        yield t.gather(part, cuts, dst)


def _copy(x: np.ndarray, scratch: Scratch) -> np.ndarray:
    copied = scratch("copied", x.dtype, x.size)
    np.copyto(copied, x)
    return copied


def bcast(t: Transport, x: np.ndarray, src: int) -> Steps:
    """x becomes that of rank `src`."""
    for part in _segments(t, x):
        yield t.bcast(part, src)


def all_gather(t: Transport, x: np.ndarray) -> Steps:
    """Of x (size, count) row i becomes that of rank i, everywhere."""
    yield t.all_gather(x.reshape(-1), block_cuts(x.shape[1], t.size))


def reduce_scatter(t: Transport, x: np.ndarray, scratch: Scratch, divide_by: int = 1) -> Steps:
    """Of x (size, count) that row which has this process's number becomes the sum of it over all processes."""
    cuts = block_cuts(x.shape[1], t.size)
    yield from _sum_own_part(t, x.reshape(-1), cuts, scratch, divide_by)
