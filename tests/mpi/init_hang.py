"""Rank 1 is there for MPI, and never comes to `init`; rank 2 comes later than rank 0.

With the argument "again" all have come to a first one's, and those who wait for the second one catch the error.
"""

from __future__ import annotations

import contextlib
import sys
import time

from mpi4py import MPI

import nnrs as nn
import nnrs.communicators as C

rank, again = MPI.COMM_WORLD.rank, sys.argv[1:] == ["again"]
if again:
    C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=60).init()
if rank == 1:
    time.sleep(1000)
time.sleep(0.3 * (rank == 2))
with contextlib.suppress(C.CommunicatorError) if again else contextlib.nullcontext():
    C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=0.5).init()
