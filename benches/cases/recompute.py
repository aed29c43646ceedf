"""Recomputation in a training step of the 100-layer convolutional network: how much memory it saves, what it costs.

Memory is measured as in the row that keeps everything (memory.py), nnrs beside NNabla. In NNabla the outputs of all
batch normalizations and ReLUs are under `nn.recompute`; in nnrs they are so too, or `memory.fit` has chosen what to
compute again. The time row is nnrs against itself: a step in a third of the planned memory, as `memory.fit` arranges
it, beside the step that keeps everything, in turn within one process.

    python benches/cases/recompute.py [rounds]       # the time row, as JSON
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

if __package__:
    from . import memory
    from .case import Whole
else:
    import memory

ROUNDS, QUICK = 12, 3


def measure_memory(way: str, engines: dict[str, str]) -> dict[str, Any]:
    ways = {"nnrs": way, "nnabla": "marked"}
    return {e: memory.measure_there(e, engines[e], way) for e, way in ways.items() if e in engines}


def measure_marked(engines: dict[str, str], quick: bool) -> dict[str, Any]:
    del quick
    return measure_memory("marked", engines)


def measure_fit(engines: dict[str, str], quick: bool) -> dict[str, Any]:
    del quick
    return measure_memory("fit", engines)


def measure_time(engines: dict[str, str], quick: bool) -> dict[str, Any]:
    if "nnrs" not in engines:
        return {}
    command = [engines["nnrs"], __file__, str(QUICK if quick else ROUNDS)]
    return {"nnrs": memory.last_line(subprocess.run(command, capture_output=True, text=True, timeout=600))}


def timed(step) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def better_half(times: list[float]) -> float:
    return statistics.median(sorted(times)[: (len(times) + 1) // 2])


def measure_here(rounds: int) -> dict[str, Any]:
    """Time with recomputation as a share of the time without."""
    import nnrs as nn

    nets = [memory.nabla_network("nnrs") for _ in range(2)]  # they share their parameters
    planned = nn.memory.plan(nets[0].loss, **memory.FLAGS).peak
    fit = nn.memory.fit(nets[1].loss, int(planned * memory.FIT), **memory.FLAGS)
    times: list[list[float]] = [[], []]
    for turn in range(rounds + 1):
        for net, found in zip(nets, times, strict=True):
            seconds = timed(net.step)
            if turn:  # the first makes plans and caches
                found.append(seconds)
    plain, again = map(better_half, times)
    note = (
        f"{plain * 1e3:.0f} ms a step in {planned / 2**20:.0f} MiB (planned), {again * 1e3:.0f} ms in "
        f"{fit.peak / 2**20:.0f} MiB; memory.fit predicted {1 + fit.extra:.2f} times"
    )
    return {"value": again / plain, "note": note}


if __package__:
    MARKED = f"peak memory of that step, batch normalizations and ReLUs under nn.recompute ({memory.SIZE})"
    FIT = "peak memory of that step, NNabla as before, nnrs by memory.fit in a third of its memory"
    TIME = "time of that step by memory.fit in a third of its memory, as a share of the time without"
    CASES = [
        Whole("recompute-memory", MARKED, "MiB", measure_marked, {"nnabla": 0.8}),
        Whole("recompute-fit", FIT, "MiB", measure_fit, {"nnabla": 0.8}),
        Whole("recompute-time", TIME, "times", measure_time, ceiling=1.4),
    ]

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    print(json.dumps(measure_here(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)))
