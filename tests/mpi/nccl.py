"""Processes with a GPU each: training with gradients that are summed during backward, and what goes wrong.

Run with an emulated GPU for each process (NNRS_CUDA=emulate:2 NNRS_CUDA_LIBRARIES=1), or with real ones.
"""

from __future__ import annotations

import os
import signal
import sys

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from nnrs._communication.nccl import DeviceExchange
from nnrs.ext import cuda

BATCH, STEPS = 8, 6
rng = np.random.default_rng(0)
IMAGES = rng.normal(size=(STEPS, BATCH, 1, 6, 6)).astype("float32")
LABELS = rng.integers(0, 4, (STEPS, BATCH, 1))


def network(size):
    nn.clear_parameters()
    nn.seed(5)
    x, t = nn.Variable((size, 1, 6, 6)), nn.Variable((size, 1))
    h = F.max_pooling(F.relu(PF.convolution(x, 3, (3, 3), pad=(1, 1), name="c")), (2, 2))
    h = F.tanh(PF.affine(h, 7, name="a"))
    return x, t, F.mean(F.softmax_cross_entropy(PF.affine(h, 4, name="b"), t))


def train(part, callback=None, waits=lambda: 0):
    """The parameters after some steps on a part of each batch, and how often backward waited for the GPU."""
    x, t, loss = network(BATCH // (2 if callback else 1))
    parameters = nn.get_parameters()
    solver = S.Adam(0.05)
    solver.set_parameters(parameters)
    reduce = callback and callback([p.grad for p in parameters.values()])
    waited = 0
    for images, labels in zip(IMAGES, LABELS, strict=True):
        x.d, t.d = images[part], labels[part]
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        before = waits()
        loss.backward(clear_buffer=True, communicator_callbacks=reduce)
        waited = waits() - before
        solver.update()
    return np.concatenate([p.d.ravel() for p in parameters.values()]), waited


def training(comm):
    """As one process with the whole batch; the same bits on both, and in each run; nobody waits for the GPU."""
    wanted, _ = train(slice(None))
    own = slice(comm.rank * BATCH // 2, (comm.rank + 1) * BATCH // 2)
    for deterministic, pack in ((True, 1), (True, 1000), (False, 30)):
        other = C.MultiProcessDataParallelCommunicator(comm._ctx, deterministic=deterministic)
        other.init()

        def callback(grads, c=other, p=pack):
            return c.all_reduce_callback(grads, p, division=True)

        found, waited = train(own, callback, lambda: cuda.host_waits(str(comm.rank)))
        np.testing.assert_allclose(found, wanted, atol=1e-4)
        assert waited == 0, waited
        both = [nn.NdArray((found.size,)) for _ in range(2)]
        comm.all_gather(nn.NdArray.from_numpy_array(found), both)
        np.testing.assert_array_equal(both[0].data, both[1].data)
        again, _ = train(own, callback)
        np.testing.assert_array_equal(found, again)


def dies(comm):
    """The second process ends when it has agreed, and before it comes to NCCL."""
    x = nn.NdArray.from_numpy_array(np.ones(5, "float32"))
    comm.all_reduce(x)
    if comm.rank == 1:
        DeviceExchange.all_reduce = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    try:
        comm.all_reduce(x)
    except C.CommunicatorError as error:
        sys.stdout.write(f"{error}\n")
        try:
            comm.barrier()
        except C.CommunicatorError as after:
            sys.stdout.write(f"{after}\n")
        sys.stdout.flush()


def same_gpu(comm):
    comm._ctx.device_id = "0"
    comm.barrier()
    comm.all_reduce(nn.NdArray.from_numpy_array(np.ones(5)))


def main():
    context = nn.ext_utils.get_extension_context("cudnn")
    comm = C.MultiProcessDataParallelCommunicator(context)
    comm.init()
    context.device_id = str(comm.local_rank)
    nn.set_default_context(context)
    {"training": training, "dies": dies, "same_gpu": same_gpu, "init": lambda comm: None}[sys.argv[1]](comm)
    sys.stdout.write(f"rank {comm.rank} is well\n")


main()
