"""What the machine changes between runs: data, flags, shapes, history, handles."""

from __future__ import annotations

import numpy as np

import nnrs as nn

from . import engine
from .handles import Handles
from .machine import Mismatch, Skip, is_sink
from .reference import Var, behind, needs


class Changes(Handles):
    """The machine with its changes."""

    def do_write(self, i: int, seed: int, how: str) -> None:
        v, r = self.get(i)
        if i in self.frozen or i in self.random.values():
            raise Skip
        if r.cell.ran < 0:  # its array has no type yet
            raise Skip
        d, dtype = engine.values(seed, r.shape), v.data.dtype if r.cell.kept else None
        if how == "view" and r.parent is None and r.cell.kept:
            v.d[...] = d
        else:
            v.d = d
        self.reference.write(r, np.array(d, v.data.dtype).astype(float))  # a fresh array is float32
        if v.data.dtype != dtype:
            r.cell.typed = self.reference.clock

    def do_write_grad(self, i: int, value: float) -> None:
        v, r = self.get(i)
        if r.grad.d.shape != r.shape:  # another variable gave the gradient that they share another shape
            raise Skip
        if value == 0 and r.grad.kept:
            v.grad.zero()
        else:
            v.g = value
        r.grad.d = np.full(r.shape, float(value))
        r.grad.kept = r.grad.known = True
        r.grad.graded = self.reference.tick()

    def do_need(self, i: int, value: bool | None) -> None:
        v, r = self.get(i)
        if i in self.frozen or (value is None and r.parent is None) or value == r.need:
            raise Skip
        v.need_grad, r.need = value, None if value is None else bool(value)
        r.need_stamp = self.reference.tick()

    def do_persistent(self, i: int, value: bool) -> None:
        v, r = self.get(i)
        v.persistent, r.persistent = value, bool(value)

    def do_recompute(self, i: int, value: bool) -> None:
        v, r = self.get(i)
        if r.parent is None or i in self.frozen or i in self.random.values():
            raise Skip
        v.recompute, r.recompute = value, bool(value)

    def do_unlink(self, new: int, i: int, need: bool | None) -> None:
        v, r = self.get(i)
        if i in self.frozen or not self.reference.is_settled([r]):
            raise Skip
        if r.ghost or is_sink(r):
            raise Skip
        u = Var(r.cell.d, needs(r, {}) if need is None else need)
        u.cell, u.grad, u.core = r.cell, r.grad, r.core
        self.vars[new] = v.get_unlinked_variable(need_grad=need), u

    def is_dropped(self, r: Var) -> bool:
        """True if dropout reads it: the mask is known by what is not 0, and it must not come to have zeros."""
        return any(f.op == "dropout" and r in f.x for f in self.functions.values())

    def do_cut(self, i: int) -> None:
        v, r = self.get(i)
        f = r.parent
        if f is None or i in self.frozen or not self.reference.is_settled([r]) or id(f) in self.random:
            raise Skip
        if f in behind(self.sources) or self.is_dropped(r):  # a gradient graph of ours may read other variables
            raise Skip
        v.parent = None
        self.together = True
        self.reference.cut(r)

    def do_rewire(self, i: int, other: int) -> None:
        (v, r), (w, s) = self.get(i), self.get(other)
        if {i, other} & (self.frozen | set(self.random.values())) or not self.reference.is_settled([r, s]):
            raise Skip
        if {r.parent, s.parent} & set(behind(self.sources)):  # a gradient graph of ours may read other variables
            raise Skip
        if is_sink(r) or is_sink(s):
            raise Skip
        if r.core is s.core or r.cell is s.cell or r.ghost or s.ghost or self.is_dropped(r):
            raise Skip
        possible = s.parent is not None and r.shape == s.shape and not any(r in f.x for f in behind([s]))
        try:
            v.rewire_on(w)
        except nn.Error as e:
            if possible and not self.frozen:  # a gradient graph of ours may need less
                raise Mismatch(f"rewire_on: {e}") from e
            raise Skip from e
        if not possible:
            raise Mismatch("rewire_on should be an error")
        self.reference.rewire(r, s)
        self.together = True

    def do_reset(self, ids: list[int], n: int, seed: int) -> None:
        """Another first axis for some leaves, which share their arrays with no other variable."""
        pairs = [self.get(i) for i in ids]
        if self.frozen or self.views or any(r.parent is not None or not r.shape for _, r in pairs):
            raise Skip
        if any(self.is_shared(r) for _, r in pairs) or any(a.how != "plain" for a in self.arrays.values()):
            raise Skip
        if len({r.shape[0] for _, r in pairs}) == 1:
            self.resets.append((ids, pairs[0][1].shape[0]))
        for v, r in pairs:
            shape, dtype = (n, *r.shape[1:]), v.data.dtype
            v.reset_shape(shape, True)
            d = engine.values(seed, shape)
            v.d = d
            v.g = 0
            self.reference.write(r, d)
            if v.data.dtype != dtype:
                r.cell.typed = self.reference.clock
            r.grad.d = np.zeros(shape)
            r.grad.kept = r.grad.known = True

    def do_drop(self, i: int) -> None:
        r = self.get(i)[1]
        if i in self.random.values():
            raise Skip
        del self.vars[i]
        is_read = any(r in f.x for f in behind(self.every()))
        if r.parent is not None and not is_read and all(v is not r for _, v in self.vars.values()):
            r.need, r.persistent, r.recompute = None, False, False  # what comes back is another variable
        self.check_nodes()
