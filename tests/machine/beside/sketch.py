"""What is known of a program without computing anything: what reads what, what ran, what was written, what is held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Cell:
    """An array. `valid`: it was given values."""

    valid: bool = False
    stamp: int = 0  # when the script or a run wrote it
    ran: int = 0  # when a run made it
    wrote: int = 0  # when the script wrote it
    persistent: bool = False
    cleared: bool = False  # by the last run that read it, by the rules of docs/memory.md
    spared: bool = False  # clear_no_need_grad left it, or backward has computed it again: NNabla may have it cleared
    maker: Fn | None = None  # what made the data in the last run


@dataclass(eq=False)
class Var:
    shape: tuple[int, ...]
    need: bool | None = None
    parent: Fn | None = None
    data: Cell = field(default_factory=Cell)
    grad: Cell = field(default_factory=Cell)
    recompute: bool = False
    ghost: bool = False  # in the place of one that was rewired: NNabla has that one there still, or nothing
    moved: int = 0  # when its history or an array of it was changed
    need_stamp: int = 0  # when need_grad was changed

    def needs(self) -> bool:
        if self.need is not None:
            return self.need
        return self.parent is not None and any(x.needs() for x in self.parent.x)


@dataclass(eq=False)
class Fn:
    op: str
    x: list[Var]
    y: list[Var] = field(default_factory=list)
    args: dict[str, Any] = field(default_factory=dict)
    ran: int = -1
    at_once: bool = False  # under auto_forward
    opaque: bool = False  # of nn.grad: the two engines have other functions there
    together: list[Fn] = field(default_factory=list)  # of nn.grad: NNabla computes these with it


def behind(roots: Iterable[Var]) -> list[Fn]:
    """All functions behind the roots, those first that others need."""
    order: list[Fn] = []
    seen: set[int] = set()

    def visit(f: Fn | None) -> None:
        if f is None or id(f) in seen:
            return
        seen.add(id(f))
        for x in f.x:
            visit(x.parent)
        order.append(f)

    for v in roots:
        visit(v.parent)
    return order


def variables(order: list[Fn]) -> list[Var]:
    return list({id(v): v for f in order for v in (*f.x, *f.y)}.values())


class Sketch:
    """All variables of a program by their number, and a clock."""

    def __init__(self) -> None:
        self.vars: dict[int, Var] = {}
        self.arrays: dict[int, Cell] = {}
        self.clock = 0
        self.rewired = False
        self.ran_twice = False  # a graph of auto_forward ran once more: NNabla then adds some gradients up twice
        self.needs_changed = False  # NNabla's inherited need_grad is behind from then on

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def held(self, cell: Cell) -> bool:
        handles = [c for v in self.vars.values() for c in (v.data, v.grad)]
        return cell.persistent or any(c is cell for c in (*handles, *self.arrays.values()))

    def is_freed(self, cell: Cell) -> bool:
        """ "Under auto_forward NNabla frees the data of a variable that you drop"."""
        dropped = all(v.data is not cell for v in self.vars.values())
        return dropped and cell.maker is not None and cell.maker.at_once

    def write(self, cell: Cell) -> None:
        cell.valid, cell.cleared, cell.spared, cell.stamp = True, False, False, self.tick()
        cell.wrote, cell.maker = cell.stamp, None

    def changed(self, v: Var) -> bool:
        """True if something that it was computed from was changed by the script since, or nothing leads to that."""
        if v.parent is None and v.data.maker and all(v.data.maker is not f for f in behind(self.vars.values())):
            return True
        when = [(x.data.wrote if x.parent else x.data.stamp, x.moved) for f in self.makers(v) for x in f.x]
        return any(max(written, moved) > v.data.ran for written, moved in when) or v.moved > v.data.ran

    def makers(self, v: Var) -> list[Fn]:
        """The functions behind its data, also where it is an unlinked copy."""
        return behind([v] if v.parent or v.data.maker is None else v.data.maker.y)

    def is_mixed(self, v: Var) -> bool:
        """True if the script wrote something between the leaves and it: "computed again from what is there"."""
        return any(x.data.ran and max(x.data.wrote, x.moved) > v.data.ran for f in behind([v]) for x in f.x)

    def is_fresh(self, root: Var) -> bool:
        """True if all behind the root ran since anything it reads changed."""
        order = behind([root])
        for f in order:
            if f.ran < 0 or any(not x.data.valid or max(x.data.stamp, x.moved) > f.ran for x in f.x):
                return False
            if any(y.data.stamp > f.ran or y.data.ran != f.ran for y in f.y):
                return False
        return bool(order)

    def is_runnable(self, roots: list[Var]) -> bool:
        """True if the leaves have values and no array is in two places."""
        every = variables(behind(roots))
        made = {id(y) for f in behind(roots) for y in f.y}
        cells = {id(c) for v in every for c in (v.data, v.grad)}
        return len(cells) == 2 * len(every) and all(
            v.data.valid and not v.data.cleared for v in every if id(v) not in made
        )

    def run(
        self, order: list[Fn], roots: list[Var] | None = None, all_of: bool = False, needless: bool = False
    ) -> None:
        """Runs functions; `all_of` and `needless`: the flags clear_buffer and clear_no_need_grad."""
        now = self.tick()
        for f in order:
            f.ran = now
            for y in f.y:
                stays = y.data.persistent or any(y.data is root.data for root in roots or [])
                y.data.valid, y.data.stamp, y.data.ran, y.data.maker = True, now, now, f
                y.data.cleared = not stays and (all_of or y.recompute or needless and not y.needs())
                # docs/memory.md: "`y` itself ... always stay", also where `y` is an unlinked copy
                copied = any(y.data is root.data and y is not root for root in roots or [])
                y.data.spared = copied or needless and not stays and not y.data.cleared

    def reached(self, root: Var) -> tuple[list[Fn], list[Var]]:
        """The functions that backward runs, and the variables that get a gradient: the root keeps its own."""
        found = {id(root): root}
        functions = []
        for f in reversed(behind([root])):
            x = [x for x in f.x if x.needs()]
            if x and any(id(y) in found for y in f.y):
                functions.append(f)
                found.update({id(v): v for v in x})
        return functions, list(found.values())

    def lose_grads(self, roots: list[Var]) -> None:
        """Nothing is known of the gradients of these and of all behind them."""
        for v in [*roots, *variables(behind(roots))]:
            v.grad.valid = False

    def backward(self, root: Var, clear: bool) -> None:
        functions, found = self.reached(root)
        got = {id(v) for v in found}
        now = self.tick()
        for v in variables(behind([root])):
            v.data.spared |= v.data.cleared
        for f in functions:
            for y in f.y:
                y.data.spared &= not clear
                y.grad.valid = id(y) in got if y is not root else y.grad.valid
                y.data.cleared |= clear and y is not root and not y.data.persistent
                if y is not root:
                    y.grad.cleared = clear and not y.grad.persistent
        if root.parent and root.parent.op == "sink":  # NNabla writes 1 to all, whether they need a gradient or not
            for x in root.parent.x:
                x.grad.valid = x.needs() and x.grad.valid
        for v in (v for v in found if v is not root):
            v.grad.valid, v.grad.stamp = not self.ran_twice, now
