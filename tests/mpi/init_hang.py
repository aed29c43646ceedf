"""Rank 1 is there for MPI, and never comes to `init`; rank 2 comes later than rank 0."""

from __future__ import annotations

import time

from mpi4py import MPI

import nnrs as nn
import nnrs.communicators as C

rank = MPI.COMM_WORLD.rank
if rank == 1:
    time.sleep(1000)
time.sleep(0.3 * (rank == 2))
C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=0.5).init()
