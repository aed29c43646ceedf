"""ResNet-18's training step in a process of its own: its peak memory, measured as in memory.py, and the page faults of
the steps after the second, when everything that they need should be there.

    python benches/cases/step_memory.py nnrs|nnabla|torch      # both, as JSON
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

if __package__:
    from . import memory
    from .case import Whole

BATCH, SIDE = 16, 112
FIRST, LATER = 2, 3  # steps before those whose page faults are counted, and these


def faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def measure_here(engine: str) -> dict[str, Any]:
    from cases import memory, resnet
    from cases.case import Kit

    kit = None if engine == "torch" else Kit(engine)
    make = resnet.torch_step if kit is None else lambda batch, side: resnet.nabla_step(batch, side, kit)
    if kit is None:
        import torch  # noqa: F401
    resnet.images(BATCH, SIDE)
    memory.reset_peak()
    before = memory.status("VmRSS")
    step = make(BATCH, SIDE)
    for _ in range(FIRST):
        step()
    faulted = faults()
    for _ in range(LATER):
        step()
    return {"value": memory.status("VmHWM") - before, "faults": (faults() - faulted) / LATER}


def run(engines: dict[str, str]) -> dict[str, dict[str, Any]]:
    return {engine: memory.measure_there(engine, python, script=__file__) for engine, python in engines.items()}


def peak(engines: dict[str, str], quick: bool) -> dict[str, Any]:
    del quick
    return {engine: {k: v for k, v in found.items() if k != "faults"} for engine, found in run(engines).items()}


def faults_of_a_step(engines: dict[str, str], quick: bool) -> dict[str, Any]:
    del quick
    found = run({e: python for e, python in engines.items() if e == "nnrs"})
    return {e: {"value": f["faults"]} if "faults" in f else f for e, f in found.items()}


if __package__:
    TITLE = f"peak memory of ResNet-18's training step (batch {BATCH}, {SIDE}x{SIDE})"
    CASES = [
        Whole("resnet-memory", TITLE, "MiB", peak, {"torch": 0.6}),
        Whole("resnet-faults", "page faults of that step, from the third on", "faults", faults_of_a_step, ceiling=1),
    ]

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    print(json.dumps(measure_here(sys.argv[1])))
