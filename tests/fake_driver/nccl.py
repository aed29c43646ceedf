"""Collectives by the way that they take to a real NCCL: streams, marks, watching. Two threads stand for processes.

Run with the fake driver (two devices) and its NCCL.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

import nnrs as nn
import nnrs.functions as F
from nnrs import _core
from nnrs._communication.nccl import NcclTransport
from nnrs.ext import cuda
from nnrs.ext_utils import get_extension_context
from thread_transport import run_threads


def gpu(number):
    return get_extension_context("cudnn", device_id=str(number))


def array(*values, dtype="float32"):
    return nn.NdArray.from_numpy_array(np.array(values, dtype))


def collectives(comm):
    r = comm.rank
    with nn.context_scope(gpu(r)):
        x, whole, large = array(1 + r, 5), array(-3 + r, 7, dtype="int32"), nn.NdArray((40000,))
        large.fill(r + 1)
        v = nn.Variable.from_numpy_array(np.float32([r, 2]))
        y = F.exp(v)
        y.forward()
        waits = cuda.host_waits(str(r))
        comm.all_reduce([x, whole, large], division=True)
        comm.all_reduce(y.data)
        comm.reduce(x, 1)
        comm.bcast(v.data, 1)
        rows, part = [array(0, 0), array(0, 0)], array(0, dtype="int32")
        comm.all_gather(array(r, r + 10), rows)
        comm.reduce_scatter([array(r, dtype="int32"), array(r + 5, dtype="int32")], part)
        assert cuda.host_waits(str(r)) == waits, "nobody waits"
    comm.barrier()  # who reads waits with the GIL, which the other one needs to come
    assert x.data.tolist() == ([1.5, 5] if r == 0 else [3, 10]), x.data
    assert whole.data.tolist() == [-2, 7] and (large.data == 1.5).all()
    np.testing.assert_allclose(y.d, [1 + np.e, 2 * np.exp(2)], rtol=1e-6)
    assert v.d.tolist() == [1, 2]
    assert [a.data.tolist() for a in rows] == [[0, 10], [1, 11]] and part.data.tolist() == [1 if r == 0 else 11]


def gradients(comm):
    with nn.context_scope(gpu(comm.rank)):
        v = nn.Variable.from_numpy_array(np.float32([comm.rank, 3]), need_grad=True)
        loss = F.sum(F.pow_scalar(v, 2))
        callback = comm.all_reduce_callback([v.grad], 1, division=True)
        for _ in range(3):
            v.grad.zero()
            loss.forward()
            loss.backward(communicator_callbacks=callback)
    comm.barrier()
    assert v.g.tolist() == [1, 6]


def one_that_does_not_come(timeout):
    """The other one of the group never asks: who waits for the GPU is told, and the group has ended."""
    name = _core.nccl_id(0)

    def work(comm):
        group = _core.NcclGroup(comm.rank, comm.rank, 2, name, "pair", timeout)
        if comm.rank == 1:
            return group
        x = array(1, 2)
        uses = (
            lambda: group.all_reduce([x], False, False, 1.0, True),
            lambda: x.data,
            lambda: group.bcast([x], 0, True),
        )
        begin, told = time.monotonic(), []
        for use in uses:
            try:
                use()
            except RuntimeError as error:
                assert "rank 0 of 2 in group 'pair'" in str(error), error
                assert "AllReduce (Sum) of 2 float32 (call 1)" in str(error), error
                told.append(True)
            else:
                told.append(False)
        # Who reads is told, unless the call itself was: an error may be found before that is back. Later calls are.
        assert told[2] and (told[0] or told[1]), told
        assert time.monotonic() - begin < 20
        return x.data is None

    run_threads(2, work)


def main():
    how, over = sys.argv[1], lambda t: NcclTransport(t, gpu(t.rank), 20.0)
    if how == "late":
        one_that_does_not_come(0.2)
    elif how == "broken":
        one_that_does_not_come(1000.0)
    else:
        for deterministic in (True, False):
            run_threads(2, collectives, over, deterministic=deterministic)
            run_threads(2, gradients, over, deterministic=deterministic)
    print("fine")


main()
