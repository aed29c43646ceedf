"""One process of random graphs that hooks, threads and shapes change at any time: prints each number before its graph.

Values are not compared, as tests/machine does: whatever happens is a value or an error of ours, and the process lives.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import random
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

SHAPES: list[tuple[int, ...]] = [(2, 3), (3, 3), (3, 2), (3,), (1, 3), (), (2, 3, 4, 4), (1, 2, 5), (0, 3), (64, 3)]
HUGE: list[tuple[int, ...]] = [(100000, 3), (3, 70000), (2, 3, 200, 201)]
TYPES = ["f4", "f8", "f2", "i4", "u1", "?"]
# What a program may do wrong: the rest is a fault of the engine.
ALLOWED = (nn.Error, TypeError, ValueError, IndexError, AttributeError, MemoryError, RuntimeError)

ONE: list[Callable[[Any], Any]] = [
    F.exp, F.tanh, F.sin, F.relu, F.sigmoid, F.identity, F.sum, F.mean, F.max, F.abs, F.dropout, F.unlink,
    lambda x: F.reshape(x, (-1,)),
    lambda x: F.reshape(x, (-1,), inplace=False),
    lambda x: F.transpose(x, tuple(range(x.ndim))[::-1]),
    lambda x: F.softmax(x, axis=x.ndim - 1),
    lambda x: F.sum(x, axis=0, keepdims=True),
    lambda x: F.max(x, axis=0),
    lambda x: F.broadcast(x, (4, *x.shape)),
    lambda x: F.pad(x, (1, 2)),
    lambda x: F.pad(x, (1, 1), mode="reflect"),
    lambda x: F.flip(x, axes=[0]),
    lambda x: F.layer_normalization(x, None, None),
    lambda x: F.average_pooling(x, (2,) * 2),
    lambda x: F.max_pooling(x, (2,) * 2),
    lambda x: F.norm(x, axis=0),
    lambda x: F.split(x, axis=0),
    lambda x: F.slice(x, start=(0,), stop=(1,), step=(1,)),
    lambda x: PF.affine(x, 3, name="affine"),
    lambda x: PF.batch_normalization(x, name="bn"),
    lambda x: PF.convolution(x, 2, (2, 2), name="conv"),
    lambda x: x[0],
    lambda x: x[::-1],
    lambda x: x * 0.5 + 1,
    lambda x: x**2,
]  # fmt: skip
TWO: list[Callable[[Any, Any], Any]] = [
    F.add2, F.sub2, F.mul2, F.div2, F.maximum2, F.pow2, F.assign, F.batch_matmul, F.affine, F.squared_error,
    F.concatenate, F.stack, F.sink, F.gather, F.sigmoid_cross_entropy, F.softmax_cross_entropy, F.embed,
    lambda a, b: F.where(F.greater(a, b), a, b),
    lambda a, b: F.add2(a, b, inplace=True),
    lambda a, b: F.gather_nd(a, b),
    lambda a, b: F.scatter_add(a, b, a, axis=0),
    lambda a, b: F.convolution(a, b),
    lambda a, b: a @ b,
]  # fmt: skip


class Stop(Exception):
    """What a hook raises."""


class Program:
    """Variables, and what may be done with them: by the script, by its hooks, and by threads beside it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.pool: list[Any] = [self.leaf() for _ in range(3)]
        self.kept: list[Any] = []
        self.depth = threading.local()

    def shape(self) -> tuple[int, ...]:
        return self.rng.choice(HUGE if self.rng.random() < 0.03 else SHAPES)

    def leaf(self) -> Any:
        values = np.random.default_rng(self.rng.randrange(100)).normal(size=self.rng.choice(SHAPES[:4] * 2 + SHAPES))
        values = np.asarray(values).astype(self.rng.choice(["f4"] * 8 + TYPES))
        return nn.Variable.from_numpy_array(values, need_grad=self.rng.random() < 0.8)

    def some(self, made: bool = False) -> Any:
        """A variable of the pool, or one that is reached from it; of those that functions made, if there are any."""
        pool = list(self.pool)
        pool = [v for v in pool if v.parent is not None] or pool if made else pool
        v = self.rng.choice(pool[-6:] if self.rng.random() < 0.7 else pool)
        while v.parent is not None and self.rng.random() < 0.3:
            v = self.rng.choice([v, *v.parent.inputs])
        return v

    def grow(self) -> None:
        if self.rng.random() < 0.2:
            self.pool.append(self.leaf())
            return
        one = self.rng.random() < 0.6
        made = self.rng.choice(ONE)(self.some()) if one else self.rng.choice(TWO)(self.some(), self.some())
        self.take(made if isinstance(made, (list, tuple)) else [made])

    def take(self, made: Any) -> None:
        self.pool.extend(v for v in made if v is not None)

    def hook(self, f: Any = None) -> None:
        """Now and then something is changed in it, or it raises."""
        chance = self.rng.random()
        if chance < 0.02:
            raise Stop
        if chance < 0.4:
            with contextlib.suppress(*ALLOWED):
                own = [*f.inputs, *f.outputs] if f is not None and self.rng.random() < 0.6 else None
                self.change(self.rng.choice(own) if own else self.some())

    def hooks(self, names: tuple[str, str]) -> dict[str, Any]:
        return {name: self.hook for name in names if self.rng.random() < 0.5}

    def run(self) -> None:
        """One of the ways to run graphs; hooks may do so too, but not for ever."""
        depth = getattr(self.depth, "now", 0)
        if depth > 2:
            return
        self.depth.now = depth + 1
        try:
            flags = {k: self.rng.random() < 0.3 for k in ("clear_buffer", "clear_no_need_grad")}
            self.run_one(self.some(made=True), flags)
        finally:
            self.depth.now = depth

    def run_one(self, y: Any, flags: dict[str, bool]) -> None:
        hooks = self.hooks(("function_pre_hook", "function_post_hook"))
        ways: list[Callable[[], Any]] = [
            lambda: y.forward(**flags, **hooks),
            lambda: nn.forward_all([y, self.some(made=True)], **flags, **hooks),
            lambda: y.backward(self.rng.choice([1, None, 0.5]), clear_buffer=flags["clear_buffer"], **hooks),
            lambda: (y.forward(**flags), y.backward(clear_buffer=flags["clear_buffer"], **hooks)),
            lambda: self.take(nn.grad([y], [self.some()], bind_grad_output=self.rng.random() < 0.3)),
            lambda: y.visit(lambda f: self.hook(f)),
            lambda: self.step(y),
        ]
        self.rng.choice(ways)()

    def step(self, y: Any) -> None:
        solver = self.rng.choice([S.Sgd, S.Adam])()
        solver.set_parameters({"x": self.some(), "y": self.some(), **nn.get_parameters()})
        solver.zero_grad()
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True, **self.hooks(("function_pre_hook", "function_post_hook")))
        solver.update(**self.hooks(("update_pre_hook", "update_post_hook")))

    def change(self, v: Any) -> None:
        """Something that changes a variable, its arrays or its graph."""
        other = self.some()
        ways: list[Callable[[], Any]] = [
            lambda: v.reset_shape(self.shape(), True),
            lambda: v.reset_shape(self.shape(), True),
            lambda: (v.reset_shape(self.shape(), True), v.reset_shape(other.shape, True)),
            lambda: setattr(v, "d", np.ones(self.rng.choice([v.shape, self.shape()]))),
            lambda: setattr(v, "g", self.rng.choice([0, 1, other.d])),
            lambda: setattr(v, "data", self.rng.choice([other.data, nn.NdArray(self.shape())])),
            lambda: setattr(v, "grad", self.rng.choice([other.grad, other.data, nn.NdArray(self.shape())])),
            lambda: v.data.cast(np.dtype(self.rng.choice(TYPES))),
            lambda: self.rng.choice([v.data, v.grad]).clear(),
            lambda: self.rng.choice([v.data, v.grad]).zero(),
            lambda: v.data.copy_from(other.data),
            lambda: self.kept.append(self.rng.choice([lambda: v.d, lambda: v.g, lambda: v.data, lambda: v.grad])()),
            lambda: self.kept.append(v.data.narrow(0, 0, 1)),
            lambda: self.rng.choice([v.d, v.g]).fill(2),
            lambda: setattr(v, "need_grad", self.rng.random() < 0.5),
            lambda: setattr(v, "persistent", self.rng.random() < 0.5),
            lambda: setattr(v, "recompute", self.rng.random() < 0.5),
            lambda: setattr(v, "parent", self.rng.choice([None, other.parent])),
            lambda: setattr(v, "info", self.rng.choice([None, other, [v]])),
            lambda: v.rewire_on(other),
            v.clear_all_graph_links,
            lambda: self.pool.append(v.unlinked(need_grad=True)),
            lambda: self.pool.append(v.reshape((-1,), unlink=self.rng.random() < 0.5)),
            lambda: self.kept.clear(),
            lambda: self.pool.__delitem__(slice(0, max(0, len(self.pool) - 4))),
            lambda: gc.collect(0),
            lambda: nn.set_num_threads(self.rng.choice([1, 2, 4])),
            lambda: nn.clear_parameters(),
            self.grow,
            self.run,
        ]  # fmt: skip
        self.rng.choice(ways)()

    def play(self, steps: int, likely: tuple[Callable[[], Any], ...], wrong: list[str]) -> None:
        for _ in range(steps):
            try:
                self.rng.choice(likely)()
            except (Stop, *ALLOWED) as e:
                if "internal error" in str(e) or "panic" in type(e).__name__.lower():
                    wrong.append(f"{type(e).__name__}: {e}")
            except BaseException as e:
                wrong.append(f"{type(e).__name__}: {e}")

    def anything(self) -> None:
        self.change(self.some())


def played(seed: int) -> list[str]:
    """What was wrong with a program, if anything."""
    rng = random.Random(seed)
    program, wrong = Program(seed), []
    dynamic = nn.auto_forward() if rng.random() < 0.2 else contextlib.nullcontext()
    with dynamic:
        program.play(8, (program.grow,), wrong)
        mixed = (program.grow, program.run, program.run, program.anything)
        beside = [
            threading.Thread(target=program.play, args=(15, (program.anything, program.run), wrong))
            for _ in range(rng.choice([0, 0, 1, 2]))
        ]
        for t in beside:
            t.start()
        program.play(15, mixed, wrong)
        for t in beside:
            t.join()
    nn.clear_parameters()
    return wrong


def main() -> None:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    nn.memory.set_limit(1 << 30)
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        for seed in range(first, first + count):
            print(seed, flush=True)
            faulthandler.dump_traceback_later(60, exit=True)
            for wrong in played(seed)[:3]:
                print(f"{seed} {wrong}".replace("\n", " "), flush=True)
    faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
