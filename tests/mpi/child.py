"""Each rank starts a program that makes a communicator: that one is no rank, and says so; the ranks go on."""

from __future__ import annotations

import os
import subprocess
import sys

import nnrs as nn
import nnrs.communicators as C

comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
if sys.argv[1:]:
    if sys.argv[1] == "alone":
        for name in ("OMPI_COMM_WORLD_SIZE", "WORLD_SIZE"):
            os.environ.pop(name, None)
    try:
        comm.init()
        print(f"world of {comm.size}")
    except C.CommunicatorError as error:
        print(error)
    sys.exit()
comm.init()
is_by_mpi = "OMPI_COMM_WORLD_SIZE" in os.environ
foreign = {"RANK": "0", "MASTER_PORT": "29500"} if is_by_mpi else {"SLURM_PROCID": "0"}  # say nothing of the place
for how, said, more in (
    ("same", f"process {os.getpid()} is this rank", {}),
    ("same", f"process {os.getpid()} is this rank", foreign),
    ("alone", "world of 1", {}),
):
    child = [sys.executable, __file__, how]
    own = {**os.environ, **more}
    done = subprocess.run(child, check=True, capture_output=True, encoding="utf-8", timeout=60, env=own)
    assert said in done.stdout, done.stdout
comm.barrier()
print(f"rank {comm.rank} is well")
