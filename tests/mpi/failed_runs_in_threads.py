"""Random backward runs of which some fail, with three communicators and threads that take turns.

python failed_runs_in_threads.py SEED STEPS

Each step is made by a random thread of each rank, old or new. Its callbacks are of some communicators, its hooks sum by
any; some ranks make a run of their own before. Who fails raises; the others are told, all are at the same step again,
and numbers are right: each sum has the step in it.
"""

from __future__ import annotations

import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F

seed, steps = int(sys.argv[1]), int(sys.argv[2])
comms = [C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=20) for _ in range(3)]
for comm in comms:
    comm.init()
rank, size = comms[0].rank, comms[0].size
same, own = random.Random(seed), random.Random(seed * 100 + rank)  # the first draws alike on all ranks
for comm in comms:
    for r in range(size):
        comm.new_group((f"only {r}", [r]))
w = nn.Variable.from_numpy_array(np.ones(3, np.float32), need_grad=True)
y = F.sum(F.tanh(F.sin(w * 0.0)) + w * float(rank + 1))
PLACES = 5  # functions
pool = ThreadPoolExecutor(1)


def in_some_thread(function, *args):
    kind = own.choice(["main", "main", "pool", "new"])
    if kind == "main":
        return function(*args)
    return (pool if kind == "pool" else ThreadPoolExecutor(1)).submit(function, *args).result()


def total(comm, value):
    x = nn.NdArray.from_numpy_array(np.float64([value + rank / 8]))
    comm.all_reduce(x)
    return x.data[0] == size * value + sum(r / 8 for r in range(size))


def run(number, callbacks, sums, fails_at, slow):
    """Why it was left out; None where it was right."""
    calls = []

    def hook(f):
        place = len(calls)
        calls.append(f)
        if place == fails_at:
            raise OSError("a bad sample")
        if (place, rank) == slow:
            time.sleep(0.05)
        for at, which in sums:
            if at == place:
                assert total(comms[which], number), f"a wrong sum in step {number}"

    w.grad.zero()
    y.forward()
    try:
        y.backward(communicator_callbacks=callbacks, function_post_hook=hook)
    except (OSError, ValueError) as error:
        assert "a bad sample" in str(error), error
        return str(error)
    return None


def alone(number, comm):
    assert run(number, [comm.all_reduce_callback([w.grad], 1, group=f"only {rank}")], [], None, None) is None


def step(number, which, sums, fails_at, slow):
    callbacks = [comms[i].all_reduce_callback([w.grad] if i == which[0] else [], 1) for i in which]
    failed = run(number, callbacks, sums, fails_at, slow)
    if failed is None:
        assert (w.g == size * (size + 1) / 2).all(), f"wrong gradients in step {number}"
    return failed


for number in range(1, steps + 1):
    which = same.sample(range(3), same.choice([1, 1, 2]))
    sums = [(same.randrange(PLACES), same.randrange(3)) for _ in range(same.choice([0, 1, 1, 2]))]
    fail = {r: same.randrange(PLACES) for r in range(size) if same.random() < 0.25} if same.random() < 0.5 else {}
    slow, solo, evaluates = (same.randrange(PLACES), same.randrange(size)), same.randrange(4 * size), same.randrange(6)
    if rank == solo:
        in_some_thread(alone, number, own.choice(comms))
    failed = in_some_thread(step, number, which, sums, fail.get(rank), slow)
    assert (failed is not None) == bool(fail), (number, failed, fail)
    if evaluates < 3:
        assert in_some_thread(total, comms[evaluates], 1000 + number), f"a wrong sum behind step {number}"
pool.shutdown()
print(f"rank {rank} is well", flush=True)
