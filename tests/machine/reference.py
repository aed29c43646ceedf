"""The reference: a list of nodes with NumPy values that does nothing clever.

Forward computes every function behind the roots, in the order in which they need each other; backward adds up textbook
derivatives from the end to the start. It knows need_grad, persistent, recompute, handles and clear flags only to say
what must be there to be read (`Cell.kept`), which a read may refuse (an error), and which nothing is known about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .operations import OPERATIONS

Array = Any  # np.ndarray
VIEWS = ("reshape", "identity")
KINKED = ("relu", "leaky_relu", "max")  # backward may go by what forward found of the input, or by the input


class Cell:
    """An array: data or gradient, which several variables may share (unlinked, rewired, `w.grad = h.grad`)."""

    def __init__(self, d: Array) -> None:
        self.d = d
        self.kept = True  # False: it is computed again, or an error; never another number
        self.known = True  # False: nothing is said about it
        self.stamp = 0  # when it was written
        self.lent = 0  # when memory of it was lent that can be written
        self.lost = 0  # when it was last not kept, or had other memory
        self.typed = 0  # when it last may have had another type, and with it other memory
        self.reshaped = 0  # when it last had another shape: what was cut out of it then is apart
        self.wrote = 0  # when the script wrote it, if no run has made it since
        self.graded = 0  # when it was last written, or dropped by backward, as a gradient
        self.ran = -1  # when a run made the data
        self.renewed = 0  # when a run made something else than the one before
        self.begun = -1  # when the oldest data was made that this was computed from
        self.maker: Fn | None = None  # what computed it in the last run

    def keep(self, kept: bool, stamp: int) -> None:
        self.kept = kept
        self.lost = self.lost if kept else stamp


class Fn:
    """A function applied."""

    def __init__(self, op: str, x: Sequence[Var], args: dict[str, Any]) -> None:
        self.op, self.x, self.args = op, list(x), args
        self.y: list[Var] = []
        self.stamp = -1  # when it last ran; -1: never
        self.made = 0  # when it was made
        self.uid = ""  # the tag that the engine's function bears

    def compute(self) -> list[Array]:
        return [np.array(y, dtype=float) for y in OPERATIONS[self.op].forward(*(v.cell.d for v in self.x), **self.args)]


class Var:
    """A variable: leaf, or output of a function."""

    def __init__(self, d: Array, need: bool | None = None, parent: Fn | None = None) -> None:
        self.cell, self.grad, self.need, self.parent = Cell(d), Cell(np.zeros(d.shape)), need, parent
        self.persistent = self.recompute = False
        self.need_stamp = self.moved = 0  # when need_grad, and the history or the array, were changed
        self.core = object()  # what it has in common with its unlinked copies
        self.ghost = False  # it lost its place by rewire_on, and shares an array with the one that has it now

    @property
    def shape(self) -> tuple[int, ...]:
        return self.cell.d.shape


def behind(roots: Iterable[Var]) -> list[Fn]:
    """All functions behind the roots, those first that others need."""
    order: list[Fn] = []
    seen: set[int] = set()

    def visit(v: Var) -> None:
        f = v.parent
        if f is None or id(f) in seen:
            return
        seen.add(id(f))
        for x in f.x:
            visit(x)
        order.append(f)

    for v in roots:
        visit(v)
    return order


def make(op: str, *x: Var, **args: Any) -> Any:
    """Applies an operation and computes it at once; several outputs come as a list."""
    f = Fn(op, x, args)
    f.y = [Var(d, parent=f) for d in f.compute()]
    return f.y if op == "split" else f.y[0]


def needs(v: Var, memo: dict[int, bool]) -> bool:
    """need_grad: what was set, or whether an input of the parent needs one."""
    if id(v) not in memo:
        inherited = v.parent is not None and any([needs(x, memo) for x in v.parent.x])
        memo[id(v)] = inherited if v.need is None else v.need
    return memo[id(v)]


def reverse(seeds: Sequence[tuple[Var, Var]]) -> dict[int, Var]:
    """The gradient of each variable behind the seeded ones (by `id`), as variables."""
    grads: dict[int, Var] = {}
    memo: dict[int, bool] = {}

    def add(v: Var, g: Var | None) -> None:
        if g is not None:
            grads[id(v)] = make("add2", grads[id(v)], g) if id(v) in grads else g

    for y, seed in seeds:
        add(y, seed)
    for f in reversed(behind([y for y, _ in seeds])):
        if not any(id(y) in grads for y in f.y):
            continue
        if f.op == "sink":  # where an input is no leaf, what the script wrote is there already
            for x in {id(x): x for x in f.x if needs(x, memo)}.values():
                add(x, seed_of(x, f.args["one_input_grad"]))
            continue
        gy = [grads.get(id(y)) or Var(np.zeros(y.shape)) for y in f.y]
        for x, g in zip(f.x, OPERATIONS[f.op].derivative(make, gy, f.x, f.y, **f.args), strict=True):
            if needs(x, memo):
                add(x, g)
    return grads


def seed_of(x: Var, one: bool) -> Var | None:
    """The gradient that a sink gives an input: 1, or what is there (a leaf's is added to anyway)."""
    if one:
        return Var(np.ones(x.shape))
    return Var(x.grad.d.copy()) if x.parent else None


def spare(v: Var) -> Var:
    """What the parent of a variable has in its place afterwards: nothing is known until it runs."""
    found = Var(np.zeros(v.shape), parent=v.parent)
    found.cell.known = found.grad.known = False
    return found


class Reference:
    """Runs over `Var`s; `clock` counts everything that happens."""

    def __init__(self) -> None:
        self.clock = 1

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def write(self, v: Var, d: Array) -> None:
        if v.shape == d.shape:
            v.cell.d[...] = d
        else:
            v.cell.d, v.grad.d, v.grad.known = d, np.zeros(d.shape), False
            v.cell.reshaped = v.grad.reshaped = self.tick()
        v.cell.kept = v.cell.known = True
        v.cell.stamp = v.cell.wrote = self.tick()

    def evaluate(self, roots: Sequence[Var]) -> dict[int, Array]:
        """What a forward run would give each variable (by `id`); nothing changes."""
        found: dict[int, Array] = {}
        for f in behind(roots):
            x = [found.get(id(v), v.cell.d) for v in f.x]
            y = OPERATIONS[f.op].forward(*x, **f.args)
            found.update({id(v): np.array(d, dtype=float) for v, d in zip(f.y, y, strict=True)})
        return found

    def forward(self, roots: Sequence[Var], held: set[int], clear_buffer: bool, clear_no_need_grad: bool) -> None:
        """Computes all behind the roots. `held`: ids of the cells that can be observed."""
        memo: dict[int, bool] = {}
        found, stamp = self.evaluate(roots), self.tick()
        stay = {id(v) for v in roots}
        order = behind(roots)
        read = {id(x) for f in order for x in f.x}
        for f in order:
            f.stamp = stamp
            for y in f.y:
                if y.cell.ran < 0 or not y.cell.known or not np.array_equal(y.cell.d, found[id(y)]):
                    y.cell.renewed = stamp
                self.write(y, found[id(y)])
                if f.op in VIEWS and max(f.x[0].cell.typed, f.x[0].moved) > y.cell.ran:
                    y.cell.typed = stamp  # they take the type of what they read
                y.cell.ran = y.cell.begun = y.cell.stamp = stamp
                y.cell.wrote = 0
                y.cell.maker = f
                clear = clear_buffer or y.recompute or clear_no_need_grad and not needs(y, memo)
                safe = id(y.cell) in held and not (clear and id(y) in read)
                y.cell.keep(safe or y.persistent or id(y) in stay, stamp)
        self.clock = stamp

    def ran_at_once(self, f: Fn) -> None:
        """A function ran where it was made, by itself."""
        f.stamp = self.tick()
        begun = min([f.stamp, *(x.cell.begun for x in f.x if x.cell.maker)])
        for y, d in zip(f.y, f.compute(), strict=True):
            y.cell.d, y.cell.stamp, y.cell.ran, y.cell.begun = d, f.stamp, f.stamp, begun
            y.cell.maker = f

    def backward(self, root: Var, seed: Array, held: set[int], clear: bool) -> None:
        """Adds gradients to leaves, sets those of intermediate variables."""
        grads, stamp = reverse([(root, Var(seed))]), self.tick()
        order = behind([root])
        if root.parent.op == "sink" and root.parent.args["one_input_grad"]:
            for x in root.parent.x:  # its gradient is 1, whatever was there
                x.grad.d = np.zeros(x.shape) if id(x) in grads else x.grad.d
        made = {id(y): y for f in order for y in f.y if y is not root}
        leaves = {id(x): x for f in order for x in f.x if id(x) not in made}
        for i, v in leaves.items():
            if i in grads:
                v.grad.d = np.asarray(v.grad.d + grads[i].cell.d)
                v.grad.stamp = v.grad.graded = stamp
        for i, v in made.items():
            v.grad.graded = stamp
            if i in grads:
                v.grad.d, v.grad.stamp = grads[i].cell.d.copy(), stamp
                v.grad.keep(id(v.grad) in held or v.persistent, stamp)
                v.grad.known = v.grad.maker is None  # else a function of nn.grad makes it, and may do so again
                v.grad.maker = None
            elif v.parent and any(id(y) in grads for y in v.parent.y):
                v.grad.known = False  # an output that no function reads: NNabla writes zeros, nnrs leaves it
            if clear and not v.persistent:
                v.cell.known &= not v.cell.wrote  # what the script wrote, or what the function makes
                v.cell.keep(False, stamp)
                v.grad.keep(False, stamp)

    def cut(self, v: Var) -> None:
        """The variable has no history any more, nor what it inherited."""
        f = v.parent
        f.y[f.y.index(v)] = spare(v)
        v.parent, v.need_stamp = None, self.tick()
        v.moved = v.need_stamp

    def rewire(self, v: Var, w: Var) -> None:
        """v takes the arrays and the history of w; unlinked copies of v keep theirs."""
        if v.parent is not None:
            f = v.parent
            f.y[f.y.index(v)] = spare(v)
        v.need = w.need
        v.parent, v.need_stamp = w.parent, self.tick()
        v.cell, v.grad, v.moved, v.core = w.cell, w.grad, v.need_stamp, object()
        w.ghost, w.moved, w.need_stamp = True, v.need_stamp, v.need_stamp
        w.parent.y[w.parent.y.index(w)] = v
        w.parent = None

    def is_fresh(self, roots: Sequence[Var], written: bool = False) -> bool:
        """True if everything behind the roots ran since anything that it depends on changed; or was but `written`."""
        for f in behind(roots):
            if f.stamp < 0 or any(
                max(x.need_stamp, x.moved, x.cell.reshaped) > f.stamp or not x.cell.known for x in f.x
            ):
                return False
            if any(y.need_stamp > f.stamp or not y.cell.known for y in f.y):
                return False
            changed = any(x.cell.stamp > f.stamp for x in f.x) or any(y.cell.stamp != f.stamp for y in f.y)
            if changed and (not written or f.op in KINKED):
                return False
        return True

    def is_settled(self, roots: Sequence[Var]) -> bool:
        """True if no need_grad behind the roots changed since the function that reads it was made or ran."""
        latest: dict[int, int] = {}
        for f in behind(roots):
            when = max([v.need_stamp for v in f.y] + [max(v.need_stamp, latest.get(id(v), 0)) for v in f.x], default=0)
            if when > max(f.made, f.stamp):
                return False
            latest.update({id(y): when for y in f.y})
        return True

    def is_tidy(self, roots: Sequence[Var]) -> bool:
        """True if no two variables of the run share an array."""
        order = behind(roots)
        made = [y.cell for f in order for y in f.y]
        outputs = {id(c) for c in made}
        variables = {id(y) for f in order for y in f.y}
        leaves = {id(x.cell) for f in order for x in f.x if id(x) not in variables}
        return len(outputs) == len(made) and not outputs & leaves
