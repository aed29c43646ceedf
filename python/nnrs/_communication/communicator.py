"""The communicator: NNabla's members over a transport."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core import NcclGroup, NdArray
from .._errors import (
    ArgumentError,
    ArgumentTypeError,
    check_integer,
    check_list,
    check_number,
    check_switch,
    check_type,
    describe,
    message,
)
from .._modes import get_current_context
from .arrays import Places, described, distinct, sum_type
from .callback import CommunicatorBackwardCallback
from .exchange import Exchange, HostExchange
from .line import Collective
from .membership import WORLD, Membership
from .nccl import DeviceExchange, NcclTransport
from .open_runs import OpenCallback
from .overlap import GradientExchange
from .reductions import Steps
from .transport import Transport

Arrays = NdArray | Sequence[NdArray]
_NAME = "all_reduce_callback"


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
        super().__init__(transport, check_switch("Communicator", "deterministic", deterministic))
        self._host, self._devices = HostExchange(self._deterministic), DeviceExchange(self._deterministic)

    def __reduce__(self) -> Any:
        raise ArgumentTypeError(
            message(self.name, None, "no copy and no pickle: it is this process's place in a group")
        )

    # --- collectives --------------------------------------------------------------------------------------------------

    def all_reduce(self, data: Arrays, division: bool = False, inplace: bool = False, group: str = WORLD) -> None:
        """Each array becomes the sum of it over all processes.

        Args:
            data: An NdArray or a list of them, of the same shapes and types on all processes.
            division: Whether sums are divided by the number of processes.
            inplace: Whether no memory is used for packing small arrays, which takes a message for each.
            group: Which processes.
        """
        arrays = self._arrays("all_reduce", "data", data)
        self._sum("all_reduce", described(arrays), arrays, division, inplace, group)

    def allreduce(self, division: bool = False, inplace: bool = False) -> None:
        """Add up the gradients of the registered parameters over all processes; `all_reduce` is the newer one."""
        registered = [(name, v.grad) for _, parameters in self._registered for name, v in parameters.items()]
        arrays = distinct(f"{self.name}.allreduce", "parameters", [grad for _, grad in registered])
        number = {grad: i for i, grad in enumerate(arrays)}
        places = Places(arrays)  # names may share one, or a part of one
        numbers = [number[next(places.meeting(grad), grad)] for _, grad in registered]
        each = zip(registered, numbers, strict=True)
        said = ", ".join(f"{name!r}: {i} {described([grad])}" for (name, grad), i in each)
        self._sum("allreduce", said, arrays, division, inplace, WORLD)

    def reduce(self, data: Arrays, dst: int, division: bool = False, inplace: bool = False, group: str = WORLD) -> None:
        """Each array becomes the sum of it over all processes on rank `dst` (of the world), and stays elsewhere."""
        here, arrays = f"{self.name}.reduce", self._arrays("reduce", "data", data)
        divide, inplace = check_switch(here, "division", division), check_switch(here, "inplace", inplace)
        to = self._place(here, "dst", dst, group)
        said = f"{described(arrays)}; dst={dst}, division={divide}, inplace={inplace}"
        self._run("reduce", group, said, lambda t: self._exchange(t).reduce(t, arrays, to, inplace, divide))

    def bcast(self, data: Arrays, src: int, inplace: bool = False, group: str = WORLD) -> None:
        """Each array becomes that of rank `src` (of the world)."""
        here, arrays = f"{self.name}.bcast", self._arrays("bcast", "data", data)
        inplace, source = check_switch(here, "inplace", inplace), self._place(here, "src", src, group)
        said = f"{described(arrays)}; src={src}, inplace={inplace}"
        self._run("bcast", group, said, lambda t: self._exchange(t).bcast(t, arrays, source, inplace))

    def all_gather(self, ndarray: NdArray, ndarray_list: Sequence[NdArray], group: str = WORLD) -> None:
        """`ndarray_list[i]` becomes `ndarray` of the group's i-th process."""
        here = "all_gather"
        x, arrays = self._one(here, "ndarray", ndarray), self._each(here, ndarray, ndarray_list, group)
        self._check_kept(here, "ndarray_list", [x], arrays)
        self._run(here, group, described([x]), lambda t: self._exchange(t).all_gather(t, x, arrays))

    def reduce_scatter(
        self, ndarray_list: Sequence[NdArray], ndarray: NdArray, division: bool = False, group: str = WORLD
    ) -> None:
        """`ndarray` becomes the sum over all processes of their `ndarray_list[i]`, for the group's i-th process."""
        here, divide = "reduce_scatter", check_switch(f"{self.name}.reduce_scatter", "division", division)
        y, arrays = self._one(here, "ndarray", ndarray), self._each(here, ndarray, ndarray_list, group)
        self._check_kept(here, "ndarray", arrays, [y])
        said = f"{described(arrays)}; division={divide}"
        self._run(here, group, said, lambda t: self._exchange(t).reduce_scatter(t, arrays, y, divide))

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

        A gradient goes when the last function that adds to it, or to a view of it, is over; parameters that several
        functions share are no exception. One that no function of the graph has, such as that of a graph which a
        function's own backward runs, goes at the end. What a hook adds to a gradient of the graph has to be there
        before its last function is over. When `backward` returns, all have been summed. The gradient of a variable that
        is no leaf goes when the function that made it has read it: what flows on is this process's own. The callback
        may be used for any number of runs.

        All processes send the same gradients in the same order. Graphs that differ in it, and a run that fails on one
        process, are an `ArgumentError` on all of them, after which they may go on, with that step left out.

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
        here, arrays = f"{self.name}.{_NAME}", self._listed(_NAME, "data", data)
        size, scale = check_integer(here, "pack_size", pack_size, 1), check_number(here, "scale_grad", scale_grad)
        if not math.isfinite(scale):
            raise ArgumentError(message(here, "scale_grad", "a finite number", scale))
        divide, member = check_switch(here, "division", division), self._member(here, group)
        if not self._line.has_others and scale == 1:
            return CommunicatorBackwardCallback()
        if member.transport is None or (member.transport.size == 1 and scale == 1):
            return _ReduceGradients(GradientExchange(lambda run: _Bystander(self, run), here, arrays, size))
        settings = _Settings(group, member.transport, divide, scale)
        return _ReduceGradients(GradientExchange(lambda run: _PackSender(self, settings, run), here, arrays, size))

    # --- inside -------------------------------------------------------------------------------------------------------

    def _gpus(self, here: str, group: str) -> NcclGroup | None:
        """The GPUs by which a graph that is made now sums, which all join together; None: it sums by the host."""
        t = self._member(here, group).transport
        if not isinstance(t, NcclTransport) or not t.is_of(get_current_context()):
            return None
        self._run(here, group, "the group of GPUs", lambda t: t.join())  # type: ignore[attr-defined]
        return t.devices

    def _exchange(self, t: Transport) -> Exchange:
        return self._devices if isinstance(t, NcclTransport) else self._host

    def _sum(self, here: str, said: str, arrays: list[NdArray], division: bool, inplace: bool, group: str) -> None:
        divide = check_switch(f"{self.name}.{here}", "division", division)
        inplace = check_switch(f"{self.name}.{here}", "inplace", inplace)
        said = f"{said}; division={divide}, inplace={inplace}"
        self._run(here, group, said, lambda t: self._exchange(t).all_reduce(t, arrays, inplace, divide))

    def _one(self, name: str, argument: str, value: Any) -> NdArray:
        expected = "an NdArray (v.data or v.grad of a Variable)"
        check_type(f"{self.name}.{name}", argument, value, NdArray, expected)
        return value  # type: ignore[no-any-return]

    def _arrays(self, name: str, argument: str, value: Any) -> list[NdArray]:
        return distinct(f"{self.name}.{name}", argument, self._listed(name, argument, value))

    def _listed(self, name: str, argument: str, value: Any) -> list[NdArray]:
        if isinstance(value, NdArray):
            return [value]
        return self._in_order(name, argument, value, "NdArrays (v.data or v.grad of Variables)")

    def _in_order(self, name: str, argument: str, value: Any, expected: str) -> list[NdArray]:
        """Arrays in the order that they have on all processes; a set has another one on each."""
        if isinstance(value, (set, frozenset)):
            hint = "a set has another order on each process"
            raise ArgumentTypeError(
                message(f"{self.name}.{name}", argument, f"a list of {expected}", describe(value), hint)
            )
        return check_list(f"{self.name}.{name}", argument, value, NdArray, expected)

    def _each(self, name: str, one: NdArray, value: Any, group: str) -> list[NdArray]:
        """A list with an array for each process of the group, of the shape of `one`."""
        here, count = f"{self.name}.{name}", len(self._member(f"{self.name}.{name}", group).ranks)
        arrays = self._in_order(name, "ndarray_list", value, "NdArrays")
        if len(arrays) != count or any(a.shape != one.shape for a in arrays):
            expected = f"{count} arrays of shape {one.shape}, one for each process of the group"
            raise ArgumentError(message(here, "ndarray_list", expected, f"shapes {[a.shape for a in arrays]}"))
        return arrays

    def _check_kept(self, name: str, argument: str, sources: list[NdArray], targets: list[NdArray]) -> None:
        """Arrays keep their types, so these have to have room for what comes: no numbers become whole silently."""
        kinds = {sum_type(a) for a in sources}
        for a in targets:
            if not all(np.can_cast(kind, sum_type(a), "same_kind") for kind in kinds):
                expected = f"an array that takes {', '.join(sorted(map(str, kinds)))}"
                raise ArgumentTypeError(message(f"{self.name}.{name}", argument, expected, f"one of {a.dtype}"))


