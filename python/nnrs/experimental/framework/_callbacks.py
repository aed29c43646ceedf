"""Lists of functions that are called at a point of a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._errors import check_callable

Callback = Callable[..., Any]


def callbacks(function: str, argument: str, given: Any) -> list[Callback]:
    """`given` as a list: a function, or a list of them."""
    found = given if isinstance(given, list) else [given]
    for callback in found:
        check_callable(function, argument, callback)
    return found


def call_all(given: list[Callback], *args: int) -> None:
    """Call each with the counts of the loops."""
    for callback in given:
        callback(*args)


def nothing(*args: int) -> bool:
    """Does nothing; what stands where no function was given."""
    return True
