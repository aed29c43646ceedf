"""Plays a program with nnrs and NNabla in step, and compares all that can be read.

Values are those of NNabla without clear flags: what NNabla cleared holds no numbers, and nnrs computes it again or says
that it cannot. Flags (clear_called, need_grad, persistent) and errors are those of NNabla with clear flags. Where they
differ on purpose, it is left out, beside the sentence of docs/migration.md or docs/memory.md that says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .draw import BINARY, Step
from .engines import FLAGS, Engine, engines, values
from .sketch import Cell, Fn, Sketch, Var, behind, variables


class Mismatch(Exception):
    """The engines differ, and no sentence of docs/migration.md says so."""


class Skip(Exception):
    """The step makes no sense here: nothing was done."""


class Stop(Exception):
    """What happens from here on is not compared."""


class Player:
    def __init__(self) -> None:
        self.engines = engines()
        self.nnrs, self.nnabla, self.values = self.engines
        self.sketch = Sketch()
        self.read: dict[int, int] = {}  # id of a cell -> when nnrs was last asked for its values

    def play(self, steps: list[Step]) -> None:
        with contextlib.suppress(Stop):
            for kind, args in steps:
                with contextlib.suppress(Skip):
                    getattr(self, f"do_{kind}")(**args)

    # What steps are made of

    def get(self, i: int) -> Var:
        if i not in self.sketch.vars:
            raise Skip
        return self.sketch.vars[i]

    def all(self, what: str, work: Callable[[Engine], Any]) -> list[Any]:
        """Does it with each engine: results, or Skip where none can. An error of one alone is a mismatch."""
        done = [e.attempt(work) for e in self.engines]
        (mine, error), (_, theirs), (_, other) = done
        if any(isinstance(e, KeyError) for e in (theirs, other)):
            raise Stop  # NNabla, now and then: no entry for an address in a table of its own
        if (error is None) != (theirs is None):
            raise Mismatch(f"{what}: nnrs {describe(error)}, NNabla {describe(theirs)}")
        if error or other:
            raise Skip if error else Stop
        return [result for result, _ in done]

    def close(self, what: str, actual: Any, expected: Any) -> None:
        if not np.all(np.isfinite(expected)) or np.max(np.abs(expected), initial=0) > 1e4:
            raise Stop
        if actual.shape != expected.shape:
            raise Mismatch(f"{what}: shape {actual.shape}, NNabla {expected.shape}")
        scale = 1e-4 * (1 + np.max(np.abs(expected), initial=0))
        if not np.allclose(actual, expected, rtol=0, atol=scale):
            if self.is_steep():
                raise Stop
            raise Mismatch(f"{what}: {actual.tolist()}, NNabla {expected.tolist()}")

    def is_steep(self) -> bool:
        """True if there is a sine or cosine of a large number, which multiplies what rounding does.

        Or a maximum of equal numbers beside `nn.grad`: "one winner of `max` and `min` (NNabla: all that are as large)".
        """
        found: list[bool] = []
        has_grad = any(f.opaque for f in behind(self.sketch.vars.values()))

        def look(f: Any) -> None:
            if f.name in ("Sin", "Cos"):
                found.append(np.max(np.abs(f.inputs[0].d), initial=0) > 100)
            if f.name == "Max" and has_grad:
                found.append(np.any(np.sum(f.inputs[0].d == f.outputs[0].d, axis=0) > 1))

        for v in self.values.vars.values():
            v.visit(look)
        return any(found)

    @contextlib.contextmanager
    def modes(self, e: Engine, auto: bool, mark: bool) -> Iterator[None]:
        with e.nn.auto_forward(auto), e.nn.recompute(mark and e.clears):
            yield

    def is_shared(self, v: Var) -> bool:
        every = [*self.sketch.vars.values(), *variables(behind(self.sketch.vars.values()))]
        return len({id(x) for x in every if x.data is v.data or x.grad is v.grad}) > 1

    # Making

    def do_leaf(self, new: int, shape: tuple[int, ...], seed: int, need: bool) -> None:
        for e in self.engines:
            v = e.nn.Variable.from_numpy_array(values(seed, shape), need_grad=need)
            v.g = 0
            e.vars[new] = v
        r = self.sketch.vars[new] = Var(shape, need)
        self.sketch.write(r.data)
        self.sketch.write(r.grad)

    def do_apply(self, new: list[int], op: str, x: list[int], args: dict[str, Any], auto: bool, mark: bool) -> None:
        twins = [self.get(i) for i in x]
        if op in ("stack0", "concatenate0") and len({t.shape for t in twins}) > 1 or any(is_sink(t) for t in twins):
            raise Skip
        if op in BINARY and len({len(t.shape) for t in twins}) > 1:
            raise Skip  # "Two arrays of different numbers of axes broadcast as in NumPy"
        if auto and (not any(t.needs() for t in twins) or any(f.opaque for f in behind(twins))):
            raise Skip  # "Where no input needs a gradient, what is made keeps no history"
        if auto and any(not t.data.valid or self.sketch.changed(t) for t in twins):
            raise Skip
        if op == "split" and (not twins[0].shape or twins[0].shape[0] != len(new)):
            raise Skip
        if op in ("sum", "max", "softmax", "split", "transpose", "affine") and not twins[0].shape:
            raise Skip

        def work(e: Engine) -> list[Any]:
            with self.modes(e, auto, mark):
                return e.call(op, [e.vars[i] for i in x], args)

        made = self.all(op, work)
        f = Fn(op, twins, args=args)
        for k, i in enumerate(new):
            f.y.append(Var(made[1][k].shape, parent=f, recompute=mark))
            self.sketch.vars[i] = f.y[-1]
            for e, y in zip(self.engines, made, strict=True):
                e.vars[i] = y[k]
        if auto:
            f.at_once = True
            self.sketch.run([f])

    def do_unlink(self, new: int, i: int, need: Any) -> None:
        r = self.get(i)
        # "What `nn.grad` makes needs a gradient where it reads something that does"
        if is_sink(r) or need is None and (self.sketch.needs_changed or any(f.opaque for f in behind([r]))):
            raise Skip
        made = self.all("unlink", lambda e: e.vars[i].get_unlinked_variable(need_grad=need))
        for e, u in zip(self.engines, made, strict=True):
            e.vars[new] = u
        self.sketch.vars[new] = Var(r.shape, r.needs() if need is None else need, data=r.data, grad=r.grad)

    def do_grad(self, new: list[int], y: int, x: list[int], bind: Any, auto: bool) -> None:
        root, twins = self.get(y), [self.get(i) for i in x]
        order = behind([root])
        every = variables(order)
        if (
            is_sink(root)
            or not order
            or not root.needs()
            or not self.sketch.is_runnable([root])
            or self.sketch.needs_changed
        ):
            raise Skip
        if any(not t.needs() or not any(t is v for v in every) for t in twins) or any(f.opaque for f in order):
            raise Skip
        if auto and not self.sketch.is_fresh(root) or any(self.is_shared(t) for t in twins):
            raise Skip
        # "A leaf and its unlinked copies are one variable to `nn.grad`"
        if len({id(v.data) for v in every}) < len(every):
            raise Skip
        functions, found = self.sketch.reached(root)
        if any(not any(t is v for v in found) or t is root for t in twins):
            raise Skip
        # "`nn.grad` ... is right for ... `maximum2` of different shapes"
        if any(f.op == "maximum2" and f.x[0].shape != f.x[1].shape for f in functions):
            raise Skip

        def work(e: Engine) -> list[Any]:
            with self.modes(e, auto, False):
                return e.grad([e.vars[y]], [e.vars[i] for i in x], bind_grad_output=bind)

        made = self.all("nn.grad", work)
        # "Each result is a variable of its own"
        if any(a.data == b.data for k, a in enumerate(made[1]) for b in made[1][:k]):
            raise Stop
        grads = [Fn("grad", every, opaque=True) for _ in new]
        for f, a in zip(grads, made[1], strict=True):
            f.together = [g for g, b in zip(grads, made[1], strict=True) if b.parent == a.parent]
        for k, (i, f) in enumerate(zip(new, grads, strict=True)):
            f.y.append(Var(twins[k].shape, parent=f))
            self.sketch.vars[i] = f.y[0]
            for e, g in zip(self.engines, made, strict=True):
                e.vars[i] = g[k]
            if bind:
                twins[k].grad = f.y[0].data
            if auto:
                self.sketch.run([f])

    # Runs

    def do_forward(self, roots: list[int], clear_buffer: Any, clear_no_need_grad: Any, hooks: bool) -> None:
        twins = [self.get(i) for i in roots]
        order = behind(twins)
        if not order or not self.sketch.is_runnable(twins):
            raise Skip
        flags = dict(zip(FLAGS, (clear_buffer, clear_no_need_grad), strict=True))
        seen = self.hooked("forward", order, hooks, lambda e, kw: e.forward(roots, flags, kw))
        self.compare_hooks("forward", seen, order)
        # "The graph of `nn.grad` runs the forward functions whose values the gradient needs; NNabla runs all"
        direct = {id(f) for f in through(twins)}
        others = [f for f in order if id(f) not in direct and not f.opaque]
        # "Each is computed alone"
        others += [g for f in order for g in f.together if id(g) not in direct]
        unsure = [f for f in others if not all(self.sketch.is_fresh(v) for v in f.y)]
        cleared = [y.data for f in others for y in f.y if y.data.cleared]
        self.sketch.ran_twice |= any(f.at_once for f in order)
        self.sketch.run(order, twins, bool(clear_buffer), bool(clear_no_need_grad))
        for f in unsure:
            f.ran = -1
            for v in f.y:
                v.data.valid = v.grad.valid = False
        for cell in cleared:
            cell.cleared = True

    def do_backward(self, i: int, seed: Any, clear_buffer: Any, hooks: bool) -> None:
        r = self.get(i)
        order = behind([r])
        if not r.needs() or not self.sketch.is_fresh(r) or not self.sketch.is_runnable([r]):
            raise Skip
        functions, found = self.sketch.reached(r)
        made = {id(y) for f in order for y in f.y}
        starts = [v.grad for v in found if id(v) not in made]
        if any(g.cleared or not g.valid for g in starts) or seed is None and not self.is_there(i, r):
            raise Skip
        if is_sink(r) and any(not (x.grad.valid and self.sketch.held(x.grad)) for x in r.parent.x):
            raise Skip

        def work(e: Engine, kw: dict[str, Any]) -> None:
            grad = values(7, r.shape) if seed == "array" else seed
            grad = e.nn.NdArray.from_numpy_array(grad) if seed == "array" else grad
            e.vars[i].backward(grad, clear_buffer=clear_buffer if e.clears else False, **kw)

        others = self.other_needs(i, r)
        seen = self.hooked("backward", order, hooks, work)
        if not others:
            self.compare_hooks("backward", seen, functions)
        # "No gradient flows through an output whose `need_grad` is False"
        others += [x for f in functions if any(y.grad.valid and not y.needs() for y in f.y) for x in f.x]
        self.sketch.backward(r, bool(clear_buffer))
        self.sketch.lose_grads(others)

    def other_needs(self, i: int, r: Var) -> list[Var]:
        """Variables that, with all behind them, get other gradients in NNabla."""
        # "`backward` goes by the flags that are there": they were changed since forward
        if any(v.need_stamp > f.ran for f in behind([r]) for v in (*f.x, *f.y)):
            return [r]
        # "What `nn.grad` makes needs a gradient where it reads something that does"
        made = [(step, v) for _, step, v in reachable(r) if any(f.opaque for f in behind([v]))]
        return [v for step, v in made if step(self.nnabla.vars[i]).need_grad != v.needs()]

    def is_there(self, i: int, r: Var) -> bool:
        """True if the gradient holds numbers in all engines."""
        return r.grad.valid and self.sketch.held(r.grad) and not self.nnabla.vars[i].grad.clear_called

    def hooked(
        self, what: str, order: list[Fn], hooks: bool, work: Callable[[Engine, dict[str, Any]], Any]
    ) -> list[list[str]]:
        seen: dict[str, list[str]] = {e.name: [] for e in self.engines}

        def go(e: Engine) -> None:
            names = seen[e.name]
            kw = {"function_pre_hook": lambda f: names.append(f.name), "function_post_hook": lambda f: names.append("")}
            work(e, kw if hooks else {})

        self.all(what, go)
        return list(seen.values())

    def compare_hooks(self, what: str, seen: list[list[str]], order: list[Fn]) -> None:
        """Which functions ran; "Functions run by rank within one root", so their order is not compared."""
        if any(f.opaque for f in order):  # of nn.grad: other functions
            return
        if sorted(seen[0]) != sorted(seen[1]):
            raise Mismatch(f"hooks of {what}: {seen[0]}, NNabla {seen[1]}")

    # Changes

    def do_write(self, i: int, seed: int) -> None:
        r = self.get(i)
        if is_sink(r):
            raise Skip
        self.all("write", lambda e: setattr(e.vars[i], "d", values(seed, r.shape)))
        self.sketch.write(r.data)

    def do_write_grad(self, i: int, value: float) -> None:
        r = self.get(i)
        self.all("write of g", lambda e: setattr(e.vars[i], "g", value))
        self.sketch.write(r.grad)

    def do_need(self, i: int, value: Any) -> None:
        r = self.get(i)
        if value is None:  # NNabla forgets what was inherited until its functions are set up again
            raise Skip
        self.all("need_grad", lambda e: setattr(e.vars[i], "need_grad", value))
        if bool(value) != r.need:
            self.sketch.needs_changed, r.need_stamp = True, self.sketch.tick()
        r.need = bool(value)

    def do_persistent(self, i: int, value: Any) -> None:
        r = self.get(i)
        self.all("persistent", lambda e: setattr(e.vars[i], "persistent", value))
        if r.parent is not None or not self.is_shared(r):  # a mark of the copy says nothing of the one that runs
            r.data.persistent = r.grad.persistent = bool(value)

    def do_recompute(self, i: int, value: Any) -> None:
        r = self.get(i)
        if r.parent is None or r.parent.opaque:
            raise Skip
        self.all("recompute", lambda e: setattr(e.vars[i], "recompute", value if e.clears else False))
        r.recompute = bool(value)

    def do_rewire(self, i: int, other: int) -> None:
        r, s = self.get(i), self.get(other)
        # "A variable and its unlinked copies have their arrays in common for good"
        if r is s or self.is_shared(r) or self.is_shared(s) or is_sink(r) or is_sink(s):
            raise Skip
        # "NNabla leaves `h` in its old place, too"
        if r.parent is not None and len(r.parent.y) > 1:
            raise Skip
        if any(f.opaque for f in behind(self.sketch.vars.values())) or any(r is x for f in behind([s]) for x in f.x):
            raise Skip
        self.all("rewire_on", lambda e: e.vars[i].rewire_on(e.vars[other]))
        if r.parent is not None:
            r.parent.y[r.parent.y.index(r)] = Var(r.shape, parent=r.parent, ghost=True)
        r.parent, r.data, r.grad, r.need, r.moved = s.parent, s.data, s.grad, s.need, self.sketch.tick()
        self.sketch.rewired = self.sketch.needs_changed = True
        s.parent.y[s.parent.y.index(s)] = r
        s.parent, s.moved = None, r.moved
        self.do_drop(other)  # "`b` keeps no part in the graph"

    def do_share(self, i: int, other: int, what: str) -> None:
        r, s = self.get(i), self.get(other)
        if r is s or r.shape != s.shape or r.parent is not None or self.is_shared(r) or self.is_shared(s) or is_sink(s):
            raise Skip
        if what == "data" and (not s.data.valid or self.sketch.changed(s)):
            raise Skip
        # "So is reading a gradient that `backward(clear_buffer=True)` has cleared"
        if what == "grad" and s.grad.cleared:
            raise Skip
        self.all(f"{what} of another", lambda e: setattr(e.vars[i], what, getattr(e.vars[other], what)))
        setattr(r, what, getattr(s, what))
        r.moved = self.sketch.tick()
        self.read[id(getattr(r, what))] = self.sketch.clock

    def do_fresh(self, i: int, what: str, seed: int) -> None:
        r = self.get(i)
        if r.parent is not None or self.is_shared(r):
            raise Skip
        self.all(what, lambda e: setattr(e.vars[i], what, e.nn.NdArray.from_numpy_array(values(seed, r.shape))))
        setattr(r, what, Cell())
        self.sketch.write(getattr(r, what))
        r.moved = self.sketch.tick()

    def do_hold(self, new: int, i: int, what: str) -> None:
        r = self.get(i)
        if what == "data" and r.data.valid and self.sketch.changed(r):
            raise Skip
        made = self.all(what, lambda e: getattr(e.vars[i], what))
        for e, a in zip(self.engines, made, strict=True):
            e.arrays[new] = a
        self.sketch.arrays[new] = getattr(r, what)
        self.read[id(getattr(r, what))] = self.sketch.clock

    def do_release(self, k: int) -> None:
        if k not in self.sketch.arrays:
            raise Skip
        del self.sketch.arrays[k]
        for e in self.engines:
            del e.arrays[k]

    def do_drop(self, i: int) -> None:
        r = self.get(i)
        del self.sketch.vars[i]
        if all(r is not x for f in behind(self.sketch.vars.values()) for x in f.x):
            r.data.persistent = r.grad.persistent = False  # its function makes another one if it runs again
        for e in self.engines:
            del e.vars[i]

    # Reading

    def do_see(self) -> None:
        for k, cell in self.sketch.arrays.items():
            self.see_array(k, cell)
        for i, r in self.sketch.vars.items():
            self.see(f"v{i}", [e.vars[i] for e in self.engines], r)

    def see_array(self, k: int, cell: Cell) -> None:
        mine, theirs, known = (e.arrays[k] for e in self.engines)
        cleared = theirs.clear_called
        every = variables(behind(self.sketch.vars.values()))
        again = any(v.recompute for v in every)  # NNabla fills arrays where it computes again, unseen in nnrs
        # docs/memory.md, "Clear flags": NNabla's forward keeps what several functions read.
        # "`clear_no_need_grad` leaves what needs a gradient and you hold", "A `backward` that needs a cleared value"
        same = mine.clear_called == cleared or (cell.cleared if mine.clear_called else cell.spared)
        if not again and cell.stamp > self.read.get(id(cell), 0) and not same:
            raise Mismatch(f"a{k}.clear_called: {mine.clear_called}, NNabla {cleared}")
        if self.sketch.is_freed(cell):
            return
        lost = cleared or cell.cleared
        owner = next((v for v in [*self.sketch.vars.values(), *every] if v.data is cell), None)
        if cell.valid and not (owner and lost and self.sketch.is_mixed(owner)):
            self.value(f"a{k}", mine, known, cell, lost and (owner is None or self.sketch.changed(owner)))

    def value(self, what: str, mine: Any, known: Any, cell: Cell, refuses: bool) -> None:
        self.read[id(cell)] = self.sketch.clock
        d, error = self.nnrs.attempt(lambda e: e.value(mine() if callable(mine) else mine))
        if error is None:
            return self.close(what, d, self.values.value(known))
        if not refuses or "hold the Variable" not in str(error):
            raise Mismatch(f"{what}: {describe(error)}, NNabla {self.values.value(known).tolist()}")

    def see(self, name: str, v: list[Any], r: Var) -> None:
        """One variable, by the three engines: its flags, data and gradient."""
        if r.ghost:
            return
        if r in self.sketch.vars.values() or any(
            r is x for f in behind(self.sketch.vars.values()) if not f.opaque for x in f.x
        ):
            self.see_flags(name, v, r)  # NNabla makes dropped outputs anew, with no variable's flags
        if v[0].shape != v[1].shape:
            raise Mismatch(f"{name}.shape: {v[0].shape}, NNabla {v[1].shape}")
        if r.data.valid:
            lost = not self.sketch.held(r.data) or v[1].data.clear_called or r.data.cleared
            refuses = lost and self.sketch.changed(r)
            if not self.sketch.is_freed(r.data) and (not lost or not self.sketch.is_mixed(r)):
                self.value(f"{name}.d", lambda: v[0].data, v[2].data, r.data, refuses)
        if r.grad.valid:
            refuses = r.parent is not None and not self.sketch.held(r.grad) or v[1].grad.clear_called
            self.value(f"{name}.g", lambda: v[0].grad, v[2].grad, r.grad, refuses)

    def see_flags(self, name: str, v: list[Any], r: Var) -> None:
        for flag in ("persistent", "recompute", "rank", "need_grad"):
            mine, theirs = getattr(v[0], flag), getattr(v[1], flag)
            behind_one = any(f.opaque for f in behind([r]))
            # "`need_grad` of variables behind one that changes", and graphs of nn.grad
            if flag in ("need_grad", "rank") and (self.sketch.needs_changed or behind_one):
                continue
            if flag == "rank" and self.sketch.rewired:  # NNabla leaves the ranks behind as they were
                continue
            if mine != theirs:
                raise Mismatch(f"{name}.{flag}: {mine}, NNabla {theirs}")
        if (v[0].parent is None) != (v[1].parent is None):
            raise Mismatch(f"{name}.parent: {v[0].parent}, NNabla {v[1].parent}")
        if v[0].parent is not None and not r.parent.opaque and v[0].parent.name != v[1].parent.name:
            raise Mismatch(f"{name}.parent.name: {v[0].parent.name}, NNabla {v[1].parent.name}")

    def do_walk(self, i: int, seed: int) -> None:
        r = self.get(i)
        names: list[list[str]] = [[], [], []]
        for e, found in zip(self.engines, names, strict=True):
            e.vars[i].visit(lambda f, found=found: found.append(f.name))
        if sorted(names[0]) != sorted(names[1]) and not any(f.opaque for f in behind([r])):
            raise Mismatch(f"v{i}.visit: {names[0]}, NNabla {names[1]}")
        found = reachable(r)
        for k in np.random.default_rng(seed).permutation(len(found)):
            path, step, twin = found[k]
            self.see(f"v{i}{path}", [step(e.vars[i]) for e in self.engines], twin)


def reachable(r: Var) -> list[tuple[str, Callable[[Any], Any], Var]]:
    """All variables behind one, and how to walk to each."""
    found: list[tuple[str, Callable[[Any], Any], Var]] = [("", lambda v: v, r)]
    seen = {id(r)}
    for path, step, twin in found:
        f = twin.parent
        if f is None or f.opaque:
            continue
        for side, ends in (("inputs", f.x), ("outputs", f.y)):
            for k, x in enumerate(ends):
                if id(x) not in seen:
                    seen.add(id(x))
                    found.append((f"{path}.parent.{side}[{k}]", walk(step, side, k), x))
    return found


def walk(step: Callable[[Any], Any], side: str, k: int) -> Callable[[Any], Any]:
    return lambda v: getattr(step(v).parent, side)[k]


def through(roots: list[Var]) -> list[Fn]:
    """The functions behind the roots that one reaches without going through a graph of nn.grad."""
    found: list[Fn] = []
    todo = [v.parent for v in roots]
    while todo:
        f = todo.pop()
        if f is None or any(f is g for g in found):
            continue
        found.append(f)
        todo += [] if f.opaque else [x.parent for x in f.x]
    return found


def is_sink(v: Var) -> bool:
    return v.parent is not None and v.parent.op == "sink"


def describe(error: Exception | None) -> str:
    if error is None:
        return "does it"
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {' '.join(lines[:4])[:300]}"
