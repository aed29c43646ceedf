"""Arrays and views that the script holds, arrays that two variables share, and walks over what is reachable."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import nnrs as nn

from .machine import Machine, Mismatch, Skip
from .reference import Cell, Var


class Held:
    """An NdArray or a NumPy view that the script holds: what it is of, and which part of that."""

    def __init__(self, array: Any, cell: Cell, how: str, clock: int) -> None:
        self.array, self.cell, self.how, self.shape, self.clock = array, cell, how, cell.d.shape, clock

    def is_apart(self) -> bool:
        """True if what it is a part of has other memory now."""
        return self.how != "plain" and self.cell.reshaped > self.clock

    def read(self) -> Any:
        return np.array(self.array if self.how == "numpy" else self.array.get_data("r"))

    def expected(self, d: Any) -> Any:
        return {"narrow": lambda: d[:1], "view": lambda: d.ravel()}.get(self.how, lambda: d)()


class Handles(Machine):
    """The machine with what a script holds of arrays."""

    def do_hold(self, new: int, i: int, what: str, how: str) -> None:
        v, r = self.get(i)
        cell = r.cell if what == "d" else r.grad
        if r.ghost or i in self.frozen or r.recompute or how == "narrow" and v.shape[:1] in ((), (0,)):
            raise Skip
        if how == "numpy" and not (cell.known and cell.kept and cell.ran > 0):
            raise Skip
        if how == "numpy" and v.data.dtype != np.dtype("float64" if self.double else "float32"):
            raise Skip  # written in another type: the next run makes other memory
        try:
            array = taken(v.data if what == "d" else v.grad, how, r.shape)
        except nn.Error as e:
            if cell.kept or what == "d" and not self.may_refuse(r):
                raise Mismatch(f"v{i}.{what}: {e}") from e
            raise Skip from e
        self.arrays[new] = Held(array, cell, how, self.reference.clock)

    def do_release(self, k: int) -> None:
        if k not in self.arrays:
            raise Skip
        del self.arrays[k]
        self.check_nodes()

    def do_read(self, k: int) -> None:
        if k not in self.arrays:
            raise Skip
        self.read(k, self.arrays[k])

    def read(self, k: int, held: Held) -> None:
        """An array: its value, or, where it was cleared, an error if the graph cannot compute it again."""
        cell = held.cell
        if not cell.known or held.shape != cell.d.shape:
            return
        if held.is_apart():
            return
        if held.how == "numpy" and max(cell.lost, cell.typed) > held.clock:
            return
        try:
            d = held.read()
        except nn.Error as e:
            if not self.may_refuse_array(cell):
                raise Mismatch(f"a{k}: {type(e).__name__}: {e}") from e
            return
        self.close(f"a{k}", d, held.expected(cell.d))

    def may_refuse_array(self, cell: Cell) -> bool:
        """What was cleared is computed again where a variable that lives leads to it; a gradient never is."""
        return not cell.kept and self.is_gone(cell)

    def do_share(self, i: int, other: int, what: str) -> None:
        """`v.grad = w.grad`, or `v.data = w.data` for a leaf."""
        (v, r), (w, s) = self.get(i), self.get(other)
        if {i, other} & (self.frozen | set(self.random.values())) or r.ghost or s.ghost or r is s or r.shape != s.shape:
            raise Skip
        if self.is_shared(r) or self.is_shared(s) or r.persistent or s.persistent or r.parent is not None:
            raise Skip
        if what == "g":
            if not (s.grad.kept and s.grad.known):
                raise Skip
            v.grad, r.grad = w.grad, s.grad
            return
        if s.parent is not None and not (s.cell.kept and s.cell.known):
            raise Skip
        v.data, r.cell = w.data, s.cell
        r.moved = self.reference.tick()

    def do_fresh(self, i: int, what: str, seed: int) -> None:
        """An array of its own for a leaf."""
        v, r = self.get(i)
        if r.parent is not None or self.is_shared(r) or i in self.frozen:
            raise Skip
        d = np.asarray(np.random.default_rng(seed).uniform(0.1, 1.0, r.shape))
        array = nn.NdArray.from_numpy_array(d if self.double else d.astype("float32"))
        if what == "g":
            v.grad, r.grad = array, Cell(d)
            return
        v.data, r.cell = array, Cell(d)
        r.cell.ran = 0
        r.moved = self.reference.tick()

    def do_walk(self, i: int, seed: int, what: str, visit: bool) -> None:
        """Reads all that can be reached from a variable, in any order."""
        v, r = self.get(i)
        found = self.visited(v) if visit else reachable(v, r)
        for k in np.random.default_rng(seed).permutation(len(found)):
            path, step, twin = found[k]
            self.check(f"{i}{path}", step(v), twin, what)

    def visited(self, v: nn.Variable) -> list[tuple[str, Any, Var]]:
        """What the functions that `visit` shows read and make, by the tags that the machine gave them."""
        functions: list[Any] = []
        v.visit(functions.append)
        found = []
        for f in functions:
            twin = self.functions.get(f.tags.get("machine", ""))
            for side, ends in (("inputs", twin.x), ("outputs", twin.y)) if twin else ():
                plain = [(k, x) for k, x in enumerate(ends) if x.parent is None or x.parent.uid]
                found += [(f" {f.name}.{side}[{k}]", lambda _, f=f, s=side, k=k: getattr(f, s)[k], x) for k, x in plain]
        return found


def taken(array: nn.NdArray, how: str, shape: tuple[int, ...]) -> Any:
    if how == "numpy":
        return array.get_data("r")
    if how == "narrow":
        return array.narrow(0, 0, 1)
    return array.view([int(np.prod(shape))]) if how == "view" else array


def reachable(v: nn.Variable, r: Var) -> list[tuple[str, Any, Var]]:
    """All twins behind a variable, and how to walk from it to the variable of each."""
    found, seen = [("", lambda v: v, r)], {id(r)}
    for path, step, twin in found:
        f = twin.parent
        if f is None or not f.uid or step(v).parent is None:  # a gradient graph of ours, or freed by auto_forward
            continue
        sides = itertools.chain(
            (("inputs", k, x) for k, x in enumerate(f.x)), (("outputs", k, y) for k, y in enumerate(f.y))
        )
        for side, k, x in sides:
            if id(x) not in seen and not (x.parent is not None and not x.parent.uid):
                seen.add(id(x))
                found.append((f"{path}.parent.{side}[{k}]", walk(step, side, k), x))
    return found


def walk(step: Any, side: str, k: int) -> Any:
    return lambda v: getattr(step(v).parent, side)[k]
