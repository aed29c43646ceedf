"""Rank 1 hangs before it comes to MPI."""

from __future__ import annotations

import os
import time

import nnrs as nn
import nnrs.communicators as C

if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
    time.sleep(1000)
C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=2).init()
