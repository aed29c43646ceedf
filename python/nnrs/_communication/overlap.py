"""Gradients that are added up over processes while backward still computes others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from .._core import Function, NdArray, Variable
from .arrays import distinct, sum_type
from .line import Collective

Pack = list[NdArray]


class Sender(Protocol):
    """What the communicator does for the callback."""

    def check(self, packs: Sequence[Pack]) -> Collective: ...
    def send(self, pack: Pack) -> Collective: ...
    def advance(self) -> None: ...
    def finish(self, last: Collective) -> None: ...


class RunPlan:
    """Which gradients of one backward run go together, and what each waits for: the functions that add to it."""

    def __init__(self, root: Function, arrays: Sequence[NdArray], pack_size: int) -> None:
        wanted = set(arrays)
        self.root = root
        self.reads: dict[Function, list[NdArray]] = {}
        self.left: dict[NdArray, int] = dict.fromkeys(arrays, 0)
        self._final: dict[NdArray, int] = {}
        found: list[Function] = []
        _variable_of(root).visit(found.append)
        for f in found:
            self._note(f, [g for g in map(_grad, f.inputs) if g in wanted])
        self.packs = _packs(self._order(arrays), pack_size)
        self.sent = 0

    def _note(self, f: Function, read: Pack) -> None:
        self.reads[f] = read if f.need_grad else []
        for g in self.reads[f]:
            self.left[g] += 1
            self._final[g] = min(self._final.get(g, f.rank), f.rank)

    def _order(self, arrays: Sequence[NdArray]) -> Pack:
        """As they become final: backward runs from the highest rank down."""
        return sorted(arrays, key=lambda g: -self._final.get(g, -1))

    def finished(self, f: Function) -> None:
        """`f` has added its part."""
        for g in self.reads[f]:
            self.left[g] -= 1

    def ready(self) -> list[Pack]:
        """The packs that can go now; in their order, which is that of all processes."""
        start = self.sent
        while self.sent < len(self.packs) and all(self.left[g] <= 0 for g in self.packs[self.sent]):
            self.sent += 1
        return self.packs[start : self.sent]

    def rest(self) -> list[Pack]:
        """All packs that have not gone."""
        start, self.sent = self.sent, len(self.packs)
        return self.packs[start:]


def _variable_of(f: Function) -> Variable:
    return f.outputs[0]


def _grad(v: Variable) -> NdArray:
    return v.grad


def _packs(arrays: Sequence[NdArray], pack_size: int) -> list[Pack]:
    """Neighbours together until a pack has `pack_size` numbers, or the next is of another type."""
    packs: list[Pack] = []
    count, dtype = 0, np.dtype(np.float32)
    for a in arrays:
        if not packs or count >= pack_size or sum_type(a) != dtype:
            packs.append([])
            count, dtype = 0, sum_type(a)
        packs[-1].append(a)
        count += a.size
    return packs


class GradientExchange:
    """The state of `all_reduce_callback`: a plan a run, made when the run's first function is over."""

    def __init__(self, sender: Sender, data: Sequence[NdArray], pack_size: int) -> None:
        self._sender, self._data, self._pack_size = sender, distinct(data), pack_size
        self._plan: RunPlan | None = None
        self._last: Collective | None = None

    def finish_function(self, f: Function) -> None:
        plan = self._plan
        if plan is None or f == plan.root or f not in plan.reads:  # the latter: after a run that has failed
            plan = self._start(lambda: RunPlan(f, self._data, self._pack_size))
        plan.finished(f)
        self._send(plan.ready())
        self._sender.advance()

    def finish_run(self) -> None:
        if self._plan is None:  # no function has a gradient
            plan = [self._data] if self._data else []
            self._last = self._sender.check(plan)
            self._send(plan)
        else:
            self._send(self._plan.rest())
        self._plan = None
        if self._last is not None:
            self._sender.finish(self._last)

    def _start(self, make: Callable[[], RunPlan]) -> RunPlan:
        if self._last is not None and not self._last.is_done and self._last.error is None:
            self._sender.finish(self._last)  # of a run that has failed: its arrays may still be on their way
        self._plan = plan = make()
        self._last = self._sender.check(plan.packs)
        return plan

    def _send(self, packs: Sequence[Pack]) -> None:
        for pack in packs:
            self._last = self._sender.send(pack)
