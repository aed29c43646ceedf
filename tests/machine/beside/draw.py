"""Draws programs: lists of steps over numbered variables. What makes no sense is left out when they are played."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

Step = tuple[str, dict[str, Any]]

UNARY = (
    "sin",
    "cos",
    "tanh",
    "sigmoid",
    "relu",
    "identity",
    "mul_scalar",
    "add_scalar",
    "leaky_relu",
    "pow_scalar",
    "exp",
)
BINARY = ("add2", "sub2", "mul2", "maximum2", "add_n", "stack0", "concatenate0")
OTHERS = ("reshape", "transpose", "sum", "softmax", "split", "affine", "max")
KINDS = {
    "leaf": 1.5, "unary": 8, "binary": 7, "other": 4, "sink": 1, "forward": 9, "backward": 8, "write": 4,
    "write_grad": 2, "need": 1, "persistent": 1, "recompute": 1, "rewire": 1, "unlink": 1, "share": 0.7, "fresh": 0.4,
    "hold": 3, "release": 1, "drop": 5, "grad": 1.5, "see": 3, "walk": 4, "helper": 3,
}  # fmt: skip
ALWAYS, NEVER = (True, True, True, 1, np.True_, "x"), (False, False, False, 0, np.False_, "")


class Chooser:
    """Chooses steps without knowing what will have come of those before."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.count = 0
        self.kinds = {k: w * self.rng.choice([0.2, 1, 1, 3]) for k, w in KINDS.items()}
        self.auto = self.rng.choice([0.0, 0.0, 0.0, 0.2, 1.0])
        self.alive: list[int] = []
        self.leaves: list[int] = []
        self.arrays: list[int] = []

    def program(self) -> list[Step]:
        steps = self.leaf() + self.leaf()
        for _ in range(self.rng.randint(8, 45)):
            kind = self.rng.choices(list(self.kinds), list(self.kinds.values()))[0]
            steps += getattr(self, kind)()
        return [*steps, ("see", {})]

    def new(self, keep: bool = True) -> int:
        self.count += 1
        if keep:
            self.alive.append(self.count)
        return self.count

    def pick(self) -> int:
        a, b = self.rng.choice(self.alive), self.rng.choice(self.alive)
        return max(a, b) if self.rng.random() < 0.6 else a

    def truth(self, likely: float) -> Any:
        return self.rng.choice(ALWAYS if self.rng.random() < likely else NEVER)

    def leaf(self) -> list[Step]:
        # auto_forward without any need of gradients keeps no history in nnrs: docs/migration.md, "auto_forward"
        need = self.auto > 0 or self.rng.random() < 0.75
        i = self.new()
        self.leaves.append(i)
        shape = self.rng.choice([(2, 3), (2, 3), (2, 3), (3, 2), (3, 3), (3,)])
        return [("leaf", dict(new=i, shape=shape, seed=self.rng.randrange(1 << 30), need=need))]

    def apply(self, op: str, x: list[int], args: dict[str, Any] | None = None) -> list[Step]:
        auto, mark = self.rng.random() < self.auto, self.rng.random() < 0.08
        new = [self.new() for _ in range(3 if op == "split" else 1)]
        return [("apply", dict(new=new, op=op, x=x, args=args or {}, auto=auto, mark=mark))]

    def unary(self) -> list[Step]:
        op = self.rng.choice(UNARY)
        args = {"mul_scalar": {"val": -1.5}, "add_scalar": {"val": 0.7}, "pow_scalar": {"val": 2.0}}.get(op)
        return self.apply(op, [self.pick()], args)

    def binary(self) -> list[Step]:
        return self.apply(self.rng.choice(BINARY), [self.pick(), self.pick()])

    def other(self) -> list[Step]:
        op = self.rng.choice(OTHERS)
        return self.apply(op, [self.pick()] + [self.pick()] * (op == "affine"))

    def sink(self) -> list[Step]:
        x = [self.pick() for _ in range(self.rng.randint(1, 3))]
        (made,) = self.apply("sink", x, {"one_input_grad": self.truth(0.3)})
        (y,) = made[1]["new"]
        run = [("forward", self.flags(roots=[y]))]
        sets: list[Step] = [("write_grad", dict(i=i, value=self.rng.choice([2.0, -1.0]))) for i in x]
        back = ("backward", dict(i=y, seed=1, clear_buffer=self.truth(0.4), hooks=False))
        self.alive.remove(y)
        return [made, *(run + sets if self.rng.random() < 0.7 else sets + run), back, ("see", {}), ("drop", dict(i=y))]

    def flags(self, roots: list[int]) -> dict[str, Any]:
        a, b = self.rng.choice([(False, False)] * 3 + [(False, True)] * 2 + [(True, False), (True, True)])
        hooks = self.rng.random() < 0.2
        return dict(
            roots=roots, clear_buffer=self.truth(float(a)), clear_no_need_grad=self.truth(float(b)), hooks=hooks
        )

    def forward(self) -> list[Step]:
        roots = [self.pick()] if self.rng.random() < 0.7 else list({self.pick(), self.pick(), self.pick()})
        return [("forward", self.flags(roots))]

    def backward(self) -> list[Step]:
        i = self.pick()
        seed = self.rng.choice([1, 1, 2.5, None, "array"])
        steps: list[Step] = [
            ("backward", dict(i=i, seed=seed, clear_buffer=self.truth(0.4), hooks=self.rng.random() < 0.2))
        ]
        return ([("forward", self.flags([i]))] if self.rng.random() < 0.7 else []) + steps

    def helper(self) -> list[Step]:
        made = self.unary()
        (y,) = made[0][1]["new"]
        self.alive.remove(y)
        roots = [y] if self.rng.random() < 0.6 else [self.pick(), y]
        return [*made, ("forward", self.flags(roots)), ("drop", dict(i=y))]

    def write(self) -> list[Step]:
        i = self.rng.choice(self.leaves) if self.rng.random() < 0.85 else self.pick()
        return [("write", dict(i=i, seed=self.rng.randrange(1 << 30)))]

    def write_grad(self) -> list[Step]:
        return [("write_grad", dict(i=self.pick(), value=self.rng.choice([0.0, 0.0, 2.0])))]

    def need(self) -> list[Step]:
        return [("need", dict(i=self.pick(), value=self.truth(0.5)))] if not self.auto else []

    def persistent(self) -> list[Step]:
        return [("persistent", dict(i=self.pick(), value=self.truth(0.7)))]

    def recompute(self) -> list[Step]:
        return [("recompute", dict(i=self.pick(), value=self.truth(0.7)))]

    def rewire(self) -> list[Step]:
        return [("rewire", dict(i=self.pick(), other=self.pick()))]

    def unlink(self) -> list[Step]:
        i = self.pick()
        return [("unlink", dict(new=self.new(), i=i, need=self.rng.choice([None, True, False])))]

    def share(self) -> list[Step]:
        return [
            (
                "share",
                dict(i=self.rng.choice(self.leaves), other=self.pick(), what=self.rng.choice(["grad", "grad", "data"])),
            )
        ]

    def fresh(self) -> list[Step]:
        what, seed = self.rng.choice(["grad", "data"]), self.rng.randrange(1 << 30)
        return [("fresh", dict(i=self.rng.choice(self.leaves), what=what, seed=seed))]

    def hold(self) -> list[Step]:
        self.arrays.append(self.new(keep=False))
        i = self.pick()
        drop = self.drop(i) if self.rng.random() < 0.3 else []
        return [("hold", dict(new=self.arrays[-1], i=i, what=self.rng.choice(["data", "grad"]))), *drop]

    def release(self) -> list[Step]:
        return [("release", dict(k=self.arrays.pop(self.rng.randrange(len(self.arrays)))))] if self.arrays else []

    def drop(self, i: int | None = None) -> list[Step]:
        if len(self.alive) < 4:
            return []
        i = i or self.pick()
        self.alive.remove(i)
        self.leaves = [k for k in self.leaves if k != i] or self.alive[:1]
        return [("drop", dict(i=i))]

    def grad(self) -> list[Step]:
        y, x = self.pick(), list({self.pick(), self.rng.choice(self.leaves)})
        new = [self.new() for _ in x]
        auto = self.rng.random() < self.auto
        steps: list[Step] = [("grad", dict(new=new, y=y, x=x, bind=self.truth(0.5), auto=auto))]
        if self.rng.random() < 0.5:
            (made,) = self.apply("pow_scalar", [new[0]], {"val": 2.0})
            steps += [made, *(step for i in new for step in self.drop(i)), ("forward", self.flags(made[1]["new"]))]
        return steps

    def see(self) -> list[Step]:
        return [("see", {})]

    def walk(self) -> list[Step]:
        return [("walk", dict(i=self.pick(), seed=self.rng.randrange(1 << 30)))]
