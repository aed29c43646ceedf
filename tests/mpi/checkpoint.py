"""A training of several processes that a signal to one of them stops, and that goes on in others as if it had not.

mpirun -n 2 python checkpoint.py FOLDER stop    # one process signals itself in its step 4: all save and stop
mpirun -n 2 python checkpoint.py FOLDER go on   # until step 9, from the checkpoint on or from the beginning
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
from nnrs.utils.data_iterator import data_iterator_simple

comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
comm.init()
nn.random.set_function_seed(7 + comm.rank)
values = np.random.RandomState(0).rand(40, 3).astype(np.float32)
data = data_iterator_simple(lambda i: (values[i], [i % 3]), 40, 4, shuffle=True).slice(None, comm.size, comm.rank)
x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
loss = F.mean(F.softmax_cross_entropy(PF.affine(F.dropout(F.tanh(PF.affine(x, 8, name="a")), 0.3), 3, name="b"), t))
solver = S.Adam(0.01)
solver.set_parameters(nn.get_parameters())

points = nn.checkpoint.Checkpoints(sys.argv[1], solver, data, communicator=comm)
begin, _ = points.resume()
with points.stop_on() as stop:
    for step in range(begin, 9):
        x.d, t.d = data.next()
        loss.forward()
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        comm.all_reduce([p.grad for p in nn.get_parameters().values()], division=True)
        solver.update()
        if sys.argv[2] == "stop" and step == 4 and comm.rank == comm.size - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        if stop.asked():
            points.save(step + 1)
            break
    else:
        sums = [float(np.abs(p.d).sum()).hex() for p in nn.get_parameters().values()]
        print(f"rank {comm.rank} from {begin}: {float(loss.d).hex()} {' '.join(sums)}", flush=True)