class _Settings(NamedTuple):
    group: str
    transport: Transport
    mean: bool
    scale: float


class _Bystander:
    """Of a process that is not in the group, or alone in it: it sends nothing, and is in the run all the same.

    So it is told of a run that has failed elsewhere, and has the packs of other groups in the same order.
    """

    def __init__(self, comm: Communicator, run: int) -> None:
        self._line = comm._line
        self._open = self._line.begin().join(run, self._line, None)
        self.plans = self._open.run.plans

    def check(self, packs: str) -> None: ...

    def send(self, pack: list[NdArray], number: int, count: int) -> None: ...

    def advance(self) -> None: ...

    def finish(self) -> None: ...

    def close(self) -> None:
        self._line.runs.leave(self._open)

    def fail(self, why: str) -> None:
        self._line.fail(self._open, _NAME, why)


class _PackSender:
    """Sends packs of gradients of a run in a communicator's line; the arrays are touched by the caller's thread.

    Each pack goes with a word, as every collective: another process may have given the run up.
    """

    def __init__(self, comm: Communicator, settings: _Settings, run: int) -> None:
        line = comm._line
        self._comm, self._settings, self.advance = comm, settings, line.advance
        self._open = line.begin().join(run, line, settings.group)
        self.plans = self._open.run.plans

    def check(self, packs: str) -> None:
        """A word on all packs of a run: the others must have the same."""
        s = self._settings
        divide_by = s.transport.size if s.mean else 1
        said = f"gradients in packs {packs}; callback {self._open.number}, by {divide_by}, scale {s.scale}"
        self._submit(self._comm._settled(said, s.transport))

    def send(self, pack: list[NdArray], number: int, count: int) -> None:
        """Let a pack be added up, the `number`-th of `count`."""
        s, line = self._settings, self._comm._line
        memories = {g._place[0] for g in pack}
        for other in line.runs.beside(self._open):
            if not other.memories.isdisjoint(memories):
                self._settle(other)
        name = f"{number} of {count}; callback {self._open.number}"
        made = self._comm._exchange(s.transport).pack(s.transport, pack, s.scale, s.mean, f"{s.group} {name}")
        self._open.memories |= memories
        self._open.puts += made.puts
        self._open.last = self._submit(f"pack {name}", made.steps, made.is_free)
        if not made.is_free:
            # Asked for here and now on all: graphs ask for collectives of the same GPUs (synchronized normalization).
            line.wait(self._open.last)

    def finish(self) -> None:
        """Return when all packs are over, and their sums are where they belong."""
        self._settle(self._open)

    def close(self) -> None:
        """All callbacks have come to the end of the run: it has failed nowhere, if the others say so, too."""
        run, line, group = self._open.run, self._comm._line, self._settings.group
        try:
            if run.error is not None:
                raise run.error
            if (line, group) not in run.settled:
                line.wait(self._submit("the end of a backward run"))
                run.settled.add((line, group))
        except BaseException as error:
            self.fail(f"{type(error).__name__}: {error}")
            raise
        line.runs.leave(self._open)

    def fail(self, why: str) -> None:
        """End a run that has failed here."""
        self._comm._line.fail(self._open, _NAME, why)

    def _settle(self, callback: OpenCallback) -> None:
        """Return when what a callback has sent is over, and the sums are where they belong."""
        if callback.last is not None:
            self._comm._line.wait(callback.last)
        for put in callback.puts:
            put()
        callback.memories.clear()
        callback.puts.clear()

    def _submit(self, said: str, steps: Callable[[], Steps] = lambda: iter(()), is_free: bool = True) -> Collective:
        s = self._settings
        return self._comm._line.submit(_NAME, s.group, s.transport, said, steps, is_free, self._open.run)


class _ReduceGradients(CommunicatorBackwardCallback):
    """What `all_reduce_callback` gives."""

    def __init__(self, exchange: GradientExchange) -> None:
        self._exchange = exchange

    def on_finish_function_backward(self, function: Any) -> None:
        self._exchange.finish_function(function)

    def on_finish_backward(self) -> None:
        self._exchange.finish_run()

    def _on_begin_backward(self, run: int) -> None:
        self._exchange.begin_run(run)

    def _on_close_backward(self, run: int) -> None:
        self._exchange.close_run(run)

    def _on_failed_backward(self, run: int, why: str) -> None:
        self._exchange.fail_run(run, why)
