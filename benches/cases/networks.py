"""Training steps of two small networks: zero the gradients, forward, backward, Adam.

LeNet is the one of NNabla's MNIST example: two 5x5 convolutions of 16 maps with 2x2 max pooling, affine 50, affine 10,
on 28x28 images. torch runs Adam with fused=True, its fastest on a CPU.
"""

from __future__ import annotations

import numpy as np

from .case import Case, Kit, Step
from .steps import nabla_training, torch_training

MLP = "MLP 784-1024-1024-10, batch 128, Adam step"
LENET = "LeNet, batch 64, Adam step"


def batch(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random(shape, dtype=np.float32), rng.integers(0, 10, (shape[0], 1))


def nabla_mlp_scores(kit: Kit, h):
    for i in range(2):
        h = kit.F.relu(kit.PF.affine(h, 1024, name=f"affine{i}"))
    return kit.PF.affine(h, 10, name="affine2")


def nabla_lenet_scores(kit: Kit, h):
    for i in range(2):
        h = kit.F.max_pooling(kit.PF.convolution(h, 16, (5, 5), name=f"conv{i}"), (2, 2))
        h = kit.F.relu(h)
    h = kit.F.relu(kit.PF.affine(h, 50, name="affine0"))
    return kit.PF.affine(h, 10, name="affine1")


def nabla_step(kit: Kit, shape: tuple[int, ...], scores) -> Step:
    images, labels = batch(shape)
    kit.nn.clear_parameters()
    x, t = kit.nn.Variable(shape), kit.nn.Variable(labels.shape)
    x.d, t.d = images, labels
    loss = kit.F.mean(kit.F.softmax_cross_entropy(scores(kit, x), t))
    return nabla_training(kit, loss, kit.S.Adam(1e-3))


def torch_step(shape: tuple[int, ...], network) -> Step:
    import torch

    images, labels = batch(shape)
    x, t = torch.from_numpy(images), torch.from_numpy(labels[:, 0])
    solver = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)

    return torch_training(lambda: torch.nn.functional.cross_entropy(network(x), t), solver)


def torch_mlp_layers():
    from torch import nn

    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10))


def torch_mlp() -> Step:
    return torch_step((128, 784), torch_mlp_layers())


def torch_lenet() -> Step:
    from torch import nn

    maps = [nn.Conv2d(1, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(16, 16, 5), nn.MaxPool2d(2), nn.ReLU()]
    head = [nn.Flatten(), nn.Linear(256, 50), nn.ReLU(), nn.Linear(50, 10)]
    return torch_step((64, 1, 28, 28), nn.Sequential(*maps, *head))


def nabla_mlp(kit: Kit) -> Step:
    return nabla_step(kit, (128, 784), nabla_mlp_scores)


def nabla_infer(kit: Kit) -> Step:
    x = kit.nn.Variable((1, 784))
    x.d = batch((1, 784))[0]
    kit.nn.clear_parameters()
    y = nabla_mlp_scores(kit, x)
    return lambda: y.forward(clear_buffer=True)


def torch_infer() -> Step:
    import torch

    network, x = torch_mlp_layers(), torch.from_numpy(batch((1, 784))[0])

    def step():
        with torch.inference_mode():
            network(x)

    return step


def nabla_lenet(kit: Kit) -> Step:
    return nabla_step(kit, (64, 1, 28, 28), nabla_lenet_scores)


CASES = [
    Case("mlp", MLP, nabla_mlp, torch_mlp, {"torch": (0.48, 0.8)}),
    Case("mlp_infer1", "the same network, inference, batch 1", nabla_infer, torch_infer, {"torch": 0.35}),
    Case("lenet", LENET, nabla_lenet, torch_lenet, {"torch": 0.5}),
]
