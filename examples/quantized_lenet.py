"""Trains a LeNet-size network whose weights and activations have few bits, on the digits of digits.py.

The layers keep weights in full precision to be trained, and work with quantized ones; gradients pass straight through.
Activations are quantized to 16 levels of a range that follows them in training and is fixed afterwards.

    python examples/quantized_lenet.py [--weights fixed_point|pow2|min_max|binary] [--steps 400]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

TRAIN, BATCH = 1437, 64
Layer = Callable[..., nn.Variable]
# Convolution and affine layer, and the parameter that holds the weights they work with.
WEIGHTS: dict[str, tuple[Layer, Layer, str]] = {
    "fixed_point": (
        partial(PF.fixed_point_quantized_convolution, n_w=4, delta_w=2**-4, quantize_b=False),
        partial(PF.fixed_point_quantized_affine, n_w=4, delta_w=2**-4, quantize_b=False),
        "W_q",
    ),
    "pow2": (
        partial(PF.pow2_quantized_convolution, n_w=4, m_w=-1, with_zero_w=True, quantize_b=False),
        partial(PF.pow2_quantized_affine, n_w=4, m_w=-1, with_zero_w=True, quantize_b=False),
        "W_q",
    ),
    "min_max": (
        partial(PF.min_max_quantized_convolution, ql_max_w=15, w_min_max=True, quantize_b=False),
        partial(PF.min_max_quantized_affine, ql_max_w=15, w_min_max=True, quantize_b=False),
        "W_q",
    ),
    "binary": (PF.binary_weight_convolution, PF.binary_weight_affine, "Wb"),
}


def load() -> tuple[np.ndarray, np.ndarray]:
    """Images (count, 1, 8, 8) from 0 to 1, and their digits; the first TRAIN ones are for training."""
    records = np.fromfile(Path(__file__).with_name("digits.bin"), np.uint8).reshape(-1, 65)
    return records[:, :64].reshape(-1, 1, 8, 8) / np.float32(16), records[:, 64:].astype(np.int32)


def activation(h: nn.Variable, name: str, train: bool) -> nn.Variable:
    """Normalized, not negative, and on 16 levels of a range that training moves."""
    h = F.relu(PF.batch_normalization(h, batch_stat=train, name=name))
    return PF.min_max_quantize(h, ql_max=15, decay=0.9, x_min_max=train, ema=True, name=name)


def lenet(x: nn.Variable, weights: str, train: bool) -> nn.Variable:
    """Scores of the ten digits, (batch, 10), of images (batch, 1, 8, 8)."""
    convolution, affine, _ = WEIGHTS[weights]
    h = convolution(x, 16, (3, 3), pad=(1, 1), name="conv1")
    h = F.max_pooling(activation(h, "conv1", train), (2, 2))
    h = convolution(h, 32, (3, 3), pad=(1, 1), name="conv2")
    h = F.max_pooling(activation(h, "conv2", train), (2, 2))
    h = activation(affine(h, 64, name="affine1"), "affine1", train)
    return affine(h, 10, name="affine2")


def train(x: np.ndarray, t: np.ndarray, weights: str, steps: int) -> None:
    """Trains on random batches."""
    rng = np.random.RandomState(313)
    images, digits = nn.Variable((BATCH, 1, 8, 8)), nn.Variable((BATCH, 1))
    loss = F.mean(F.softmax_cross_entropy(lenet(images, weights, True), digits))
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    for i in range(steps):
        chosen = rng.randint(0, len(x), BATCH)
        images.d, digits.d = x[chosen], t[chosen]
        solver.set_learning_rate(3e-3 * (1 - i / steps))
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        if i % 50 == 0 or i == steps - 1:
            print(f"step {i:4}: loss {float(loss.d):.3f}")


def accuracy(x: np.ndarray, t: np.ndarray, weights: str) -> float:
    """The share of images that are told right, by the statistics and ranges of training."""
    images = nn.Variable.from_numpy_array(x)
    scores = lenet(images, weights, False)
    scores.forward()
    return float((scores.d.argmax(1) == t.ravel()).mean())


def run(weights: str = "fixed_point", steps: int = 400) -> float:
    """Trains, and shows how well the network tells digits it has not seen, and what it is made of."""
    x, t = load()
    nn.clear_parameters()
    nn.seed(313)
    train(x[:TRAIN], t[:TRAIN], weights, steps)
    right = accuracy(x[TRAIN:], t[TRAIN:], weights)
    print(f"held-out accuracy: {right:.2%} of {len(x) - TRAIN} images")
    for name, parameter in nn.get_parameters(grad_only=False).items():
        if name.endswith("/" + WEIGHTS[weights][2]):
            values = np.unique(parameter.d)
            print(f"{name}: {parameter.size} weights of {len(values)} values from {values[0]:.4g} to {values[-1]:.4g}")
            if len(values) > 16:
                raise SystemExit(f"{name} has {len(values)} values: more than 4 bits can tell")
    if steps >= 100 and right < 0.9:
        raise SystemExit("the network tells too few digits")
    nn.clear_parameters()
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", choices=WEIGHTS, default="fixed_point")
    parser.add_argument("--steps", type=int, default=400)
    run(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
