"""`python -m machine.beside SEED` replays a program, `python -m machine.beside SEED COUNT` runs many, in two processes.

Needs Python 3.10 with nnabla 1.39.0 and nnrs: `make soak-nnabla` makes that.
"""

from __future__ import annotations

import os
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from .draw import Chooser, Step
from .player import Player

BLOCK = 50


def error_of(steps: list[Step]) -> str | None:
    try:
        Player().play(steps)
    except Exception as e:  # whatever it is, it is what we look for
        return f"{type(e).__name__}: {e}"
    return None


def kind_of(error: str) -> str:
    return " ".join(re.sub(r"[^a-z ]", "", error[:100].lower()).split()[:6])


def failure(seed: int) -> str | None:
    """None, or the error of a program with the shortest one that was found."""
    steps = Chooser(seed).program()
    first = error_of(steps)
    if first is None:
        return None
    short, error = shrink(steps, first)
    return (
        f"seed {seed}: {first}\nshrunk to {len(short)} of {len(steps)} steps: {error}\n"
        + "\n".join(map(line, short))
        + "\n"
    )


def shrink(steps: list[Step], error: str) -> tuple[list[Step], str]:
    """Leaves out steps, many at a time and then single ones, as long as it fails the same way."""
    size = len(steps) // 2
    while size:
        k = 0
        while k < len(steps):
            fewer = steps[:k] + steps[k + size :]
            found = error_of(fewer)
            if found and kind_of(found) == kind_of(error):
                steps, error = fewer, found
            else:
                k += size
        size //= 2
    return steps, error


def line(step: Step) -> str:
    """A step as a line of a script."""
    kind, a = step
    of = lambda ids: ", ".join(f"v{i}" for i in ids)  # noqa: E731
    flags = ", ".join(f"{k}={a[k]!r}" for k in ("clear_buffer", "clear_no_need_grad") if a.get(k))
    hooks = "  # hooks" if a.get("hooks") else ""
    if kind == "apply":
        extra = "".join(f", {k}={v!r}" for k, v in a["args"].items())
        marks = "  # auto_forward" * a["auto"] + "  # recompute" * a["mark"]
        return f"{of(a['new'])} = F.{a['op']}({of(a['x'])}{extra}){marks}"
    if kind == "forward":
        return f"nn.forward_all([{of(a['roots'])}], {flags}){hooks}"
    if kind == "backward":
        return f"v{a['i']}.backward({a['seed']!r}, {flags}){hooks}"
    if kind == "grad":
        auto = "  # auto_forward" * a["auto"]
        return f"{of(a['new'])} = nn.grad([v{a['y']}], [{of(a['x'])}], bind_grad_output={a['bind']!r}){auto}"
    return {
        "leaf": "v{new} = leaf(values({seed}, {shape}), need_grad={need}); v{new}.g = 0",
        "write": "v{i}.d = values({seed}, v{i}.shape)",
        "write_grad": "v{i}.g = {value}",
        "need": "v{i}.need_grad = {value!r}",
        "persistent": "v{i}.persistent = {value!r}",
        "recompute": "v{i}.recompute = {value!r}",
        "rewire": "v{i}.rewire_on(v{other}); del v{other}",
        "unlink": "v{new} = v{i}.get_unlinked_variable(need_grad={need})",
        "share": "v{i}.{what} = v{other}.{what}",
        "fresh": "v{i}.{what} = nn.NdArray.from_numpy_array(values({seed}, v{i}.shape))",
        "hold": "a{new} = v{i}.{what}",
        "release": "del a{k}",
        "drop": "del v{i}",
        "see": "# all that is held is read",
        "walk": "# all that v{i} leads to is read",
    }[kind].format(**a)


def block(start: int, count: int) -> list[str]:
    return [text for seed in range(start, start + count) if (text := failure(seed))]


def crashed(start: int, count: int) -> list[str]:
    """Each program in a process of its own, where one of the block has ended the process."""
    found = []
    for seed in range(start, start + count):
        try:
            with ProcessPoolExecutor(1) as pool:
                found += pool.submit(block, seed, 1).result()
        except BrokenProcessPool:
            found.append(f"seed {seed}: the process has ended\n")
    return found


def soak(start: int, count: int) -> int:
    began, done, failed = time.time(), 0, 0
    starts = list(range(start, start + count, BLOCK))
    pool = ProcessPoolExecutor(2)
    tasks = {s: pool.submit(block, s, min(BLOCK, start + count - s)) for s in starts}
    for s in starts:
        size = min(BLOCK, start + count - s)
        try:
            found = tasks[s].result()
        except BrokenProcessPool:
            found = crashed(s, size)
            pool = ProcessPoolExecutor(2)
            tasks.update({t: pool.submit(block, t, min(BLOCK, start + count - t)) for t in starts if t > s})
        done, failed = done + size, failed + len(found)
        for text in found:
            print(text, flush=True)
        print(f"{done} of {count} programs, {failed} failed, {done / (time.time() - began):.0f}/s", flush=True)
    return failed


def main() -> int:
    start = int(sys.argv[1])
    if len(sys.argv) > 2:
        return int(soak(start, int(sys.argv[2])) > 0)
    text = failure(start)
    print(text or f"seed {start}: as expected")
    return int(text is not None)


if __name__ == "__main__":
    os.environ.setdefault("NNABLA_LOG_LEVEL", "ERROR")
    sys.exit(main())
