"""A training that fails once, and that torchrun starts again."""

from __future__ import annotations

import os
import sys

import numpy as np

import nnrs as nn
import nnrs.communicators as C

comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
comm.init()
assert comm.local_rank == comm.rank == int(os.environ["RANK"])
x = nn.NdArray.from_numpy_array(np.full(3, comm.rank + 1.0))
comm.all_reduce(x)
assert (x.data == comm.size * (comm.size + 1) / 2).all()
restarts = os.environ["TORCHELASTIC_RESTART_COUNT"]
if comm.rank == 1 and restarts == "0":
    raise ValueError("only once")
comm.barrier()
sys.stdout.write(f"rank {comm.rank} is well after {restarts} restart\n")
