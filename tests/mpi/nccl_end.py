"""A program that ends while its communicator lives, held by what Python does not take apart at its end."""

from __future__ import annotations

import ctypes
import sys

import numpy as np

import nnrs as nn
import nnrs.communicators as C

context = nn.ext_utils.get_extension_context("cudnn")
comm = C.MultiProcessDataParallelCommunicator(context)
comm.init()
context.device_id = str(comm.local_rank)
ctypes.pythonapi.Py_IncRef(ctypes.py_object(comm))
for _ in range(3):
    comm.all_reduce(nn.NdArray.from_numpy_array(np.ones(5, "float32")))
print(f"rank {comm.rank} is well")
if sys.argv[1] == "raise" and comm.rank == 1:
    raise ValueError("at the end")
if sys.argv[1] == "exit":
    sys.exit(0)
