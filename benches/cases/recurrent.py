"""A training step of an LSTM: 32 sequences of 64 steps, 256 inputs and hidden units; forward and all gradients.

torch's LSTM is its fused one. NNabla's runs a graph of its functions.
"""

from __future__ import annotations

import numpy as np

from .case import Case, Kit, Step

LSTM = "LSTM 256, batch 32, 64 steps, forward and backward"
STEPS, BATCH, SIZE = 64, 32, 256


def sequences() -> tuple[np.ndarray, np.ndarray]:
    """x, and the gradient of the output."""
    rng = np.random.default_rng(0)
    x, gradient = rng.standard_normal((2, STEPS, BATCH, SIZE), dtype=np.float32)
    return x, gradient


def nabla_lstm(kit: Kit) -> Step:
    values, gradient = sequences()
    kit.nn.clear_parameters()
    x = kit.nn.Variable(values.shape, need_grad=True)
    x.d = values
    h, c = (kit.nn.Variable((1, 1, BATCH, SIZE)) for _ in range(2))
    h.d, c.d = 0, 0
    y, _, _ = kit.PF.lstm(x, h, c)
    weights = kit.nn.get_parameters().values()
    seed = kit.nn.NdArray.from_numpy_array(gradient)

    def step():
        for v in weights:
            v.grad.zero()
        x.grad.zero()
        y.forward()
        y.backward(seed)

    return step


def nabla_unrolled(kit: Kit) -> Step:
    """A cell for each step, as scripts without a fused layer have it."""
    F, values = kit.F, sequences()[0]
    kit.nn.clear_parameters()
    x = kit.nn.Variable(values.shape)
    x.d = values
    h, c = (kit.nn.Variable.from_numpy_array(np.zeros((BATCH, SIZE), np.float32)) for _ in range(2))
    for inputs in F.split(x):
        gates = kit.PF.affine(F.concatenate(inputs, h, axis=1), 4 * SIZE, name="gates")
        i, f, g, o = (F.slice(gates, (0, n * SIZE), (BATCH, (n + 1) * SIZE)) for n in range(4))
        c = F.add2(F.mul2(F.sigmoid(f), c), F.mul2(F.sigmoid(i), F.tanh(g)))
        h = F.mul2(F.sigmoid(o), F.tanh(c))
    loss = F.mean(h)
    weights = kit.nn.get_parameters().values()

    def step():
        for v in weights:
            v.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)

    return step


def torch_unrolled() -> Step:
    import torch

    x, layer = torch.from_numpy(sequences()[0]), torch.nn.Linear(2 * SIZE, 4 * SIZE)

    def step():
        layer.zero_grad()
        h = c = torch.zeros(BATCH, SIZE)
        for inputs in x:
            i, f, g, o = layer(torch.cat([inputs, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        h.mean().backward()

    return step


def torch_lstm() -> Step:
    import torch

    values, gradient = sequences()
    x, seed = torch.from_numpy(values).requires_grad_(True), torch.from_numpy(gradient)
    layer = torch.nn.LSTM(SIZE, SIZE)

    def step():
        layer.zero_grad()
        x.grad = None
        layer(x)[0].backward(seed)

    return step


UNROLLED = "the same cell, a graph of 64 steps, forward and backward"
CASES = [
    Case("lstm", LSTM, nabla_lstm, torch_lstm, {"torch": (0.45, 0.8)}),
    Case("lstm_unrolled", UNROLLED, nabla_unrolled, torch_unrolled, {"torch": (0.3, 0.75)}),
]
