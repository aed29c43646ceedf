"""Two threads of each process, each with a communicator of its own over the same connections, and arrays of 4 MB."""

from __future__ import annotations

import sys
import threading

import numpy as np

import nnrs as nn
import nnrs.communicators as C

COUNT = 10**6 + 1
comms = [C.MultiProcessDataParallelCommunicator(nn.get_current_context()) for _ in range(2)]
for comm in comms:
    comm.init()
    comm.new_group(("ends", [comm.size - 1, 0]))
rank, size = comms[0].rank, comms[0].size
errors = []


def work(comm, number):
    """As a thread of the script: sums, and in a group of two a sum and an array for each."""
    try:
        for step in range(4):
            x = nn.NdArray.from_numpy_array(np.arange(COUNT, dtype="float32") % 7 + rank + 10 * number + step)
            comm.all_reduce(x)
            want = (np.arange(COUNT, dtype="float32") % 7 + 10 * number + step) * size + size * (size - 1) / 2
            np.testing.assert_array_equal(x.data, want)
            rows = [nn.NdArray((COUNT,)) for _ in range(2)]
            x.data = np.full(COUNT, rank + 100 * number)
            comm.all_gather(x, rows, group="ends")
            if rank in (0, size - 1):
                assert (rows[0].data == size - 1 + 100 * number).all() and (rows[1].data == 100 * number).all()
            comm.bcast(x, step % size)
            assert (x.data == step % size + 100 * number).all()
    except BaseException as error:
        errors.append(error)
        raise


threads = [threading.Thread(target=work, args=each) for each in zip(comms, (1, 2), strict=True)]
for t in threads:
    t.start()
for t in threads:
    t.join()
if errors:
    sys.exit("a thread has failed")
print(f"rank {rank} is well", flush=True)
