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


CASES = [Case("lstm", LSTM, nabla_lstm, torch_lstm, {"torch": 0.8})]
