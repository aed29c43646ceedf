"""Trains a network whose gradient is part of its loss: the gradient penalty of NNabla's manual, on made-up pictures.

`nn.grad` gives the gradients of the loss with respect to the parameters as a graph. Their norms are added to the loss,
so `backward` runs through them: second derivatives through convolution, pooling and the softmax.

    python examples/gradient_penalty.py [--steps 60] [--weight 0.1]
"""

from __future__ import annotations

import argparse

import numpy as np

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S

CLASSES = 4


def data(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of 3 channels, brighter in the quarter that is their class."""
    rng = np.random.RandomState(seed)
    x = rng.randn(size, 3, 16, 16).astype(np.float32)
    t = rng.randint(0, CLASSES, (size, 1))
    for picture, label in zip(x, t[:, 0], strict=True):
        row, column = divmod(int(label), 2)
        picture[:, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8] += 0.7
    return x, t


def network(x: nn.Variable) -> nn.Variable:
    """Two convolutions and a fully connected layer."""
    h = PF.convolution(x, 8, (3, 3), pad=(1, 1), name="conv1")
    h = F.max_pooling(F.relu(h), (2, 2))
    h = PF.convolution(h, 16, (3, 3), pad=(1, 1), name="conv2")
    h = F.max_pooling(F.relu(h), (2, 2))
    return PF.affine(h, CLASSES, name="pred")


def penalty(loss: nn.Variable, target: float = 0.0) -> nn.Variable:
    """The squared distances of the norms of all gradients from `target`."""
    grads = nn.grad([loss], nn.get_parameters().values())
    return sum(((F.sum(g**2) ** 0.5 - target) ** 2 for g in grads), start=F.constant(0, ()))


def train(steps: int, weight: float, log: bool = True) -> tuple[list[float], list[float]]:
    """Trains; gives the loss and the penalty of each step."""
    nn.clear_parameters()
    nn.seed(313)
    pictures, labels = data(32, seed=1)
    x, t = nn.Variable.from_numpy_array(pictures), nn.Variable.from_numpy_array(labels)
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    gp = penalty(loss)
    total = loss + weight * gp
    total.persistent = gp.persistent = True
    solver = S.Adam(0.01)
    solver.set_parameters(nn.get_parameters())
    losses, penalties = [], []
    for step in range(steps):
        total.forward(clear_no_need_grad=True)
        solver.zero_grad()
        total.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
        penalties.append(float(gp.d))
        if log and step % 10 == 0:
            print(f"step {step:3d}  loss {losses[-1]:.4f}  penalty {penalties[-1]:.4f}")
    return losses, penalties


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--weight", type=float, default=0.1)
    args = parser.parse_args()
    losses, penalties = train(args.steps, args.weight)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, penalty {penalties[0]:.4f} -> {penalties[-1]:.4f}")


if __name__ == "__main__":
    main()
