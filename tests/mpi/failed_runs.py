"""Random backward runs of which some fail: callbacks of several groups and communicators, sums and runs within the run.

python failed_runs.py SEED STEPS

Who fails raises; the others are told, and all are at the same step again, with the right numbers.
"""

from __future__ import annotations

import random
import sys

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F

seed, steps = int(sys.argv[1]), int(sys.argv[2])
both = [C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=60) for _ in range(2)]
for comm in both:
    comm.init()
rank, size = both[0].rank, both[0].size
same = random.Random(seed)  # draws alike on all ranks
groups = {"world": list(range(size)), **{f"g{i}": same.sample(range(size), same.randint(1, size)) for i in range(3)}}
for name in list(groups)[1:]:
    for comm in both:
        comm.new_group((name, groups[name]))


class Failure(Exception):
    pass


class FailsAtTheEnd(C.CommunicatorBackwardCallback):
    def on_finish_backward(self):
        raise Failure("end")


def leaf():
    v = nn.Variable.from_numpy_array(np.ones(same.choice([1, 3, 5000]), np.float32), need_grad=True)
    v.grad.zero()
    return v


def over(group, values):
    """The sum of a group's values on each of its ranks, and the others' own."""
    total = sum(values[r] for r in groups[group])
    return [total if r in groups[group] else value for r, value in enumerate(values)]


def callback(group, *variables):
    grads = [v.grad for v in variables]
    return same.choice(both).all_reduce_callback(grads, same.choice([1, 1 << 20]), group=group)


class Step:
    """What all do in a step, and how this rank fails in it, if it does."""

    def __init__(self, number):
        self.number = number
        self.w, u, self.q = leaf(), leaf(), leaf()
        self.y = F.sum(F.tanh(self.w * 0.0)) + F.sum(self.w * float(rank + 1)) + F.sum(u * 1.0)
        self.z = F.sum(F.tanh(self.q * 0.0) + self.q * float(rank + 1))
        self.second, self.inner_group, self.sum_group = (same.choice(list(groups)) for _ in range(3))
        self.outer = [callback("world", self.w, u), callback(self.second, self.w)]
        self.inner, self.summing = callback(self.inner_group, self.q), same.choice(both)
        self.acts = {same.randint(1, 7): same.choice(["run", "sum"]) for _ in range(same.randint(0, 4))}
        self.catches = same.random() < 0.3
        failing = same.sample(range(size), same.randint(1, size)) if same.random() < 0.4 else []
        self.failures = {r: (same.choice(["outer", "inner", "end"]), same.randint(1, 7)) for r in failing}
        self.how, self.when = self.failures.get(rank, (None, 0))
        self.count = 0

    def hook(self, f):
        self.count += 1
        if self.how == "outer" and self.count == self.when:
            raise Failure("outer")
        act = self.acts.get(self.count)
        if act == "sum":
            x = nn.NdArray.from_numpy_array(np.float32([self.number + rank]))
            self.summing.all_reduce(x, group=self.sum_group)
            assert x.data[0] == over(self.sum_group, [self.number + r for r in range(size)])[rank]
        elif act == "run":
            try:
                self.run_within()
            except (Failure, ValueError):
                if not self.catches:
                    raise

    def run_within(self):
        def hook(f):
            if self.how == "inner":
                raise Failure("inner")

        self.q.grad.zero()
        self.z.forward()
        self.z.backward(communicator_callbacks=self.inner, function_post_hook=hook)
        assert (self.q.g == over(self.inner_group, range(1, size + 1))[rank]).all()

    def run(self):
        """Whether it was right; False where it has failed."""
        callbacks = [*self.outer, FailsAtTheEnd()] if self.how == "end" else self.outer
        try:
            self.y.forward()
            self.y.backward(communicator_callbacks=callbacks, function_post_hook=self.hook)
        except (Failure, ValueError) as error:
            assert self.failures, error
            return False
        assert (self.w.g == over(self.second, over("world", range(1, size + 1)))[rank]).all()
        return True


for number in range(steps):
    own = np.float32([number, Step(number).run()])
    rows = [nn.NdArray((2,)) for _ in range(size)]
    both[0].all_gather(nn.NdArray.from_numpy_array(own), rows)
    assert all((row.data == own).all() for row in rows), (number, [row.data for row in rows])
print(f"rank {rank} is well")
