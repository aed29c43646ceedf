"""What installing and importing nnrs costs."""

from __future__ import annotations

import statistics
import subprocess
from pathlib import Path
from typing import Any

from .case import Whole

ROOT = Path(__file__).resolve().parents[2]
IMPORT = "import numpy, time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def seconds_to_import(engine: str, python: str) -> float:
    run = subprocess.run([python, "-c", IMPORT.format(engine)], capture_output=True, text=True, check=True)
    return float(run.stdout.splitlines()[-1])


def import_time(engines: dict[str, str], quick: bool) -> dict[str, Any]:
    """Median over fresh processes, engines in turn; the first round warms the disk cache and does not count."""
    rounds = [{e: seconds_to_import(e, p) for e, p in engines.items()} for _ in range(4 if quick else 10)]
    return {e: {"value": statistics.median(r[e] for r in rounds[1:])} for e in engines}


def wheel_size(engines: dict[str, str], quick: bool) -> dict[str, Any]:
    del engines, quick
    wheels = sorted((ROOT / "dist").glob("nnrs-*.whl"), key=lambda p: p.stat().st_mtime)
    if not wheels:
        return {"nnrs": {"error": "no wheel in dist/: run `make wheel`"}}
    return {"nnrs": {"value": wheels[-1].stat().st_size}}


CASES = [
    Whole("import", "`import` beyond `import numpy`", "ms", import_time, ceiling=0.050),
    Whole("wheel", "size of the wheel", "MB", wheel_size, ceiling=8e6),
]
