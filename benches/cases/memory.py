"""Peak memory of a training step of a 100-layer convolutional network.

One definition for all engines: a process of its own imports the engine and makes a batch, which loads what NumPy needs
for random numbers (an engine that loads it itself has no advantage), notes its resident memory, then builds the
network and trains three steps; the figure is the highest resident memory less the noted one.

    python benches/cases/memory.py nnrs|nnabla|torch [marked|fit]      # one measurement, as JSON

The ways to save memory are explained in recompute.py.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

if __package__:
    from .case import Whole

LAYERS, MAPS, SIDE, BATCH = 100, 64, 32, 8
SIZE = f"{MAPS} maps, {SIDE}x{SIDE}, batch {BATCH}"
STEPS = 3
FIT = 1 / 3  # of the planned peak
FLAGS = {"clear_no_need_grad": True, "backward_clear_buffer": True}


def status(key: str) -> int:
    """A figure of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


def reset_peak() -> None:
    """Makes VmHWM start again from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def batch() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((BATCH, 3, SIDE, SIDE), dtype=np.float32), rng.integers(0, 10, (BATCH, 1))


@dataclass
class Network:
    """The end of a graph, and a training step of it."""

    loss: Any
    step: Callable[[], None]


def nabla_network(package: str, way: str = "") -> Network:
    """`marked`: batch normalizations and ReLUs are under `nn.recompute`; `fit`: as nnrs's `memory.fit` chooses."""
    from case import Kit

    kit = Kit(package)
    F, PF, nn = kit.F, kit.PF, kit.nn
    images, labels = batch()
    x, t = nn.Variable(images.shape), nn.Variable(labels.shape)
    x.d, t.d = images, labels
    h = x
    for i in range(LAYERS):
        with nn.parameter_scope(f"layer{i}"):
            h = PF.convolution(h, MAPS, (3, 3), pad=(1, 1), with_bias=False)
            with nn.recompute() if way == "marked" else contextlib.nullcontext():
                h = F.relu(PF.batch_normalization(h))
    loss = F.mean(F.softmax_cross_entropy(PF.affine(F.mean(h, axis=(2, 3)), 10), t))
    if way == "fit":
        nn.memory.fit(loss, int(nn.memory.plan(loss, **FLAGS).peak * FIT), **FLAGS)
    solver = kit.S.Momentum(0.01)
    solver.set_parameters(nn.get_parameters())

    def step() -> None:
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.update()

    return Network(loss, step)


def nabla_steps(package: str, way: str):
    from case import Kit

    module = Kit(package).nn

    def run() -> None:
        network = nabla_network(package, way)
        for _ in range(STEPS):
            network.step()

    return run, module


def torch_steps():
    import torch
    from torch import nn

    def run() -> None:
        images, labels = batch()
        x, t = torch.from_numpy(images), torch.from_numpy(labels[:, 0])
        layers: list[Any] = []
        for i in range(LAYERS):
            layers += [nn.Conv2d(MAPS if i else 3, MAPS, 3, padding=1, bias=False), nn.BatchNorm2d(MAPS), nn.ReLU()]
        network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(MAPS, 10))
        solver = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
        for _ in range(STEPS):
            solver.zero_grad()
            nn.functional.cross_entropy(network(x), t).backward()
            solver.step()

    return run, None


def measure_here(engine: str, way: str = "") -> dict[str, Any]:
    run, module = torch_steps() if engine == "torch" else nabla_steps(engine, way)
    batch()
    reset_peak()
    before = status("VmRSS")
    run()
    found: dict[str, Any] = {"value": status("VmHWM") - before}
    if hasattr(module, "memory"):
        found["note"] = f"nnrs's own count of its arrays: {module.memory.stats().peak / 2**20:.0f} MiB at most"
    return found


def measure(engines: dict[str, str], quick: bool) -> dict[str, Any]:
    del quick
    return {engine: measure_there(engine, python) for engine, python in engines.items()}


def measure_there(engine: str, python: str, *arguments: str, script: str = __file__) -> dict[str, Any]:
    command = [python, script, engine, *arguments]
    return last_line(subprocess.run(command, capture_output=True, text=True, timeout=300))


def last_line(run: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a process of its own found."""
    if run.returncode:
        return {"error": (run.stderr.strip().splitlines() or [f"exit {run.returncode}"])[-1]}
    return json.loads(run.stdout.splitlines()[-1])


if __package__:
    TITLE = f"peak memory of a step of a {LAYERS}-layer conv net ({SIZE})"
    CASES = [Whole("memory", TITLE, "MiB", measure, {"torch": 0.8})]

if __name__ == "__main__":
    print(json.dumps(measure_here(*sys.argv[1:])))
