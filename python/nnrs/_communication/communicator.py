"""The communicator: NNabla's members over a transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core import NdArray
from .._errors import ArgumentError, check_flag, check_integer, check_list, check_number, check_type, message
from . import reductions
from .arrays import described, distinct, groups, load, sum_type, values, write
from .callback import CommunicatorBackwardCallback
from .line import Collective
from .membership import WORLD, Membership
from .overlap import GradientExchange
from .reductions import Scratch, Steps
from .transport import Transport

Arrays = NdArray | Sequence[NdArray]


class Communicator(Membership):
    """Exchanges arrays between processes that train one network. All processes make the same calls in the same order.

    The base of the other communicators, and one over a transport of your own. In a group of one process all members do
    nothing, but that `all_gather` and `reduce_scatter` copy. A process that is not in a group returns from that group's
    collectives at once.

    Sums are made in the order of ranks, in the array's type (half types in float32, rounded once), bools by "or";
    whole numbers are divided towards zero. Arrays keep their types. Calls that differ between processes, in
    shapes or types too, are an `ArgumentError` on all of them.

    Args:
        transport: What carries the arrays; by default there are no other processes.
        deterministic: Whether sums are made in the order of ranks; if not, as the transport likes, which may be
            faster for small arrays on hundreds of processes.

    >>> import nnrs as nn, nnrs.communicators as C
    >>> comm = C.Communicator()
    >>> comm.list_groups()
    {'world': [0]}
    >>> x, y = nn.NdArray.from_numpy_array([1, 2]), nn.NdArray((2,))
    >>> comm.all_gather(x, [y])
    >>> print(y.data)
    [1. 2.]
    """

    def __init__(self, transport: Transport | None = None, *, deterministic: bool = True) -> None:
        if transport is not None:
            check_type("Communicator", "transport", transport, Transport, "a nnrs.communicators.Transport")
        super().__init__(transport, check_flag("Communicator", "deterministic", deterministic))
        self._scratch = Scratch()

    # --- collectives --------------------------------------------------------------------------------------------------

    def all_reduce(self, data: Arrays, division: bool = False, inplace: bool = False, group: str = WORLD) -> None:
        """Each array becomes the sum of it over all processes.

        Args:
            data: An NdArray or a list of them, of the same shapes and types on all processes.
            division: Whether sums are divided by the number of processes.
            inplace: Whether no memory is used for packing small arrays, which takes a message for each.
            group: Which processes.
        """
        here, arrays = "all_reduce", self._arrays("all_reduce", "data", data)
        divide, inplace = check_flag(here, "division", division), check_flag(here, "inplace", inplace)
        said = f"{described(arrays)}; division={divide}, inplace={inplace}"
        self._run(here, group, said, lambda t: self._sum(t, arrays, inplace, t.size if divide else 1))

    def allreduce(self, division: bool = False, inplace: bool = False) -> None:
        """Add up the gradients of the registered parameters over all processes; `all_reduce` is the newer one."""
        self.all_reduce([v.grad for _, p in self._registered for v in p.values()], division, inplace)

    def reduce(self, data: Arrays, dst: int, division: bool = False, inplace: bool = False, group: str = WORLD) -> None:
        """Each array becomes the sum of it over all processes on rank `dst` (of the world), and stays elsewhere."""
        here, arrays = "reduce", self._arrays("reduce", "data", data)
        divide, inplace = check_flag(here, "division", division), check_flag(here, "inplace", inplace)
        to = self._place(here, "dst", dst, group)

        def steps(t: Transport) -> Steps:
            for some in groups(arrays, inplace):
                flat, put = load(some, self._scratch)
                yield from reductions.reduce(t, flat, to, self._scratch, t.size if divide else 1)
                if t.rank == to:
                    put()

        self._run(here, group, f"{described(arrays)}; dst={dst}, division={divide}, inplace={inplace}", steps)

    def bcast(self, data: Arrays, src: int, inplace: bool = False, group: str = WORLD) -> None:
        """Each array becomes that of rank `src` (of the world)."""
        here, arrays = "bcast", self._arrays("bcast", "data", data)
        inplace, source = check_flag(here, "inplace", inplace), self._place(here, "src", src, group)

        def steps(t: Transport) -> Steps:
            for some in groups(arrays, inplace):
                flat, put = load(some, self._scratch)
                yield from reductions.bcast(t, flat, source)
                if t.rank != source:
                    put()

        self._run(here, group, f"{described(arrays)}; src={src}, inplace={inplace}", steps)

    def all_gather(self, ndarray: NdArray, ndarray_list: Sequence[NdArray], group: str = WORLD) -> None:
        """`ndarray_list[i]` becomes `ndarray` of the group's i-th process."""
        here = "all_gather"
        x, arrays = self._one(here, "ndarray", ndarray), self._each(here, ndarray, ndarray_list, group)

        def steps(t: Transport) -> Steps:
            rows = self._scratch("packed", sum_type(x), x.size * t.size).reshape(t.size, x.size)
            rows[t.rank] = values(x)
            if x.size:
                yield from reductions.all_gather(t, rows)
            for a, row in zip(arrays, rows, strict=True):
                write(a, row)

        self._run(here, group, described([x]), steps)

    def reduce_scatter(
        self, ndarray_list: Sequence[NdArray], ndarray: NdArray, division: bool = False, group: str = WORLD
    ) -> None:
        """`ndarray` becomes the sum over all processes of their `ndarray_list[i]`, for the group's i-th process."""
        here, divide = "reduce_scatter", check_flag("reduce_scatter", "division", division)
        y, arrays = self._one(here, "ndarray", ndarray), self._each(here, ndarray, ndarray_list, group)
        kind = sum_type(arrays[0]) if arrays else sum_type(y)

        def steps(t: Transport) -> Steps:
            rows = self._scratch("packed", kind, y.size * t.size).reshape(t.size, y.size)
            for a, row in zip(arrays, rows, strict=True):
                row[:] = values(a)
            if y.size:
                yield from reductions.reduce_scatter(t, rows, self._scratch, t.size if divide else 1)
            write(y, rows[t.rank])

        self._run(here, group, f"{described(arrays)}; division={divide}", steps)

    def all_reduce_callback(
        self,
        data: Arrays,
        pack_size: int,
        division: bool = False,
        group: str = WORLD,
        scale_grad: float = 1,
        keep_dtype: bool = False,
    ) -> CommunicatorBackwardCallback:
        """A callback for `backward(communicator_callbacks=...)` that adds up gradients while others are computed.

        A gradient goes when the last function that adds to it is over; parameters that several functions share are no
        exception. When `backward` returns, all have been summed. The callback may be used for any number of runs.

        Args:
            data: Gradients: an NdArray or a list of them.
            pack_size: How many numbers a message has at least, if it is not the last one.
            division: Whether sums are divided by the number of processes.
            group: Which processes.
            scale_grad: Factor of the gradients before they are summed, to take back a scale of the loss.
            keep_dtype: Not used: arrays keep their types here.

        >>> import nnrs as nn, nnrs.functions as F, nnrs.communicators as C
        >>> comm = C.Communicator()
        >>> x = nn.Variable.from_numpy_array([3.0], need_grad=True)
        >>> x.g = 0
        >>> y = F.sum(x * x)
        >>> y.forward()
        >>> y.backward(communicator_callbacks=comm.all_reduce_callback([x.grad], 1 << 20, scale_grad=0.5))
        >>> print(x.g)
        [3.]
        """
        here, arrays = "all_reduce_callback", self._arrays("all_reduce_callback", "data", data)
        size, scale = check_integer(here, "pack_size", pack_size, 1), check_number(here, "scale_grad", scale_grad)
        divide, transport = check_flag(here, "division", division), self._member(here, group).transport
        if transport is None or (transport.size == 1 and scale == 1):
            return CommunicatorBackwardCallback()
        settings = _Settings(here, group, transport, transport.size if divide else 1, scale)
        return _ReduceGradients(GradientExchange(_PackSender(self, settings), arrays, size))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _sum(self, t: Transport, arrays: list[NdArray], inplace: bool, divide_by: int) -> Steps:
        if t.size == 1:
            return
        for some in groups(arrays, inplace):
            flat, put = load(some, self._scratch)
            yield from self._sum_flat(t, flat, divide_by)
            put()

    def _sum_flat(self, t: Transport, flat: np.ndarray, divide_by: int) -> Steps:
        run = reductions.all_reduce if self._deterministic or t.size == 1 else reductions.all_reduce_by_transport
        return run(t, flat, self._scratch, divide_by)

    def _one(self, name: str, argument: str, value: Any) -> NdArray:
        expected = "an NdArray (v.data or v.grad of a Variable)"
        check_type(f"{self.name}.{name}", argument, value, NdArray, expected)
        return value  # type: ignore[no-any-return]

    def _arrays(self, name: str, argument: str, value: Any) -> list[NdArray]:
        if isinstance(value, NdArray):
            return [value]
        expected = "NdArrays (v.data or v.grad of Variables)"
        return distinct(check_list(f"{self.name}.{name}", argument, value, NdArray, expected))

    def _each(self, name: str, one: NdArray, value: Any, group: str) -> list[NdArray]:
        """A list with an array for each process of the group, of the shape of `one`."""
        here, count = f"{self.name}.{name}", len(self._member(f"{self.name}.{name}", group).ranks)
        arrays: list[NdArray] = check_list(here, "ndarray_list", value, NdArray, "NdArrays")
        if len(arrays) != count or any(a.shape != one.shape for a in arrays):
            expected = f"{count} arrays of shape {one.shape}, one for each process of the group"
            raise ArgumentError(message(here, "ndarray_list", expected, f"shapes {[a.shape for a in arrays]}"))
        return arrays


