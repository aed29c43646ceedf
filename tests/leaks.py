"""What is alive in the engine, and that a piece of work gives all of it back."""

from __future__ import annotations

import gc

import nnrs as nn

Alive = tuple[int, int, int]


def alive() -> Alive:
    """Functions, variables and bytes."""
    return (*nn._core.live_nodes(), nn.memory.stats().live)


def check(before: Alive) -> None:
    """No more is alive than before."""
    if _within(alive(), before):
        return
    gc.collect()
    left = alive()
    assert _within(left, before), f"functions, variables, bytes alive before {before} and after {left}"


def _within(now: Alive, before: Alive) -> bool:
    return all(a <= b for a, b in zip(now, before, strict=True))
