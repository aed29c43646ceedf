"""What is alive in the engine, and that a piece of work gives all of it back."""

from __future__ import annotations

import gc
import os
from importlib import import_module

# NNabla, where the references themselves are checked: it does not say what is alive.
MODULE = os.environ.get("NNRS_TEST_MODULE", "nnrs")
nn = import_module(MODULE)
Alive = tuple[int, int, int]


def alive() -> Alive:
    """Functions, variables and bytes."""
    if MODULE != "nnrs":
        return (0, 0, 0)
    return (*nn._core.live_nodes(), nn.memory.stats().live)


def check(before: Alive) -> None:
    """No more is alive than before. NNRS_TEST_LEAKS=0: whatever is alive."""
    if os.environ.get("NNRS_TEST_LEAKS") == "0" or _within(alive(), before):
        return
    gc.collect()
    left = alive()
    assert _within(left, before), f"functions, variables, bytes alive before {before} and after {left}"


def _within(now: Alive, before: Alive) -> bool:
    return all(a <= b for a, b in zip(now, before, strict=True))
