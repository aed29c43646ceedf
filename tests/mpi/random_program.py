"""Random collectives, the same on all processes; each computes in NumPy what all of them have, and compares its own."""

from __future__ import annotations

import sys
import time

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F

TYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "bool"]
SHAPES = [(), (1,), (0,), (3, 5), (17,), (40001,)]


def total(values, divide):
    """The sum in the order given, rounded once."""
    kind = values[0].dtype
    summed = values[0].astype("float32") if kind == np.float16 else values[0].copy()
    for v in values[1:]:
        summed = summed + v
    if divide and kind.kind == "f":
        summed = summed / np.asarray(len(values), summed.dtype)
    elif divide and kind.kind == "i":
        summed = (summed - np.fmod(summed, len(values))) // len(values)
    return summed.astype(kind)


class Program:
    """The arrays of all processes, as NumPy's; and this process's as NdArrays, too."""

    def __init__(self, comm, seed):
        self.comm, self.rng = comm, np.random.default_rng(seed)
        self.groups = {"world": list(range(comm.size)), "pair": [2, 0], "one": [1]}
        self.all = [[self.draw(TYPES[i % 7], SHAPES[i % 6]) for i in range(14)] for _ in range(comm.size)]
        self.own = [nn.NdArray.from_numpy_array(a.copy()) for a in self.all[comm.rank]]

    def draw(self, kind, shape):
        values = self.rng.normal(size=shape) * 3
        return (values > 0 if kind == "bool" else np.asarray(values)).astype(kind)

    def step(self):
        group = str(self.rng.choice(list(self.groups)))
        ranks, divide, inplace = self.groups[group], bool(self.rng.integers(2)), bool(self.rng.integers(2))
        chosen = self.rng.choice(len(self.own), self.rng.integers(1, 5), replace=False).tolist()
        name = str(
            self.rng.choice(["all_reduce", "reduce", "bcast", "all_gather", "reduce_scatter", "backward", "barrier"])
        )
        end = int(self.rng.choice(ranks))
        getattr(self, name)(group, ranks, chosen, divide, inplace, end)
        return name

    def totals(self, ranks, i, divide):
        return total([self.all[r][i] for r in ranks], divide)

    def all_reduce(self, group, ranks, chosen, divide, inplace, end):
        self.comm.all_reduce([self.own[i] for i in chosen], divide, inplace, group)
        for i in chosen:
            summed = self.totals(ranks, i, divide)
            for r in ranks:
                self.all[r][i] = summed.copy()

    def reduce(self, group, ranks, chosen, divide, inplace, end):
        self.comm.reduce([self.own[i] for i in chosen], end, divide, inplace, group)
        for i in chosen:
            self.all[end][i] = self.totals(ranks, i, divide)

    def bcast(self, group, ranks, chosen, divide, inplace, end):
        self.comm.bcast([self.own[i] for i in chosen], end, inplace, group)
        for i in chosen:
            for r in ranks:
                self.all[r][i] = self.all[end][i].copy()

    def all_gather(self, group, ranks, chosen, divide, inplace, end):
        x = self.own[chosen[0]]
        into = [nn.NdArray.from_numpy_array(np.zeros(x.shape, x.dtype)) for _ in ranks]
        self.comm.all_gather(x, into, group)
        if self.comm.rank in ranks:
            for got, r in zip(into, ranks, strict=True):
                np.testing.assert_array_equal(got.data, self.all[r][chosen[0]])

    def reduce_scatter(self, group, ranks, chosen, divide, inplace, end):
        i = chosen[0]
        given = [nn.NdArray.from_numpy_array(np.roll(self.own[i].data, k)) for k in range(len(ranks))]
        self.comm.reduce_scatter(given, self.own[i], divide, group)
        summed = self.totals(ranks, i, divide)
        for k, r in enumerate(ranks):
            self.all[r][i] = np.roll(summed, k)

    def backward(self, group, ranks, chosen, divide, inplace, end):
        """The gradients of sums of products are the other factors; the last parameter is read twice."""
        shapes = [SHAPES[1 + i % 5] for i in chosen]
        factors = [[self.draw("float32", s) for s in shapes] for _ in range(self.comm.size)]
        parameters = [nn.Variable.from_numpy_array(np.ones(s, "float32"), need_grad=True) for s in shapes]
        own = [nn.Variable.from_numpy_array(f) for f in factors[self.comm.rank]]
        y = F.add_n(*[F.sum(F.exp(F.mul_scalar(p, 0)) * p * f) for p, f in zip(parameters, own, strict=True)])
        y = y + F.sum(parameters[-1] * own[-1])
        for p in parameters:
            p.grad.zero()
        grads, size, scale = (
            [p.grad for p in parameters],
            int(self.rng.integers(1, 50000)),
            float(self.rng.choice([1, 2])),
        )
        y.forward(clear_no_need_grad=True)
        y.backward(
            clear_buffer=True, communicator_callbacks=self.comm.all_reduce_callback(grads, size, divide, group, scale)
        )
        for i, p in enumerate(parameters):
            twice = 2 if i == len(parameters) - 1 else 1
            want = factors[self.comm.rank][i] * np.float32(twice)
            if self.comm.rank in ranks:
                want = total([factors[r][i] * np.float32(twice * scale) for r in ranks], divide)
            np.testing.assert_array_equal(p.g, want)

    def barrier(self, *rest):
        self.comm.barrier()

    def check(self, what):
        for i, (got, want) in enumerate(zip(self.own, self.all[self.comm.rank], strict=True)):
            assert got.dtype == want.dtype and got.shape == want.shape, (what, i)
            np.testing.assert_array_equal(got.data, want, err_msg=f"{what}, array {i}")


def main():
    comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
    comm.init()
    for name, ranks in (("pair", [2, 0]), ("one", [1])):
        comm.new_group((name, ranks))
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    with np.errstate(all="ignore"):
        for number in range(count):
            program = Program(comm, (seed, number))
            pause = np.random.default_rng((seed, number, comm.rank))
            for k in range(25):
                what = program.step()
                if pause.random() < 0.05:
                    time.sleep(0.002)
                program.check(f"seed {seed}, program {number}, step {k}: {what}")
    sys.stdout.write(f"rank {comm.rank} is well\n")


main()
