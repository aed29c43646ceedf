"""Does steps with nnrs and with the reference, and holds one against the other."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np

import nnrs as nn
from nnrs.ext_utils import get_extension_context

from . import engine
from .operations import Stop
from .reference import VIEWS, Cell, Fn, Reference, Var, behind, make, needs

Step = tuple[str, dict[str, Any]]


class Mismatch(Exception):
    """nnrs does not do what the reference does."""


class Skip(Exception):
    """The step makes no sense here: nothing was done."""


def alive() -> tuple[int, int, int]:
    return (*nn._core.live_nodes(), nn.memory.stats().live)


@contextlib.contextmanager
def modes(mode: str, mark: bool) -> Iterator[None]:
    """Static, auto_forward, or auto_forward without history; with or without marks to recompute."""
    with nn.auto_forward(mode != "static"), nn.no_grad(mode == "no_grad"), nn.recompute(mark):
        yield


def is_sink(r: Var) -> bool:
    return r.parent is not None and r.parent.op == "sink"


class Machine:
    """The variables that are held, each with its twin of the reference."""

    def __init__(self, double: bool) -> None:
        self.double = double
        self.tolerance = 1e-9 if double else 1e-3
        self.vars: dict[int, tuple[nn.Variable, Var]] = {}
        self.reference = Reference()
        self.arrays: dict[int, Any] = {}  # NdArrays and views of intermediate values that are held
        self.views: list[tuple[Any, Cell]] = []  # of leaves, which can be written
        self.random: dict[int, int] = {}  # id of Fn -> number of its output, which is always held
        self.functions: dict[str, Fn] = {}
        self.frozen: set[int] = set()  # results of nn.grad: their twins have another history
        self.together = False  # forward_all, surgery, sinks: more may be alive until a plan is replaced
        self.dynamic = False  # whether anything ran at once
        self.resets: list[tuple[list[int], int]] = []  # leaves that had another first axis before
        self.sources: list[Var] = []  # what nn.grad was asked for the gradient of
        self.bound: list[Cell] = []  # gradients that are the data of a gradient graph
        self.before = alive()

    # What steps are made of

    def do(self, step: Step) -> bool:
        """Does a step; False if it makes no sense."""
        try:
            with np.errstate(all="ignore"):
                getattr(self, f"do_{step[0]}")(**step[1])
        except Skip:
            return False
        return True

    def get(self, i: int) -> tuple[nn.Variable, Var]:
        if i not in self.vars:
            raise Skip
        return self.vars[i]

    def held(self) -> set[int]:
        """The arrays that can be observed, by `id` of their cells."""
        cells = [c for _, r in self.vars.values() for c in (r.cell, r.grad)]
        return {id(c) for c in [*cells, *(a.cell for a in self.arrays.values() if not a.is_apart())]}

    def close(self, what: str, actual: Any, expected: Any) -> None:
        actual = np.asarray(actual)
        if actual.shape != expected.shape:
            raise Mismatch(f"{what}: shape {actual.shape}, expected {expected.shape}")
        if not np.all(np.isfinite(expected)) or np.max(np.abs(expected), initial=0) > 1e4:
            raise Stop
        scale = self.tolerance * (1 + np.max(np.abs(expected), initial=0))
        if not np.allclose(actual, expected, rtol=0, atol=scale):
            raise Mismatch(f"{what}: {actual.tolist()}, expected {expected.tolist()}")

    # Leaves and functions

    def do_leaf(self, new: int, shape: tuple[int, ...], seed: int, need: bool) -> None:
        d = engine.values(seed, shape)
        v = nn.Variable.from_numpy_array(d if self.double else d.astype("float32"), need_grad=need)
        self.vars[new] = v, Var(d, need)
        self.vars[new][1].cell.ran = 0

    def do_apply(
        self, new: list[int], op: str, x: list[int], args: dict[str, Any], inplace: bool, mode: str, mark: bool
    ) -> None:
        given = [self.get(i) for i in x]
        twins = [r for _, r in given]
        if not new or any(is_sink(r) for r in twins):  # split of nothing
            raise Skip
        if mode != "static" and any(not r.cell.known or r.ghost for r in twins):
            raise Skip
        if mode != "static" and not self.reference.is_settled(twins):
            raise Skip
        if op == "dropout" and mode != "static" and not twins[0].cell.d.all():
            raise Skip  # the mask is what is not 0
        if "cell" in args:
            args = args | {"cell": [np.zeros(args.get("shape") or twins[0].shape), 0]}  # what was drawn, and when
        f = self.twin(op, twins, args)
        try:
            with modes(mode, mark):
                made = engine.call(op, [v for v, _ in given], args, inplace)
        except nn.Error as e:
            self.refuse(e, mode != "static" and any(self.may_refuse(r) for r in twins), op)
        self.together |= op == "sink"
        if op in ("rand", "dropout"):
            self.random[id(f)] = new[0]
        self.enter(new, made, f, mode, mark)

    def twin(self, op: str, x: list[Var], args: dict[str, Any]) -> Fn:
        try:
            y = make(op, *x, **args)
        except (ValueError, IndexError) as e:  # e.g. after a shrunken reset_shape
            raise Skip from e
        return (y[0] if isinstance(y, list) else y).parent

    def enter(self, new: list[int], made: list[nn.Variable], f: Fn, mode: str, mark: bool) -> None:
        """Puts the outputs of a new function beside their twins."""
        if len(made) != len(f.y):
            raise Mismatch(f"{len(made)} outputs, expected {len(f.y)}")
        for i, v, r in zip(new, made, f.y, strict=True):
            self.vars[i] = v, r
            r.recompute = mark
        f.uid = str(new[0])
        self.functions[f.uid] = f
        if made[0].parent is not None:
            made[0].parent.tags = {"machine": f.uid}
        if mode == "static":
            for r in f.y:
                r.cell.d[...] = 0
                r.cell.known = f.op not in VIEWS
            return
        self.dynamic = True
        self.adopt([f])
        self.reference.ran_at_once(f)
        for r in f.y:
            r.cell.kept = not mark
            if mode == "no_grad" or not needs(r, {}):  # nnrs keeps no history then
                r.parent = None
                r.need = False if mode == "no_grad" else None

    def adopt(self, order: list[Fn]) -> None:
        """Takes the random numbers that were drawn over into the reference."""
        for f in order:
            if f.op in ("rand", "dropout"):
                d = self.drawn(self.vars[self.random[id(f)]][0])
                d = np.where(d != 0, 2.0, 0.0) if f.op == "dropout" else d
                f.args["cell"][:] = d, self.reference.clock

    def drawn(self, v: nn.Variable) -> Any:
        try:
            return np.array(v.data.get_data("r"), dtype=float)
        except nn.Error as e:
            self.refuse(e, False, "random numbers")

    def do_forget(self, new: int, x: int, ops: tuple[str, ...]) -> None:
        v, r = self.get(x)
        if is_sink(r):
            raise Skip

        def inside(h: nn.Variable) -> nn.Variable:
            for op in ops:
                (h,) = engine.call(op, [h], {}, False)
            return h

        y = nn.functions.forget(inside, v)
        f = y.parent
        for k, op in enumerate(ops):
            r = make(op, r)
            r.cell.d[...] = 0
            r.recompute = k < len(ops) - 1
            r.cell.known = op not in VIEWS
        self.vars[new] = y, r
        for k, g in enumerate(reversed(behind([r])[-len(ops) :])):
            g.uid = f"{new}.{k}"
            self.functions[g.uid] = g
            f.tags = {"machine": g.uid}
            f = f.inputs[0].parent

    # Reading

    def may_refuse(self, r: Var) -> bool:
        """True if a read of the data may be an error: it is not kept, and cannot be computed again."""
        return not r.cell.kept and self.is_gone(r.cell)

    def is_gone(self, cell: Cell) -> bool:
        """True if no variable leads to its function, or what that reads has changed, or can be written by a view."""
        same = [v for v in self.every() if v.cell is cell]
        if cell.maker is None or any(v.moved > cell.ran for v in same) or all(v.parent is not cell.maker for v in same):
            return True
        viewed = {id(c) for _, c in self.views}
        functions = behind(cell.maker.y)
        if any(f.args["cell"][1] >= cell.ran for f in functions if "cell" in f.args):  # drawn again since
            return True
        read = [x for f in functions for x in f.x]
        made = [y.cell for f in functions for y in f.y] + [x.cell for x in read if x.cell.maker is not None]
        made = [c for c in made if c is not cell]
        times = [max(x.moved, x.cell.graded) for x in read] + [max(c.wrote, c.lent, c.renewed) for c in made]
        if any(time > cell.ran for time in times):
            return True
        # Where functions run one by one, what one has read may be another before the last one ran.
        own = [(x.cell, max(y.cell.ran for y in f.y)) for f in functions for x in f.x if x.cell.maker is not None]
        if any(0 <= ran < max(c.wrote, c.renewed) for c, ran in own):
            return True
        leaves = [x.cell for x in read if x.parent is None]
        return any(c.stamp > cell.begun or id(c) in viewed for c in leaves)

    def refuse(self, error: nn.Error, allowed: bool, what: str) -> None:
        if not allowed:
            raise Mismatch(f"{what}: {type(error).__name__}: {error}") from error
        raise Stop from error

    def check(self, i: int | str, v: nn.Variable, r: Var, what: str) -> None:
        if r.ghost:
            return
        if what != "g" and r.cell.known:
            try:
                d = self.look(v, r)
            except nn.Error as e:
                if not self.may_refuse(r):
                    raise Mismatch(f"v{i}.d: {type(e).__name__}: {e}") from e
            else:
                self.close(f"v{i}.d", d, r.cell.d)
        # A gradient graph of ours may need less: its own gradients are not compared.
        own = r.parent is None and not self.is_shared(r)
        fits = r.cell.d.shape == r.grad.d.shape  # another variable may have given the data they share another shape
        if what != "d" and r.grad.known and fits and (not self.frozen or own):
            try:
                g = np.array(v.g)
            except nn.Error as e:
                if r.grad.kept:
                    raise Mismatch(f"v{i}.g: {type(e).__name__}: {e}") from e
            else:
                self.close(f"v{i}.g", g, r.grad.d)

    def every(self) -> list[Var]:
        """All variables that are held or reached."""
        held = [r for _, r in self.vars.values()]
        return list({id(v): v for v in (*held, *(x for f in behind(held) for x in f.x + f.y))}.values())

    def is_shared(self, r: Var) -> bool:
        return sum(v.cell is r.cell or v.grad is r.grad for v in self.every()) > 1

    def look(self, v: nn.Variable, r: Var) -> Any:
        """A copy of the data. `.d` lends memory that can be written, which is a change; `get_data("r")` does not."""
        if r.parent is None and self.reference.clock % 4 == 0:
            d = np.array(v.d)
            r.cell.lent = self.reference.tick()
            return d
        return np.array(v.data.get_data("r"))

    def do_check(self, i: int, what: str) -> None:
        self.check(i, *self.get(i), what)

    def do_check_all(self) -> None:
        for i, (v, r) in self.vars.items():
            self.check(i, v, r, "both")
        for k, held in self.arrays.items():
            self.read(k, held)

    def do_peek(self, new: int, i: int, k: int, hold: bool) -> None:
        v, r = self.get(i)
        f = r.parent
        if f is None or not f.uid or k >= len(f.x):
            raise Skip
        if v.parent is None:  # made by auto_forward, and freed
            raise Skip
        u = v.parent.inputs[k]
        inside = f.x[k].parent is not None and not f.x[k].parent.uid  # of a gradient graph
        self.check(new, u, f.x[k], "d" if inside else "both")
        if hold:
            self.vars[new] = u, f.x[k]
            if inside:
                self.frozen.add(new)

    def do_view(self, i: int) -> None:
        v, r = self.get(i)
        if r.parent is not None or not r.cell.known or not r.cell.kept:
            raise Skip
        self.views.append((v.d, r.cell))

    def do_unview(self) -> None:
        for _, cell in self.views:
            cell.lent = self.reference.tick()
        self.views.clear()

    def check_nodes(self) -> None:
        """As many functions and variables are alive as can be reached from what is held."""
        if self.frozen or self.together or self.arrays:  # an array keeps alive who makes its content again
            return
        held = [r for _, r in self.vars.values()]
        order = behind(held)
        variables = {id(r) for r in held} | {id(x) for f in order for x in f.x}
        found = tuple(a - b for a, b in zip(alive(), self.before, strict=True))[:2]
        least = len(order), len(variables)
        # A plan keeps other outputs of its functions; auto_forward keeps no history that no gradient needs.
        most = len(order), len(variables | {id(y) for f in order for y in f.y})
        few = any(n < m for n, m in zip(found, least, strict=True)) and not self.dynamic
        if few or any(n > m for n, m in zip(found, most, strict=True)):
            raise Mismatch(f"functions and variables alive: {found}, expected {least} to {most}")

    def do_fusion(self, on: bool) -> None:
        nn.set_fusion(on)

    def do_threads(self, n: int) -> None:
        nn.set_num_threads(n)

    def finish(self) -> None:
        """Drops everything: no node and no byte may be left."""
        self.vars.clear()
        self.arrays.clear()
        self.views.clear()
        if alive() != self.before:
            gc.collect()
        if alive() != self.before:
            raise Mismatch(f"functions, variables, bytes alive: {alive()}, before the graph {self.before}")


def context(double: bool) -> Any:
    """The context of the functions of a graph."""
    return nn.context_scope(get_extension_context("cpu", type_config="double" if double else "float"))
