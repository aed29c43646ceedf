"""Makes a failing list of steps short."""

from __future__ import annotations

import gc
import re

import nnrs as nn

from .choose import Chooser, replay, run
from .engine import script
from .machine import Step


def error_of(double: bool, steps: list[Step]) -> str | None:
    """The kind and the beginning of the error of these steps, if there is one."""
    try:
        replay(double, steps)
    except Exception as e:  # whatever it is, it is what we look for
        return f"{type(e).__name__}: {e}"
    finally:
        nn.set_fusion(True)
        nn.set_num_threads(1)
        gc.collect()
    return None


def kind_of(error: str) -> str:
    """What must stay the same while steps are left out."""
    return " ".join(re.sub(r"[^a-z ]", "", error[:80].lower()).split()[:5])


def shrink(double: bool, steps: list[Step]) -> tuple[list[Step], str]:
    """Leaves out steps, many at a time and then single ones, as long as it fails the same way."""
    error = error_of(double, steps) or "it does not fail when replayed"
    size = len(steps) // 2
    while size:
        k = 0
        while k < len(steps):
            fewer = steps[:k] + steps[k + size :]
            found = error_of(double, fewer)
            if found and kind_of(found) == kind_of(error):
                steps, error = fewer, found
            else:
                k += size
        size //= 2
    return steps, error


def failure(seed: int) -> str | None:
    """Runs a seed: None, or its error with the shortest script that was found."""
    steps: list[Step] = []
    try:
        run(seed, steps)
        return None
    except Exception as e:
        first = f"{type(e).__name__}: {e}"
    finally:
        nn.set_fusion(True)
        nn.set_num_threads(1)
    double = Chooser(seed).double
    short, error = shrink(double, steps)
    text = script(double, short)
    return f"seed {seed}: {first}\nshrunk to {len(short)} of {len(steps)} steps: {error}\n{text}\n"
