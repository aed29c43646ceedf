"""Initial values by name, `param_init`: those for parameters that a layer does not have are left out with a warning."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_told: set[tuple[str, object]] = set()
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def sieve(function: Callable[..., Any], own: Sequence[str]) -> Callable[[tuple[Any, ...], dict[str, Any]], Arguments]:
    """What takes arguments of calls and gives those with which the function is called.

    Args:
        function: A layer of nnrs, with or without an argument `param_init`.
        own: The names of its parameters.
    """
    names = list(inspect.signature(function).parameters)
    if "param_init" not in names:
        return lambda args, kw: (args, kw)
    at = names.index("param_init")

    def sifted(args: tuple[Any, ...], kw: dict[str, Any]) -> Arguments:
        given = kw.get("param_init") if len(args) <= at else args[at]
        if not isinstance(given, Mapping) or all(name in own for name in given):
            return args, kw
        known = known_of(function.__name__, own, given, stacklevel=4)
        if len(args) <= at:
            return args, {**kw, "param_init": known}
        return (*args[:at], known, *args[at + 1 :]), kw

    return sifted


def known_of(function: str, own: Sequence[str], given: Mapping[Any, Any], stacklevel: int) -> dict[Any, Any]:
    """The initial values of a layer's own parameters; a warning for each other name, once.

    Args:
        function: Name of the layer, for the warning.
        own: The names of its parameters.
        given: Initial values by name.
        stacklevel: Which caller the warning names.
    """
    for name in given:
        if name in own or (function, name) in _told:
            continue
        _told.add((function, name))
        text = f"{function}: argument 'param_init': {name!r} is ignored: the parameters are {', '.join(map(repr, own))}"
        warnings.warn(text, RuntimeWarning, stacklevel=stacklevel)
    return {name: value for name, value in given.items() if name in own}
