"""First and second derivatives, by `nn.grad`, of normalization over the batches of all processes."""

from __future__ import annotations

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F

comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context())
comm.init()
CUT = (0, 3, 5, 12)
whole = np.random.default_rng(0).normal(size=(CUT[comm.size], 4)).astype("float32")


def derivatives(x, normalize, moves):
    nn.clear_parameters()
    v = nn.Variable.from_numpy_array(x, need_grad=True)
    running = [nn.Variable.from_numpy_array(np.full((1, 4), k)) for k in (0.0, 1.0)] if moves else [None, None]
    y = F.sum(F.sin(normalize(v, None, None, *running) * 2))
    (first,) = nn.grad([y], [v])
    (second,) = nn.grad([F.sum(first * first)], [v])
    nn.forward_all([first, second])
    return first.d.copy(), second.d.copy()


def together(*args):
    return F.sync_batch_normalization(*args, comm)


own = slice(CUT[comm.rank], CUT[comm.rank + 1])
for moves in (False, True):
    wanted = derivatives(whole, F.batch_normalization, True)
    for got, want in zip(derivatives(whole[own], together, moves), wanted, strict=True):
        np.testing.assert_allclose(got, want[own], rtol=1e-3, atol=1e-4)
print(f"rank {comm.rank} is well")
