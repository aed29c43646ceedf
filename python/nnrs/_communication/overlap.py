"""Gradients that are added up over processes while backward still computes others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from .._core import Function, NdArray, Variable
from .arrays import described, distinct, sum_type

Pack = list[NdArray]


class Sender(Protocol):
    """What the communicator does for the callback."""

    def begin(self, run: int) -> None: ...
    def check(self, packs: str) -> None: ...
    def send(self, pack: Pack, number: int, count: int) -> None: ...
    def advance(self) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...
    def fail(self, why: str) -> None: ...


class RunPlan:
    """Which gradients of one backward run go together, and what each waits for.

    That is the functions that add to it, and, if it is not a leaf's, the one that reads it. Without a `root`, the first
    function that is done, no function has a gradient, and all go at once.
    """

    def __init__(self, root: Function | None, arrays: Sequence[NdArray], pack_size: int) -> None:
        self._numbers = {g: i for i, g in enumerate(arrays)}
        self.root = root
        self.reads: dict[Function, list[NdArray]] = {}
        self.left: dict[NdArray, int] = dict.fromkeys(arrays, 0)
        self.sent = 0
        if root is None:
            self.packs = [list(arrays)] if arrays else []
            return
        found: list[Function] = []
        root.outputs[0].visit(found.append)
        final: dict[NdArray, int] = {}
        for f in found:
            read = [g for g in map(_grad, [*f.inputs, *f.outputs]) if g in self._numbers]
            self.reads[f] = read if f.need_grad else []
            for g in self.reads[f]:
                self.left[g] += 1
                final[g] = min(final.get(g, f.rank), f.rank)
        # As they become final: backward runs from the highest rank down.
        self.packs = _packs(sorted(arrays, key=lambda g: -final.get(g, -1)), pack_size)

    def goes_on(self, f: Function) -> bool:
        """Whether the end of `f` belongs to the run; if not, that was given up, and this is another one."""
        return f != self.root and f in self.reads

    def finished(self, f: Function) -> None:
        """`f` has added its part."""
        for g in self.reads.get(f, ()):
            self.left[g] -= 1
        self.reads[f] = []

    def described(self) -> str:
        """Which gradients the packs have, with types and shapes, as processes compare them."""
        return " / ".join(", ".join(f"{self._numbers[g]}: {described([g])}" for g in pack) for pack in self.packs)

    def ready(self) -> list[Pack]:
        """The packs that can go now; in their order, which is that of all processes."""
        end = self.sent
        while end < len(self.packs) and all(self.left[g] <= 0 for g in self.packs[end]):
            end += 1
        return self.packs[self.sent : end]

    def rest(self) -> list[Pack]:
        """All packs that have not gone."""
        return self.packs[self.sent :]


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
        self._calls = 0
        """How many times the run that goes on has this callback."""
        self._is_open = False
        self._plan: RunPlan | None = None

    def begin_run(self, run: int) -> None:
        self._calls += 1
        if self._calls == 1:
            self._open(run)

    def finish_function(self, f: Function) -> None:
        plan = self._plan
        if not self._calls:  # by a callback that only hands on what it is told of functions
            if self._is_open and (plan is None or not plan.goes_on(f)):
                self.fail_run("another run has begun")
                plan = None
            self._open(0)
        if plan is None:
            plan = self._start(f)
        plan.finished(f)
        self._send(plan, plan.ready())
        self._sender.advance()

    def finish_run(self) -> None:
        is_told_of_ends = self._calls > 0
        self._calls = max(self._calls - 1, 0)
        if self._calls:
            return
        self._open(0)
        plan = self._plan or self._start(None)
        self._send(plan, plan.rest())
        self._plan = None
        self._sender.finish()
        if not is_told_of_ends:
            self.close_run()

    def close_run(self) -> None:
        if self._is_open and not self._calls:
            self._is_open = False
            self._sender.close()

    def fail_run(self, why: str) -> None:
        is_open = self._is_open
        self._calls, self._plan, self._is_open = 0, None, False
        if is_open:
            self._sender.fail(why)

    def _open(self, run: int) -> None:
        if not self._is_open:
            self._sender.begin(run)
            self._is_open = True

    def _start(self, root: Function | None) -> RunPlan:
        plan = RunPlan(root, self._data, self._pack_size)
        self._sender.check(plan.described())
        self._plan = plan
        return plan

    def _send(self, plan: RunPlan, packs: Sequence[Pack]) -> None:
        for pack in packs:
            plan.sent += 1
            self._sender.send(pack, plan.sent, len(plan.packs))
