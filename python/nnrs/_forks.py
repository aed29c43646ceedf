"""Forks while no other thread holds a lock of the package: it would stay locked in the child."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any


def hold(find: Callable[[], Iterable[Any]]) -> None:
    """Take locks before each fork, and release them after it on both sides. Those that were named last are taken first.

    Args:
        find: Gives the locks that there are.
    """
    held: list[Any] = []

    def before() -> None:
        for lock in find():
            if lock.acquire(timeout=10):
                held.append(lock)

    def after() -> None:
        while held:
            held.pop().release()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)