class _Settings(NamedTuple):
    name: str
    group: str
    transport: Transport
    divide_by: int
    scale: float


class _PackSender:
    """Sends packs of gradients in a communicator's line; the arrays themselves are touched by the caller's thread."""

    def __init__(self, comm: Communicator, settings: _Settings) -> None:
        self._comm, self._settings = comm, settings
        self._puts: list[Callable[[], None]] = []
        self.advance = comm._line.advance

    def check(self, packs: Sequence[list[NdArray]]) -> Collective:
        """A word on all packs of a run: the others must have the same."""
        s = self._settings
        said = f"packs {' / '.join(map(described, packs))}; by {s.divide_by}, scale {s.scale}"
        self._puts.clear()
        return self._comm._submit(s.name, s.group, s.transport, said, lambda t: iter(()), is_free=True)

    def send(self, pack: list[NdArray]) -> Collective:
        s, comm, flats = self._settings, self._comm, []
        for some in groups(pack):
            flat, put = load(some, comm._scratch, s.scale, use=f"pack {len(self._puts)}")
            flats.append(flat)
            self._puts.append(put)

        def steps() -> Steps:
            for flat in flats:
                yield from comm._sum_flat(s.transport, flat, s.divide_by)

        return comm._line.submit(s.name, s.group, s.transport, steps, is_free=True)

    def finish(self, last: Collective) -> None:
        self._comm._line.wait(last)
        for put in self._puts:
            put()
        self._puts.clear()


class _ReduceGradients(CommunicatorBackwardCallback):
    """What `all_reduce_callback` gives."""

    def __init__(self, exchange: GradientExchange) -> None:
        self._exchange = exchange

    def on_finish_function_backward(self, function: Any) -> None:
        self._exchange.finish_function(function)

    def on_finish_backward(self) -> None:
        self._exchange.finish_run()
