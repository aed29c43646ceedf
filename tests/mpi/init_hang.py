"""Rank 1 is there, for MPI and by torchrun, and never comes to `init`; rank 2 comes later than rank 0."""

from __future__ import annotations

import os
import time

import nnrs as nn
import nnrs.communicators as C

if "RANK" in os.environ:
    rank = int(os.environ["RANK"])
else:
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
if rank == 1:
    time.sleep(1000)
time.sleep(0.3 * (rank == 2))
C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=0.5).init()
