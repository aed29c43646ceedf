"""`python -m machine SEED` replays a graph; `python -m machine SEED COUNT` runs many, in two processes."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ProcessPoolExecutor

from . import engine
from .shrink import failure

BLOCK = 500


def block(start: int, count: int) -> list[str]:
    engine.prepare()
    return [text for seed in range(start, start + count) if (text := failure(seed))]


def soak(start: int, count: int) -> int:
    """Runs the seeds in blocks over two processes; prints progress and failures."""
    began, done, failed = time.time(), 0, 0
    starts = range(start, start + count, BLOCK)
    with ProcessPoolExecutor(2) as pool:
        for found in pool.map(block, starts, [min(BLOCK, start + count - s) for s in starts]):
            done = min(done + BLOCK, count)
            failed += len(found)
            for text in found:
                print(text, flush=True)
            print(f"{done} of {count} graphs, {failed} failed, {done / (time.time() - began):.0f}/s", flush=True)
    return failed


def main() -> int:
    start = int(sys.argv[1])
    if len(sys.argv) > 2:
        return int(soak(start, int(sys.argv[2])) > 0)
    engine.prepare()
    text = failure(start)
    print(text or f"seed {start}: as expected")
    return int(text is not None)


if __name__ == "__main__":
    sys.exit(main())
