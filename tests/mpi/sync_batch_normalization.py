"""Batch normalization over the batches of all processes, in a network whose gradients are reduced during backward."""

from __future__ import annotations

import itertools
import sys

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F
import nnrs.parametric_functions as PF

CUT = (0, 3, 5, 12, 13)  # batches of different sizes


def network(x, t, normalize):
    """The sum of the losses of a batch: sums over processes are those over the whole."""
    h = normalize(PF.convolution(x, 4, (3, 3), pad=(1, 1), with_bias=False, name="c"), name="n1")
    h = normalize(PF.affine(F.relu(h), 5, name="a"), name="n2")
    return F.sum(F.softmax_cross_entropy(h, t))


def train(x, t, normalize, callback=None):
    """Gradients of x and of the parameters, running statistics, losses of two steps."""
    nn.clear_parameters()
    nn.seed(3)
    image = nn.Variable.from_numpy_array(x, need_grad=True)
    loss = network(image, nn.Variable.from_numpy_array(t), normalize)
    loss.persistent = True
    parameters = nn.get_parameters()
    for p in (image, *parameters.values()):
        p.grad.zero()
    grads = [p.grad for p in parameters.values()]
    losses = []
    for _ in range(2):
        for p in (image, *parameters.values()):
            p.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True, communicator_callbacks=callback and callback(grads))
        losses.append(float(loss.d))
    statistics = {n: p.d.copy() for n, p in nn.get_parameters(grad_only=False).items() if n not in parameters}
    return image.g.copy(), {n: p.g.copy() for n, p in parameters.items()}, statistics, losses


def near(got, want):
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def main():
    context = nn.ext_utils.get_extension_context(*sys.argv[1:] or ["cpu"])
    comm = C.MultiProcessDataParallelCommunicator(context)
    comm.init()
    r, n = comm.rank, comm.size
    context.device_id = str(r)
    nn.set_default_context(context)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(CUT[n], 2, 4, 4)).astype("float32")
    t = rng.integers(0, 5, (CUT[n], 1))
    wx, wg, ws, wl = train(x, t, PF.batch_normalization)
    own = slice(CUT[r], CUT[r + 1])

    def together(h, name):
        return PF.sync_batch_normalization(h, comm, name=name)

    for pack in (1, 1000):
        gx, gg, gs, losses = train(x[own], t[own], together, lambda grads, p=pack: comm.all_reduce_callback(grads, p))
        near(gx, wx[own])
        assert list(gg) == list(wg) and list(gs) == list(ws) and len(gs) == 4
        for name in wg:
            near(gg[name], wg[name])
        for name in ws:
            near(gs[name], ws[name])
        total = nn.NdArray.from_numpy_array(np.float64(losses))
        comm.all_reduce(total)
        near(total.data, wl)
    check_running_once(comm, x[own])
    print(f"rank {r} is well")


def check_running_once(comm, own):
    """The running statistics are moved once a step, however what is behind them is computed again."""
    for auto, again in itertools.product((False, True), repeat=2):
        nn.clear_parameters()
        image = nn.Variable.from_numpy_array(own, need_grad=True)
        with nn.recompute(again), nn.auto_forward(auto):
            y = F.sum(F.tanh(F.exp(PF.sync_batch_normalization(F.mul_scalar(image, 1), comm))))
        if not auto:
            y.forward(clear_no_need_grad=True)
        mean = nn.get_parameters(grad_only=False)["bn/mean"]
        before = mean.d.copy()
        y.backward(clear_buffer=True)
        assert np.abs(before).max() > 0 and (mean.d == before).all(), (auto, again)


main()
