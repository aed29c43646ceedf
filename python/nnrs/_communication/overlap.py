"""Gradients that are added up over processes while backward still computes others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from .._core import Function, NdArray, Variable
from .arrays import Places, described, distinct, sum_type

Pack = list[NdArray]


class Sender(Protocol):
    """What the communicator does for the callback in one run."""

    plans: list[RunPlan]
    """Those of the run's callbacks, in their order."""

    def check(self, packs: str) -> None: ...
    def send(self, pack: Pack, number: int, count: int) -> None: ...
    def advance(self) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...
    def fail(self, why: str) -> None: ...


class RunPlan:
    """Which gradients of one backward run go together, and what each waits for.

    That is the functions that add to it or to a view of it, if it is not a leaf's the one that reads it, and the packs
    that have it in the plans before, of the run's callbacks that come first: sums of sums are made in their order. What
    no function has goes at the end of the run: who knows what adds to it. Without a `root`, the first function that is
    done, that is all.
    """

    def __init__(
        self, root: Function | None, arrays: Sequence[NdArray], pack_size: int, before: Sequence[RunPlan]
    ) -> None:
        self._numbers = {g: i for i, g in enumerate(arrays)}
        self.places = Places(arrays)
        self.root = root
        self.reads: dict[Function, list[NdArray]] = {}
        self.left: dict[NdArray, int] = {}
        self.sent = 0
        final: dict[NdArray, int] = {}
        for f in _functions(root):
            grads = map(_grad, [*f.inputs, *f.outputs]) if f.need_grad else ()
            self.reads[f] = [g for grad in grads for g in self.places.meeting(grad)]
            for g in self.reads[f]:
                self.left[g] = self.left.get(g, 0) + 1
                final[g] = min(final.get(g, f.rank), f.rank)
        # As they become final: backward runs from the highest rank down.
        in_run = sorted(final, key=lambda g: (-final[g], self._numbers[g]))
        at_end = [g for g in arrays if g not in final]
        self.packs = [*_packs(in_run, pack_size), *_packs(at_end, pack_size)]
        self._pack = {g: i for i, pack in enumerate(self.packs) for g in pack}
        self._before = {g: [(plan, plan.last(g)) for plan in before] for g in arrays}

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
        while end < len(self.packs) and all(self.left.get(g) == 0 and self._is_first(g) for g in self.packs[end]):
            end += 1
        return self.packs[self.sent : end]

    def _is_first(self, g: NdArray) -> bool:
        """Whether no pack of the plans before has the gradient and has yet to go."""
        return all(pack < plan.sent for plan, pack in self._before[g])

    def last(self, g: NdArray) -> int:
        """The last pack that has a part of the gradient; -1: none has."""
        return max((self._pack[own] for own in self.places.meeting(g)), default=-1)

    def rest(self) -> list[Pack]:
        """All packs that have not gone."""
        return self.packs[self.sent :]


def _functions(root: Function | None) -> list[Function]:
    """Those of a run, by the first one that is done."""
    found: list[Function] = []
    if root is not None:
        root.outputs[0].visit(found.append)
    return found


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


class _Exchange:
    """One run of `all_reduce_callback`; 0 is one of which a callback only hands on what it is told of functions."""

    def __init__(self, run: int, sender: Sender) -> None:
        self.run, self.sender = run, sender
        self.calls = 0
        """How many times the run has the callback, and has not come to its end."""
        self.plan: RunPlan | None = None

    def start(self, root: Function | None, data: Callable[[], list[NdArray]], pack_size: int) -> RunPlan:
        """The plan, which is made when the run's first function is over."""
        if self.plan is None:
            self.plan = RunPlan(root, data(), pack_size, self.sender.plans)
            self.sender.check(self.plan.described())
            self.sender.plans.append(self.plan)
        return self.plan

    def send(self, plan: RunPlan, packs: Sequence[Pack]) -> None:
        for pack in packs:
            plan.sent += 1
            self.sender.send(pack, plan.sent, len(plan.packs))


class GradientExchange:
    """The state of `all_reduce_callback`: the runs that go on, each within the one before."""

    def __init__(self, begin: Callable[[int], Sender], here: str, data: Sequence[NdArray], pack_size: int) -> None:
        self._begin, self._here, self._given, self._pack_size = begin, here, tuple(data), pack_size
        self._open: list[_Exchange] = []
        self._data()

    def _data(self) -> list[NdArray]:
        """What is summed: which arrays share memory is known from run to run."""
        return distinct(self._here, "data", self._given)

    def begin_run(self, run: int) -> None:
        if not self._open or self._open[-1].run != run:
            self._open.append(_Exchange(run, self._begin(run)))
        self._open[-1].calls += 1

    def finish_function(self, f: Function) -> None:
        last = self._open[-1] if self._open else None
        if last is not None and not last.run and not (last.plan and last.plan.goes_on(f)):
            self.fail_run(0, "another run has begun")
        last = self._last()
        plan = last.start(f, self._data, self._pack_size)
        plan.finished(f)
        last.send(plan, plan.ready())
        last.sender.advance()

    def finish_run(self) -> None:
        last = self._last()
        last.calls -= 1
        if last.calls > 0:
            return
        plan = last.start(None, self._data, self._pack_size)
        last.send(plan, plan.rest())
        last.sender.finish()
        if not last.run:
            self.close_run(0)

    def close_run(self, run: int) -> None:
        if self._open and self._open[-1].run == run:
            self._open.pop().sender.close()

    def fail_run(self, run: int, why: str) -> None:
        if self._open and self._open[-1].run == run:
            self._open.pop().sender.fail(why)

    def _last(self) -> _Exchange:
        if not self._open:
            self._open.append(_Exchange(0, self._begin(0)))
        return self._open[-1]
