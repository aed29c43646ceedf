"""`getargspec` as Python 2 had it.

>>> getargspec(lambda x, y=1, *rest: None)
ArgSpec(args=['x', 'y'], varargs='rest', keywords=None, defaults=(1,))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["getargspec"]


class ArgSpec(NamedTuple):
    """The arguments of a function: names, those of `*` and `**`, and the defaults of the last ones."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(func: Callable[..., Any]) -> ArgSpec:
    """The arguments of a function, but for those that are given by name alone.

    Args:
        func: Function in Python.

    Raises:
        TypeError: If it is none.
    """
    spec = inspect.getfullargspec(func)
    return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)
