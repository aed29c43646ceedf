"""A backward run that fails on one rank, with callbacks of one communicator; its hook sums by another one, which
another thread uses afterwards. The arguments are the ranks that train in a thread of their own, and those that
evaluate in one. With a third one each step has a new thread, and nothing is evaluated.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F

in_threads = [[int(rank) for rank in ranks] for ranks in sys.argv[1:3]]
first, second = (C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=20) for _ in range(2))
for comm in (first, second):
    comm.init()
rank, size = first.rank, first.size
pools = [ThreadPoolExecutor(1) for _ in range(2)]
has_new_threads = len(sys.argv) > 3
w = nn.Variable.from_numpy_array(np.ones(3, np.float32), need_grad=True)
y = F.sum(F.tanh(w * 0.0) + w * float(rank + 1))
callback = first.all_reduce_callback([w.grad], 1)


def total(value):
    x = nn.NdArray.from_numpy_array(np.float32([value]))
    second.all_reduce(x)
    return x.data[0]


def fails(number):
    return number in (0, 2)


def step(number):
    """Whether it was right."""
    calls = []

    def hook(f):
        calls.append(f)
        if len(calls) == 1 and rank == 1 and fails(number):
            raise OSError("a bad sample")
        if len(calls) == 2:
            assert total(10**number) == size * 10**number

    w.grad.zero()
    y.forward()
    try:
        y.backward(communicator_callbacks=callback, function_post_hook=hook)
    except (OSError, ValueError) as error:
        assert "a bad sample" in str(error)
        return False
    assert (w.g == size * (size + 1) / 2).all()
    return True


def on_its_thread(which, function, *args):
    if rank not in in_threads[which]:
        return function(*args)
    pool = ThreadPoolExecutor(1) if has_new_threads else pools[which]
    return pool.submit(function, *args).result()


for number in range(5):
    assert on_its_thread(0, step, number) is not fails(number), number
    assert has_new_threads or on_its_thread(1, total, 100 + number) == size * (100 + number)
print(f"rank {rank} is well", flush=True)
