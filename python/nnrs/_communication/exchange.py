"""How the arrays of a collective go: `Exchange` says what there is, `HostExchange` sends them by a transport's moves.

`nccl.py` has the other one, between GPUs. The members of a communicator check their arguments, agree with the other
processes, and leave the rest to one of the two.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .._core import NdArray
from . import reductions
from .arrays import groups, load, sum_type, values, write
from .reductions import Scratch, Steps
from .transport import Transport


class Pack(NamedTuple):
    """Gradients that are to be summed while the script computes."""

    steps: Callable[[], Steps]
    puts: list[Callable[[], None]]
    """What is to be done when all packs are over."""
    is_free: bool
    """Whether any thread may make the steps."""


class Exchange(abc.ABC):
    """Collectives of arrays in one group of processes, as generators; `t` is the group's transport."""

    @abc.abstractmethod
    def all_reduce(self, t: Transport, arrays: Sequence[NdArray], inplace: bool, mean: bool) -> Steps:
        """Each array becomes its sum over all processes, or the mean."""

    @abc.abstractmethod
    def reduce(self, t: Transport, arrays: Sequence[NdArray], dst: int, inplace: bool, mean: bool) -> Steps:
        """The same for rank `dst` alone."""

    @abc.abstractmethod
    def bcast(self, t: Transport, arrays: Sequence[NdArray], src: int, inplace: bool) -> Steps:
        """Each array becomes that of rank `src`."""

    @abc.abstractmethod
    def all_gather(self, t: Transport, x: NdArray, arrays: Sequence[NdArray]) -> Steps:
        """`arrays[i]` becomes `x` of rank i."""

    @abc.abstractmethod
    def reduce_scatter(self, t: Transport, arrays: Sequence[NdArray], y: NdArray, mean: bool) -> Steps:
        """`y` becomes the sum of `arrays[i]` over all processes, i being this one's rank."""

    @abc.abstractmethod
    def pack(self, t: Transport, arrays: Sequence[NdArray], scale: float, mean: bool, name: str) -> Pack:
        """What `all_reduce` is for a pack in a backward run; no other one that is on its way has its name."""


class HostExchange(Exchange):
    """By the host's memory: the transport carries flat arrays, sums are made here."""

    def __init__(self, deterministic: bool) -> None:
        self._deterministic = deterministic
        self._scratch = Scratch()

    def all_reduce(self, t: Transport, arrays: Sequence[NdArray], inplace: bool, mean: bool) -> Steps:
        if t.size == 1:
            return
        for some in groups(arrays, inplace):
            flat, put = load(some, self._scratch)
            yield from self._sum(t, flat, mean)
            put()

    def reduce(self, t: Transport, arrays: Sequence[NdArray], dst: int, inplace: bool, mean: bool) -> Steps:
        for some in groups(arrays, inplace):
            flat, put = load(some, self._scratch)
            yield from reductions.reduce(t, flat, dst, self._scratch, t.size if mean else 1)
            if t.rank == dst:
                put()

    def bcast(self, t: Transport, arrays: Sequence[NdArray], src: int, inplace: bool) -> Steps:
        for some in groups(arrays, inplace):
            flat, put = load(some, self._scratch)
            yield from reductions.bcast(t, flat, src)
            if t.rank != src:
                put()

    def all_gather(self, t: Transport, x: NdArray, arrays: Sequence[NdArray]) -> Steps:
        rows = self._scratch("packed", sum_type(x), x.size * t.size).reshape(t.size, x.size)
        rows[t.rank] = values(x)
        if x.size:
            yield from reductions.all_gather(t, rows)
        for a, row in zip(arrays, rows, strict=True):
            write(a, row)

    def reduce_scatter(self, t: Transport, arrays: Sequence[NdArray], y: NdArray, mean: bool) -> Steps:
        kind = np.result_type(*map(sum_type, arrays or [y]))
        rows = self._scratch("packed", kind, y.size * t.size).reshape(t.size, y.size)
        for a, row in zip(arrays, rows, strict=True):
            row[:] = values(a)
        if y.size:
            yield from reductions.reduce_scatter(t, rows, self._scratch, t.size if mean else 1)
        write(y, rows[t.rank])

    def pack(self, t: Transport, arrays: Sequence[NdArray], scale: float, mean: bool, name: str) -> Pack:
        loaded = [load(some, self._scratch, scale, use=f"pack {name}, {i}") for i, some in enumerate(groups(arrays))]

        def steps() -> Steps:
            for flat, _ in loaded:
                yield from self._sum(t, flat, mean)

        return Pack(steps, [put for _, put in loaded], is_free=True)

    def _sum(self, t: Transport, flat: np.ndarray, mean: bool) -> Steps:
        # Whole numbers have one sum, which wraps around; MPI's may stop at the largest number.
        is_ours = self._deterministic or t.size == 1 or flat.dtype.kind in "iu"
        run = reductions.all_reduce if is_ours else reductions.all_reduce_by_transport
        return run(t, flat, self._scratch, t.size if mean else 1)
