"""The other end of a worker's pipes."""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PATIENCE = 180  # seconds for one reply


class Engine:
    """A worker process, started when first asked and again after it died."""

    def __init__(self, name: str, python: str, threads: int, log: Path, label: str | None = None) -> None:
        self.name, self.python, self.threads, self.log = name, python, threads, log
        self.label = label or name  # what its results are called
        self.process: subprocess.Popen[str] | None = None

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The worker's reply; {"error": ...} if it failed, died or fell silent."""
        process = self.process or self.start()
        try:
            print(json.dumps({"do": do, **arguments}), file=process.stdin, flush=True)
            ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
            line = process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        return {"error": self.bury(process)}

    def start(self) -> subprocess.Popen[str]:
        count = str(self.threads)
        names = ("NNRS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [self.python, str(HERE / "worker.py"), self.name, count],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **dict.fromkeys(names, count)},
                text=True,
            )
        return self.process

    def bury(self, process: subprocess.Popen[str]) -> str:
        """Ends a worker that does not answer, and says what is known."""
        self.process = None
        try:
            status = process.wait(1)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"no answer in {PATIENCE} s"
        lines = self.log.read_text().strip().splitlines()
        return f"the process ended with {status}" + (f": {lines[-1][:160]}" if lines else "")

    def stop(self) -> None:
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process = None
