"""Draws the steps of a graph from a seed."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np

from .machine import Step, context
from .operations import Stop
from .reference import needs
from .runs import Runner

UNARY = ("sin", "cos", "tanh", "sigmoid", "relu", "abs", "leaky_relu", "square", "exp", "identity", "mul_scalar")
UNARY += ("add_scalar", "pow_scalar", "sin", "tanh", "mul_scalar")
BINARY = ("add2", "sub2", "mul2", "maximum2", "add2", "mul2", "add_n")
SHAPES = ((3, 2), (3, 2), (2,), (3, 1), (2, 3), (3, 3), (1,), (3,), (2, 1, 3), ())
YES, NO = (True, True, True, 1, np.True_, "x"), (False, False, False, 0, np.False_, "")
KINDS = {
    "leaf": 2, "unary": 8, "binary": 8, "moving": 5, "reducing": 3, "affine": 3, "random": 1, "forget": 1,
    "write": 6, "write_grad": 2, "need": 2, "persistent": 1, "recompute": 2, "rewire": 2, "unlink": 1, "cut": 0.5,
    "reset": 2, "drop": 8, "forward": 12, "backward": 12, "grad": 2, "fusion": 1, "threads": 1, "check": 4, "peek": 4,
    "view": 0.5, "unview": 0.7, "check_all": 2, "hold": 4, "release": 2, "read": 2, "share": 1, "fresh": 0.5, "walk": 3,
    "sink": 1.5, "helper": 3,
}  # fmt: skip


class Chooser:
    """Chooses steps that make sense for the state of a machine."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.double = self.rng.random() < 0.7
        self.count = 0
        self.queue: list[Step] = []  # what belongs to the step before
        # Each graph has its own taste, so that rare kinds meet often in some.
        self.kinds = {k: w * self.rng.choice([0.2, 1, 1, 3]) for k, w in KINDS.items()}
        self.auto = self.rng.choice([0.0, 0.0, 0.1, 1.0])

    def new(self) -> int:
        self.count += 1
        return self.count

    def number(self) -> int:
        return self.rng.randrange(1 << 30)

    def step(self, m: Runner) -> Step | None:
        """The next step, None if the one that was drawn does not fit."""
        if self.queue:
            return self.queue.pop(0)
        kind = self.rng.choices(list(self.kinds), list(self.kinds.values()))[0]
        if len(m.vars) < 2:
            kind = "leaf"
        self.m = m
        found = getattr(self, kind)()
        if found is None or isinstance(found[0], str):
            return found
        return kind, found[0]

    def pick(self, where: Any = lambda i, r: True) -> int | None:
        """A variable that is held, younger ones rather."""
        fit = [i for i, (_, r) in self.m.vars.items() if where(i, r)]
        if not fit:
            return None
        return max(self.rng.choice(fit), self.rng.choice(fit)) if self.rng.random() < 0.6 else self.rng.choice(fit)

    def shape(self, i: int) -> tuple[int, ...]:
        return self.m.vars[i][1].shape

    def largest(self, i: int) -> float:
        return float(np.max(np.abs(self.m.vars[i][1].cell.d), initial=0))

    # Leaves and functions

    def leaf(self) -> Any:
        shape = self.rng.choice(SHAPES)
        return [dict(new=self.new(), shape=shape, seed=self.number(), need=self.rng.random() < 0.75)]

    def apply(self, op: str, x: list[int], outputs: int = 1, **args: Any) -> Step:
        mode = "static"
        if self.rng.random() < self.auto:
            mode = "no_grad" if self.rng.random() < 0.1 else "auto"
        new = [self.new() for _ in range(outputs)]
        inplace, mark = self.rng.random() < 0.3, self.rng.random() < 0.1
        return "apply", dict(new=new, op=op, x=x, args=args, inplace=inplace, mode=mode, mark=mark)

    def unary(self) -> Step | None:
        i, op = self.pick(), self.rng.choice(UNARY)
        if op in ("exp", "square", "pow_scalar") and self.largest(i) > 3:
            op = "tanh"
        args = {
            "leaky_relu": {"alpha": 0.3},
            "mul_scalar": {"val": self.rng.choice([0.5, -1.5, 1.0])},
            "add_scalar": {"val": self.rng.choice([0.7, -0.4])},
            "pow_scalar": {"val": self.rng.choice([2.0, 3.0])},
        }.get(op, {})
        return self.apply(op, [i], **args)

    def binary(self) -> Step | None:
        i, op = self.pick(), self.rng.choice(BINARY)
        j = self.pick(lambda k, r: r.shape == self.shape(i) or op != "add_n" and fits(r.shape, self.shape(i)))
        if j is None or op == "mul2" and max(self.largest(i), self.largest(j)) > 6:
            return None
        return self.apply(op, [i, j] if self.rng.random() < 0.5 else [j, i])

    def moving(self) -> Step | None:
        i = self.pick(lambda i, r: r.shape != ())
        if i is None:
            return None
        s = self.shape(i)
        op = self.rng.choice(["reshape", "reshape", "transpose", "slice", "concatenate", "stack", "split", "broadcast"])
        axis = self.rng.randrange(len(s))
        if op in ("concatenate", "stack"):
            j = self.pick(lambda k, r: r.shape == s)
            return self.apply(op, [i, j], axis=axis)
        if op == "split":
            return self.apply(op, [i], outputs=s[axis], n=s[axis], axis=axis) if s[axis] < 4 else None
        if op == "broadcast":
            return self.apply(op, [i], shape=tuple(2 if n == 1 else n for n in s))
        if op == "reshape":
            return self.apply(op, [i], shape=self.rng.choice([s[::-1], (*s, 1), (int(np.prod(s)),)]))
        if op == "transpose":
            return self.apply(op, [i], axes=tuple(self.rng.sample(range(len(s)), len(s))))
        start = self.rng.randrange(s[axis]) if s[axis] > 1 else 0
        key = tuple(
            slice(start, n, 1) if k == axis else slice(0, n, self.rng.choice([1, 1, 2])) for k, n in enumerate(s)
        )
        return self.apply(op, [i], key=key)

    def reducing(self) -> Step | None:
        i = self.pick(lambda i, r: r.shape != ())
        if i is None:
            return None
        axis = self.rng.randrange(len(self.shape(i)))
        op = self.rng.choice(["sum", "sum", "max", "softmax"])
        if op == "softmax":
            return self.apply(op, [i], axis=axis)
        keepdims = self.rng.random() < 0.5
        if op == "max":
            return self.apply(op, [i], axis=axis, keepdims=keepdims)
        every = tuple(range(len(self.shape(i))))
        return self.apply(op, [i], axis=self.rng.choice([every, (axis,)]), keepdims=keepdims)

    def affine(self) -> Step | None:
        i = self.pick(lambda i, r: len(r.shape) == 2 and self.largest(i) < 6)
        j = None if i is None else self.pick(lambda k, r: len(r.shape) == 2 and r.shape[0] == self.shape(i)[1])
        if j is None or self.largest(j) > 6:
            return None
        b = self.pick(lambda k, r: r.shape == self.shape(j)[1:])
        return self.apply("affine", [i, j] + [b] * (b is not None and self.rng.random() < 0.5))

    def random(self) -> Step | None:
        step = self.apply("rand", [], shape=self.rng.choice(SHAPES[:6]), cell=None)
        i = self.pick(lambda i, r: r.parent is not None and r.parent.op in ("sigmoid", "exp"))
        if i is not None and self.rng.random() < 0.6:
            step = self.apply("dropout", [i], cell=None)
        return step

    def forget(self) -> Any:
        ops = tuple(self.rng.choice(("sin", "tanh", "square", "sigmoid")) for _ in range(self.rng.randint(1, 4)))
        i = self.pick(lambda i, r: self.largest(i) < 3)
        return i and [dict(new=self.new(), x=i, ops=ops)]

    # Changes

    def write(self) -> Any:
        i = self.pick(lambda i, r: r.parent is None or self.rng.random() < 0.1)
        return i and [dict(i=i, seed=self.number(), how=self.rng.choice(["d", "d", "view"]))]

    def truth(self, likely: float) -> Any:
        """A truth value, as a script may write it."""
        if self.rng.random() < likely:
            return self.rng.choice(YES)
        return self.rng.choice(NO)

    def write_grad(self) -> Any:
        return [dict(i=self.pick(), value=self.rng.choice([0, 0, 2.5]))]

    def need(self) -> Any:
        return [dict(i=self.pick(), value=self.rng.choice([self.truth(0.5), None]))]

    def persistent(self) -> Any:
        return [dict(i=self.pick(), value=self.truth(0.7))]

    def recompute(self) -> Any:
        return [dict(i=self.pick(), value=self.truth(0.8))]

    def rewire(self) -> Any:
        i = self.pick()
        j = self.pick(lambda k, r: r.shape == self.shape(i))
        return j and [dict(i=i, other=j)]

    def unlink(self) -> Any:
        return [dict(new=self.new(), i=self.pick(), need=self.rng.choice([None, True, False]))]

    def cut(self) -> Any:
        return [dict(i=self.pick())]

    def reset(self) -> Any:
        i = self.pick(lambda i, r: r.parent is None and r.shape != ())
        if i is None:
            return None
        same = [k for k, (_, r) in self.m.vars.items() if r.parent is None and r.shape[:1] == self.shape(i)[:1]]
        return [dict(ids=[i] if self.rng.random() < 0.3 else same, n=self.rng.randint(1, 4), seed=self.number())]

    def drop(self) -> Any:
        return [dict(i=self.rng.choice(list(self.m.vars)))] if len(self.m.vars) > 3 else None

    def fusion(self) -> Any:
        return [dict(on=self.rng.random() < 0.5)]

    def threads(self) -> Any:
        return [dict(n=self.rng.choice([1, 2]))]

    # Runs

    def hooks(self) -> str:
        return self.rng.choice(["none"] * 5 + ["names", "values", "global"])

    def forward(self) -> Any:
        roots = [self.pick(lambda i, r: r.parent is not None)]
        if roots[0] is None:
            return None
        if self.rng.random() < 0.3:
            roots = list({*roots, self.pick(), self.pick()})
        flags = self.rng.choice([(False, False)] * 3 + [(False, True)] * 2 + [(True, False), (True, True)])
        flags = tuple(self.truth(float(f)) for f in flags)
        return [dict(roots=roots, clear_buffer=flags[0], clear_no_need_grad=flags[1], hooks=self.hooks())]

    def backward(self) -> Any:
        written = self.rng.random() < 0.3
        ready = self.m.reference.is_fresh
        i = self.pick(lambda i, r: r.parent is not None and ready([r], written) and needs(r, {}))
        seed = self.rng.choice([1, 1, 1, 2.5, "own", ("array", self.number())])
        return i and [dict(i=i, seed=seed, clear_buffer=self.truth(0.4), hooks=self.hooks())]

    def helper(self) -> Step | None:
        """A function that the script applies, runs and drops, as a metric."""
        step = self.unary() if self.rng.random() < 0.7 else self.binary()
        if step is None or step[1]["mode"] != "static":
            return step
        (y,) = step[1]["new"]
        roots = [y] if self.rng.random() < 0.6 else [self.pick(), y]
        self.queue = [
            (
                "forward",
                dict(roots=roots, clear_buffer=self.truth(0.2), clear_no_need_grad=self.truth(0.3), hooks=self.hooks()),
            )
        ]
        if self.rng.random() < 0.3:
            self.queue.append(("backward", dict(i=y, seed=1, clear_buffer=self.truth(0.4), hooks="none")))
        self.queue.append(("drop", dict(i=y)))
        return step

    def sink(self) -> Step | None:
        """A sink, run forward and backward with gradients that the script sets."""
        x = [self.pick(lambda i, r: r.parent is not None), *(self.pick() for _ in range(self.rng.randrange(3)))]
        if x[0] is None:
            return None
        step = self.apply("sink", x, one_input_grad=self.truth(0.3))
        (y,) = step[1]["new"]
        sets = [("write_grad", dict(i=i, value=self.rng.choice([2.5, -1]))) for i in x]
        run = ("forward", dict(roots=[y], clear_buffer=False, clear_no_need_grad=self.truth(0.5), hooks=self.hooks()))
        self.queue = [run, *sets] if self.rng.random() < 0.7 else [*sets, run]
        self.queue.append(("backward", dict(i=y, seed=1, clear_buffer=self.truth(0.4), hooks=self.hooks())))
        if self.rng.random() < 0.5:
            self.queue.append(("drop", dict(i=y)))
        return step

    def grad(self) -> Any:
        y = self.pick(lambda i, r: r.parent is not None and needs(r, {}))
        x = self.pick(lambda i, r: needs(r, {}))
        if y is None or x is None or len(self.m.frozen) > 5:
            return None
        xs = list({x, self.pick(lambda i, r: needs(r, {}))})
        mode = "auto" if self.rng.random() < max(self.auto, 0.1) else "static"
        seed, bind = self.rng.choice([None, None, 0.5]), self.truth(0.5)
        new = [self.new() for _ in xs]
        if self.rng.random() < 0.3:  # only what is made of it keeps it
            self.queue = [self.apply("square", new[:1]), *(("drop", dict(i=i)) for i in new)]
        return [dict(new=new, y=[y], x=xs, seed=seed, mode=mode, bind=bind)]

    # Reads

    def check(self) -> Any:
        return [dict(i=self.pick(), what=self.rng.choice(["d", "g", "both"]))]

    def check_all(self) -> Any:
        return [{}]

    def peek(self) -> Any:
        i = self.pick(lambda i, r: r.parent is not None)
        return i and [dict(new=self.new(), i=i, k=self.rng.randrange(2), hold=self.rng.random() < 0.2)]

    def hold(self) -> Any:
        how = self.rng.choice(["plain", "plain", "plain", "narrow", "view", "numpy"])
        what = self.rng.choice("dg") if how != "numpy" else "d"
        i = self.pick(lambda i, r: r.parent is not None)
        if i is not None and self.rng.random() < 0.4:
            self.queue = [("drop", dict(i=i))]
        return i and [dict(new=self.new(), i=i, what=what, how=how)]

    def release(self) -> Any:
        return [dict(k=self.rng.choice(list(self.m.arrays)))] if self.m.arrays else None

    def read(self) -> Any:
        return [dict(k=self.rng.choice(list(self.m.arrays)))] if self.m.arrays else None

    def share(self) -> Any:
        i = self.pick(lambda i, r: r.parent is None)
        j = i and self.pick(lambda k, r: r.shape == self.shape(i) and k != i)
        return j and [dict(i=i, other=j, what=self.rng.choice(["g", "g", "d"]))]

    def fresh(self) -> Any:
        i = self.pick(lambda i, r: r.parent is None)
        return i and [dict(i=i, what=self.rng.choice("dg"), seed=self.number())]

    def walk(self) -> Any:
        i = self.pick(lambda i, r: r.parent is not None)
        return i and [
            dict(i=i, seed=self.number(), what=self.rng.choice(["d", "d", "g", "both"]), visit=self.rng.random() < 0.3)
        ]

    def view(self) -> Any:
        return [dict(i=self.pick(lambda i, r: r.parent is None))] if self.m.vars else None

    def unview(self) -> Any:
        return [{}]


def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """True if the shapes broadcast."""
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


def run(seed: int, steps: list[Step]) -> None:
    """One random graph; its steps are put into `steps` before they are done."""
    chooser = Chooser(seed)
    with context(chooser.double):
        m = Runner(chooser.double)
        with contextlib.suppress(Stop):
            grow(chooser, m, steps)
        finish(m)


def grow(chooser: Chooser, m: Runner, steps: list[Step]) -> None:
    for _ in range(chooser.rng.randint(10, 60)):
        step = chooser.step(m)
        if step is None:
            continue
        steps.append(step)
        if not m.do(step):
            steps.pop()
    steps.append(("check_all", {}))
    m.do(steps[-1])


def replay(double: bool, steps: list[Step]) -> None:
    """Does these steps, leaving out what makes no sense."""
    with context(double):
        m = Runner(double)
        with contextlib.suppress(Stop):
            for step in steps:
                m.do(step)
        finish(m)


def finish(m: Runner) -> None:
    m.do_fusion(True)
    m.do_threads(1)
    m.finish()
