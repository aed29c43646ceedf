"""Forward, backward and nn.grad of the machine, and what hooks see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import nnrs as nn

from . import engine
from .changes import Changes
from .machine import Machine, Mismatch, Skip, is_sink, modes
from .operations import Stop
from .reference import Cell, Fn, Var, behind, make, needs, reverse


class Runner(Changes):
    """The machine with its runs."""

    def do_forward(self, roots: list[int], clear_buffer: bool, clear_no_need_grad: bool, hooks: str) -> None:
        pairs = [self.get(i) for i in roots]
        twins = [r for _, r in pairs]
        if not self.is_sound(twins) or all(r.parent is None for r in twins):
            raise Skip
        order = behind(twins)
        self.together |= len(roots) > 1
        flags = {"clear_buffer": clear_buffer, "clear_no_need_grad": clear_no_need_grad}
        expected = self.expected(twins)
        drawn = any(id(f) in self.random for f in [*order, *behind(self.sources)])
        watch = Watch(self, order, None if drawn else expected, hooks)
        watch.roots = len(roots)
        try:
            watch.run(lambda **kw: run_forward([v for v, _ in pairs], flags, kw))
        except nn.Error as e:
            if expected is None:
                self.repair(roots, order)
                return
            self.refuse(e, any(self.may_refuse(x) for x in leaves(order)), "forward")
        if expected is None:
            raise Mismatch("forward: shapes do not fit, but it is no error")
        watch.finish(set(order))
        self.settle(order, twins, bool(clear_buffer), bool(clear_no_need_grad))
        self.forget_sources(order)

    def settle(self, order: list[Fn], twins: list[Var], *clear: bool) -> None:
        """The reference runs; dropout and random numbers are those that nnrs drew."""
        self.adopt(list({id(f): f for f in [*order, *behind(self.sources)]}.values()))
        self.reference.forward(twins, self.held(), *clear)

    def forget_sources(self, order: list[Fn]) -> None:
        """The gradient graph of nnrs may run more of itself, and of the graph that it is the gradient of."""
        if all(f.uid for f in order):
            return
        ran = set(order)
        results = [self.vars[i][1] for i in self.frozen if i in self.vars]
        for f in behind([*self.sources, *results]):
            if f not in ran:
                f.stamp = -1
                for y in f.y:
                    y.cell.known = y.grad.known = False
        made = [y.cell for f in ran for y in f.y]
        for cell in self.bound:
            cell.known &= any(cell is c for c in made)

    def is_sound(self, twins: Sequence[Var]) -> bool:
        """True if a run behind these is well defined: known leaves, no array in two places."""
        if not self.reference.is_tidy(twins):
            return False
        return all(x.cell.known and not x.ghost for x in leaves(behind(twins)))

    def expected(self, twins: Sequence[Var]) -> dict[int, Any] | None:
        """What forward gives each variable; None if shapes do not fit."""
        try:
            return self.reference.evaluate(twins)
        except (ValueError, IndexError):
            return None

    def repair(self, roots: list[int], order: list[Fn]) -> None:
        """After shapes that did not fit: with the old ones the graph runs again."""
        ids, n = self.resets.pop() if self.resets else ([], 0)
        if not ids or any(i not in self.vars for i in ids):
            raise Stop
        for f in order:
            f.stamp = -1
            for y in f.y:
                y.cell.known = y.grad.known = False
                y.cell.reshaped = y.grad.reshaped = self.reference.tick()
        try:
            self.do_reset(ids, n, 1)
            if self.expected([self.vars[i][1] for i in roots]) is None:
                raise Stop
            self.do_forward(roots, False, False, "none")
        except Skip as e:
            raise Stop from e

    def do_backward(self, i: int, seed: Any, clear_buffer: bool, hooks: str) -> None:
        v, r = self.get(i)
        ready = r.parent is not None and self.is_sound([r]) and self.reference.is_fresh([r], written=True)
        if not ready or not needs(r, {}) or not v.need_grad:  # a gradient graph of ours may have other needs
            raise Skip
        order = behind([r])
        memo: dict[int, bool] = {}
        if any(needs(x, memo) and not (x.grad.kept and x.grad.known) for x in leaves(order)):
            raise Skip
        if not self.is_seeded(order, r):
            raise Skip
        given, start = self.seed(seed, r)
        grads = reverse([(r, Var(start))])
        reached = {f for f in order if any(id(y) in grads for y in f.y) and any(needs(x, memo) for x in f.x)}
        watch = Watch(self, order, {k: g.cell.d for k, g in grads.items()}, hooks, backward=True)
        try:
            watch.run(lambda **kw: v.backward(given, clear_buffer=clear_buffer, **kw))
        except nn.Error as e:
            gone = not self.reference.is_fresh([r]) or any(self.may_refuse(x) for x in all_of([r]))
            self.refuse(e, gone or (seed == "own" and not r.grad.kept), "backward")
        watch.finish(reached)
        self.reference.backward(r, start, self.held(), clear_buffer)
        self.forget_sources(order)

    def is_seeded(self, order: list[Fn], r: Var) -> bool:
        """True if no two variables share a gradient, and those that a sink takes over are there."""
        every = list({id(x): x for f in order for x in f.x + f.y}.values())
        cells = {id(c) for x in every for c in (x.cell, x.grad)}
        if len(cells) < len({id(x.cell) for x in every}) + len(every):
            return False
        held = self.held()
        return not is_sink(r) or all(x.grad.kept and x.grad.known and id(x.grad) in held for x in r.parent.x)

    def seed(self, seed: Any, r: Var) -> tuple[Any, Any]:
        """The gradient to start with, for nnrs and for the reference."""
        if seed == "own":
            if not r.grad.known or self.frozen:
                raise Skip
            return None, r.grad.d
        if isinstance(seed, tuple):  # ("array", seed of the numbers)
            d = engine.values(seed[1], r.shape)
            return nn.NdArray.from_numpy_array(d), d
        return seed, np.full(r.shape, float(seed))

    def do_grad(self, new: list[int], y: list[int], x: list[int], seed: Any, mode: str, bind: Any = False) -> None:
        outs, ins = [self.get(i) for i in y], [self.get(i) for i in x]
        twins = [r for _, r in outs]
        if (
            any(r.parent is None or is_sink(r) for r in twins)
            or not self.reference.is_settled(twins)
            or not self.is_sound(twins)
        ):
            raise Skip
        if mode == "auto" and (not self.reference.is_fresh(twins) or any(not r.cell.kept for r in all_of(twins))):
            raise Skip
        shapes = self.expected(twins)
        if shapes is None or any(v.shape != shapes.get(id(v), v.cell.d).shape for v in all_of(twins)):
            raise Skip
        if any(not needs(r, {}) for r in twins + [r for _, r in ins]):
            raise Skip
        cells = {id(r): id(r.cell) for r in [*all_of(twins), *(r for _, r in ins)]}
        if len(set(cells.values())) < len(cells):  # unlinked copies: NNabla and nnrs take them for one variable
            raise Skip
        before = set(behind(twins))
        start = [Var(np.full(r.shape, 1.0 if seed is None else float(seed))) for r in twins]
        found = reverse(list(zip(twins, start, strict=True)))
        if len({id(r) for _, r in ins}) < len(ins):
            raise Skip
        if bind and any(id(r) not in found or found[id(r)].parent is None for _, r in ins):  # the seed itself
            raise Skip
        self.sources += [*twins, *all_of(twins)]
        with modes(mode, False):
            got = nn.grad([v for v, _ in outs], [v for v, _ in ins], seed, bind_grad_output=bind)
        for v, r in outs:
            v.persistent = r.persistent = True
        for i, (_, r), g in zip(new, ins, got, strict=True):
            s = found.get(id(r))
            if g is None and s is not None:
                raise Mismatch(f"nn.grad gives {g}, expected {s}")
            same = [u for u in self.every() if u.core is r.core]
            if bind:  # another array: that of the result, where it is one of a graph (below)
                cell = Cell(np.zeros(r.shape))
                cell.known = False
                for u in same:
                    u.grad = cell
            if g is None or s is None or g.parent is None or s.parent is None:
                continue
            self.vars[i] = g, make("identity", s)  # one of its own: two results may be the same
            self.frozen.add(i)
            if bind:
                self.bound.append(self.vars[i][1].cell)
                for u in same:
                    u.grad = self.bound[-1]
        self.frozen.add(-1)
        self.enter_grads([f for f in behind([s for s in found.values()]) if f not in before], mode)

    def enter_grads(self, made: list[Fn], mode: str) -> None:
        order = behind([self.vars[i][1] for i in self.frozen if i in self.vars])
        for f in {id(f): f for f in [*made, *order] if not f.uid and f.stamp < 0 and not f.made}.values():
            f.made = self.reference.clock
        for f in order:
            if f.uid or f.stamp >= 0:
                continue
            if mode == "auto":
                self.reference.ran_at_once(f)
                continue
            for y in f.y:
                y.cell.d[...] = 0
                y.cell.known = False


def leaves(order: Sequence[Fn]) -> list[Var]:
    """What the functions read and none of them makes."""
    made = {id(y) for f in order for y in f.y}
    return list({id(x): x for f in order for x in f.x if id(x) not in made}.values())


def all_of(twins: Sequence[Var]) -> list[Var]:
    """All variables behind some."""
    return list({id(v): v for f in behind(twins) for v in f.x + f.y}.values())


def run_forward(roots: list[nn.Variable], flags: dict[str, bool], hooks: dict[str, Any]) -> None:
    if len(roots) == 1:
        roots[0].forward(**flags, **hooks)
    else:
        nn.forward_all(roots, **flags, **hooks)


class Watch:
    """The hooks of a run: each function once, in the order of ranks, with the values of the reference.

    `expected`: data (forward) or gradients (backward) by `id` of the variable; None: values are not compared.
    """

    def __init__(
        self, machine: Machine, order: list[Fn], expected: dict[int, Any] | None, hooks: str, backward: bool = False
    ) -> None:
        self.machine, self.order, self.expected, self.hooks, self.backward = machine, order, expected, hooks, backward
        self.seen: list[tuple[str, int]] = []
        self.after: list[str] = []
        self.roots = 1

    def run(self, go: Callable[..., None]) -> None:
        if self.hooks == "none":
            go()
        elif self.hooks == "global":
            nn.set_function_pre_hook("machine", self.pre)
            nn.set_function_post_hook("machine", self.post)
            try:
                go()
            finally:
                nn.unset_function_pre_hook("machine")
                nn.unset_function_post_hook("machine")
        else:
            go(function_pre_hook=self.pre, function_post_hook=self.post)

    def pre(self, f: Any) -> None:
        uid = f.tags.get("machine", "")
        self.seen.append((uid, f.rank))
        if self.backward:
            self.compare(uid, f, "outputs", "g")
        else:
            self.compare(uid, f, "inputs", "d")

    def post(self, f: Any) -> None:
        uid = f.tags.get("machine", "")
        self.after.append(uid)
        if not self.backward:
            self.compare(uid, f, "inputs", "d")
            self.compare(uid, f, "outputs", "d")

    def compare(self, uid: str, f: Any, side: str, what: str) -> None:
        if self.hooks != "values" or self.expected is None or uid not in self.machine.functions:
            return
        twin = self.machine.functions[uid]
        for v, r in zip(getattr(f, side), twin.x if side == "inputs" else twin.y, strict=f.info.type_name != "Sink"):
            if id(r) in self.expected:
                name = f"{side} .{what} in the hook of {f.name}"
                self.machine.close(name, np.array(getattr(v, what)), self.expected[id(r)])

    def finish(self, functions: set[Fn]) -> None:
        """What the hooks saw is what should have run."""
        if self.hooks == "none":
            return
        ranks = [rank for _, rank in self.seen]
        # Several roots run one after the other; backward goes by units, so that sums are the same bits.
        if ranks != sorted(ranks) and not self.backward and self.roots == 1:
            raise Mismatch(f"ranks in the order of running: {ranks}")
        if [uid for uid, _ in self.seen] != self.after:
            raise Mismatch(f"hooks before {self.seen} and after {self.after}")
        named = [uid for uid, _ in self.seen if uid]
        expected = [f.uid for f in self.order if f in functions and f.uid]
        if sorted(named) != sorted(expected) and not self.machine.frozen:
            raise Mismatch(f"functions that ran: {named}, expected {expected}")
        self.check_order(named)

    def check_order(self, named: list[str]) -> None:
        place = {uid: k for k, uid in enumerate(named)}
        for f in self.order:
            for g in (x.parent for x in f.x):
                if g is None or f.uid not in place or g.uid not in place:
                    continue
                if (place[g.uid] > place[f.uid]) != self.backward:
                    raise Mismatch(f"order of running: {named}")
