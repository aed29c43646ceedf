"""The tree of parameter scopes, and the place of each thread or async task in it.

The tree belongs to the process, the place in it to the thread: `parameter_scope` in one never moves another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from ._core import add_to_scope, share_parameters
from ._errors import ArgumentError, message

Scope = OrderedDict[str, Any]

_root: Scope = OrderedDict()
current: ContextVar[Scope | None] = ContextVar("nnrs_parameter_scope", default=None)
share_parameters(_root, current)  # Rust code that is called from Python, or calls it, finds the same parameters


def get_current_parameter_scope() -> OrderedDict[str, Any]:
    """The innermost scope: an ordered dict from names to Variables and inner scopes.

    >>> from nnrs.parameter import parameter_scope, clear_parameters
    >>> with parameter_scope("layer1"):
    ...     list(get_current_parameter_scope())
    []
    >>> clear_parameters()
    """
    scope = current.get()
    return _root if scope is None else scope


def root() -> Scope:
    """The outermost scope."""
    return _root


def parts_of(name: str) -> list[str]:
    """The parts of "a/b/c"; empty ones do not count."""
    return [part for part in name.split("/") if part]


def find(scope: Any, parts: list[str]) -> Any:
    """What is at `parts` below `scope` (a parameter or a scope), or None."""
    for part in parts:
        if not isinstance(scope, dict):
            return None
        scope = scope.get(part)
    return scope


def open_scope(function: str, scope: Any, parts: list[str]) -> Any:
    """The scope at `parts` below `scope`, made where it is missing; an error where a parameter is in the way."""
    for i, part in enumerate(parts):
        found = scope.get(part)  # in one step: another thread may be taking it out
        scope = add_to_scope(scope, part, OrderedDict()) if found is None else found
        if not isinstance(scope, dict):
            refuse_scope(function, "/".join(parts[: i + 1]))
    return scope


def refuse_scope(function: str, name: str) -> None:
    """Raise the error for a scope that has a parameter's name."""
    hint = "give the scope another name, or remove the parameter with pop_parameter or clear_parameters"
    raise ArgumentError(message(function, None, f"there is a parameter '{name}', so it cannot be a scope", hint=hint))


def walk(scope: Any, path: str) -> Iterator[tuple[str, Any]]:
    """All parameters below `scope` with their full names, in order."""
    todo = [(path, scope)]  # what comes next is last
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict):
            inner = [(f"{path}/{key}" if path else key, v) for key, v in list(value.items())]
            todo += reversed(inner)
        else:
            yield path, value
