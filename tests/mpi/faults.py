"""A process that fails in one of several ways while the others wait for it."""

from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F

comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
comm.init()
x = nn.NdArray.from_numpy_array(np.ones(10))
comm.all_reduce(x)
how, bad = sys.argv[1], comm.rank == 1
if how == "older":  # than another communicator, which has nothing to do
    newer = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
    newer.init()


def backward():
    v = nn.Variable.from_numpy_array([2.0], need_grad=True)
    y = F.sum(F.exp(v))
    y.forward()

    def hook(f):
        if bad:
            raise ValueError("a bad sample")

    y.backward(communicator_callbacks=comm.all_reduce_callback([v.grad], 1), function_post_hook=hook)


def another_group():
    comm.new_group(("pair", [0, 1]))
    comm.all_reduce(x, group="pair" if bad else "world")


FAULTS = {
    "kill": lambda: bad and os.kill(os.getpid(), signal.SIGKILL),
    "abort": lambda: bad and comm.abort(),
    "exit": lambda: bad and sys.exit(0),
    "older": lambda: bad and sys.exit(0),
    "raise": lambda: bad and [][1],
    "hang": lambda: bad and time.sleep(1000),
    "stop": lambda: bad and os.kill(os.getpid(), signal.SIGSTOP),
    "late": lambda: bad and time.sleep(0.3),
    "backward": backward,
    "group": another_group,
    "caught": lambda: bad and time.sleep(1000),
    "all": lambda: time.sleep(1000),
    "wait": lambda: bad and time.sleep(1000),
}
sys.stdout.write("started\n")
sys.stdout.flush()
FAULTS[how]()
begin = time.monotonic()
try:
    comm.all_reduce(x)
except C.CommunicatorError:
    sys.stdout.write(f"told after {time.monotonic() - begin:.2f} s\n")
    sys.stdout.flush()
    if how != "caught":
        raise
    try:
        comm.barrier()
    except C.CommunicatorError as error:
        sys.stdout.write(f"rank {comm.rank} goes on: {error}\n")
else:
    sys.stdout.write(f"rank {comm.rank} is well\n")
