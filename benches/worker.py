"""One engine in one long-lived process: builds a case's step, and times it when told to.

Requests and replies are lines of JSON. Whatever the engine prints goes to stderr, so that it cannot spoil a reply.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from typing import Any, TextIO

import cases
from cases.case import Kit, Step


class Worker:
    def __init__(self, engine: str, threads: int) -> None:
        self.engine = engine
        self.step: Step | None = None
        if engine == "torch":
            import torch

            torch.set_num_threads(threads)
            self.version = torch.__version__
        else:
            self.kit = Kit(engine)
            self.version = getattr(self.kit.nn, "__version__", "unknown")

    def hello(self) -> dict[str, Any]:
        return {"version": self.version, "python": sys.version.split()[0]}

    def limits(self) -> dict[str, Any]:
        """What the machine does at most, on this worker's threads: operations and bytes a second."""
        from nnrs import _core

        return dict(zip(("flops", "moved"), _core.measure_limits(), strict=True))

    def build(self, name: str) -> dict[str, Any]:
        """Makes the step and runs it twice, so that plans and caches are there. Says how long the second took."""
        case = next(c for c in cases.TIMED + cases.FUNCTIONS if c.name == name)
        self.step = case.torch() if self.engine == "torch" else case.nabla(self.kit)
        self.once()
        return {"seconds": self.once()}

    def once(self) -> float:
        start = time.perf_counter()
        own = self.step()
        return time.perf_counter() - start if own is None else own

    def round(self, seconds: float) -> dict[str, Any]:
        """Runs the step for about `seconds`, after one run that wakes threads and caches; mean time of a step."""
        start = time.perf_counter()
        if self.once() > seconds:
            start = time.perf_counter()
        times = [self.once()]
        while time.perf_counter() - start < seconds:
            times.append(self.once())
        return {"seconds": sum(times) / len(times), "steps": len(times)}

    def drop(self) -> dict[str, Any]:
        self.step = None
        if self.engine != "torch":
            self.kit.nn.clear_parameters()
        gc.collect()
        return {}


def serve(engine: str, threads: int, replies: TextIO) -> None:
    worker = Worker(engine, threads)
    actions = {do: getattr(worker, do) for do in ("hello", "limits", "build", "round", "drop")}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = actions[request.pop("do")](**request)
        except Exception as error:  # reported in the table; the other cases go on
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(sys.argv[1], int(sys.argv[2]), channel)
