"""ResNet-18: a training step (momentum), and inference as a served network runs it.

nnrs and NNabla keep NNabla's layout (channels first); torch runs channels_last, its fastest.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .case import Case, Kit, Step
from .steps import nabla_training, torch_training

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))  # channels, stride of the first block
CLASSES = 1000


def images(batch: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((batch, 3, side, side), dtype=np.float32), rng.integers(0, CLASSES, (batch, 1))


def nabla_scores(kit: Kit, x, training: bool):
    F, PF = kit.F, kit.PF

    def layer(h, channels: int, kernel: int, stride: int, name: str):
        size, pad = (kernel, kernel), (kernel // 2, kernel // 2)
        h = PF.convolution(h, channels, size, pad=pad, stride=(stride, stride), with_bias=False, name=name)
        return PF.batch_normalization(h, batch_stat=training, name=name)

    h = F.relu(layer(x, 64, 7, 2, "first"))
    h = F.max_pooling(h, (3, 3), (2, 2), pad=(1, 1))
    for i, (channels, first) in enumerate(STAGES):
        for j, stride in enumerate((first, 1)):
            inside = F.relu(layer(h, channels, 3, stride, f"{i}{j}a"))
            inside = layer(inside, channels, 3, 1, f"{i}{j}b")
            if stride > 1:
                h = layer(h, channels, 1, stride, f"{i}{j}short")
            h = F.relu(F.add2(inside, h))
    return PF.affine(F.global_average_pooling(h), CLASSES, name="scores")


def nabla_step(batch: int, side: int, kit: Kit) -> Step:
    values, labels = images(batch, side)
    kit.nn.clear_parameters()
    x, t = kit.nn.Variable(values.shape), kit.nn.Variable(labels.shape)
    x.d, t.d = values, labels
    loss = kit.F.mean(kit.F.softmax_cross_entropy(nabla_scores(kit, x, True), t))
    return nabla_training(kit, loss, kit.S.Momentum(1e-3))


def nabla_infer(batch: int, side: int, kit: Kit) -> Step:
    values, _ = images(batch, side)
    kit.nn.clear_parameters()
    x = kit.nn.Variable(values.shape)
    x.d = values
    y = nabla_scores(kit, x, False)
    return lambda: y.forward(clear_buffer=True)


def torch_network():
    import torch
    from torch import nn

    def layer(i: int, o: int, kernel: int, stride: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(o))

    class Block(nn.Module):
        def __init__(self, i: int, o: int, stride: int) -> None:
            super().__init__()
            self.a, self.b = layer(i, o, 3, stride), layer(o, o, 3, 1)
            self.short = layer(i, o, 1, stride) if stride > 1 else nn.Identity()

        def forward(self, x):
            inside = self.b(torch.relu_(self.a(x)))
            return torch.relu_(inside.add_(self.short(x)))

    blocks, width = [], 64
    for channels, stride in STAGES:
        blocks += [Block(width, channels, stride), Block(channels, channels, 1)]
        width = channels
    first = [layer(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    network = nn.Sequential(*first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))
    return network.to(memory_format=torch.channels_last)


def torch_step(batch: int, side: int) -> Step:
    import torch

    values, labels = images(batch, side)
    x = torch.from_numpy(values).to(memory_format=torch.channels_last)
    t, network = torch.from_numpy(labels[:, 0]), torch_network()
    solver = torch.optim.SGD(network.parameters(), lr=1e-3, momentum=0.9, fused=True)

    return torch_training(lambda: torch.nn.functional.cross_entropy(network(x), t), solver)


def torch_infer(batch: int, side: int) -> Step:
    import torch

    x = torch.from_numpy(images(batch, side)[0]).to(memory_format=torch.channels_last)
    network = torch_network().eval()

    def step():
        with torch.inference_mode():
            network(x)

    return step


def case(name: str, title: str, nabla, torch, batch: int, side: int, limit: float) -> Case:
    title = f"ResNet-18, {title}batch {batch}, {side}x{side}"
    return Case(name, title, partial(nabla, batch, side), partial(torch, batch, side), {"torch": limit})


CASES = [
    case("resnet_step", "training step, ", nabla_step, torch_step, 16, 112, 0.75),
    case("resnet_infer64", "inference, ", nabla_infer, torch_infer, 64, 112, 0.6),
    case("resnet_infer1", "inference, ", nabla_infer, torch_infer, 1, 224, 0.55),
]
