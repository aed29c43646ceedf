"""The tree of parameter scopes, the place of each thread or async task in it, and how a failed call is undone.

The tree belongs to the process, the place in it to the thread: `parameter_scope` in one never moves another.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from ._core import Variable
from ._errors import ArgumentError, message

Scope = OrderedDict[str, Any]

_root: Scope = OrderedDict()
current: ContextVar[Scope | None] = ContextVar("nnrs_parameter_scope", default=None)
_journal: ContextVar[list[tuple[Scope, str, Any]] | None] = ContextVar("nnrs_parameter_journal", default=None)
_lock = threading.Lock()  # held only while an entry is put in or out, never while user code runs


def _renew_lock() -> None:
    """In a child: the thread that held it is not there."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


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


def path_of(scope: Any) -> str:
    """The path of a scope from the root, ending in "/"; empty for the root and for a scope outside the tree."""
    todo: list[tuple[str, Any]] = [("", _root)]
    while todo:
        path, here = todo.pop()
        if here is scope:
            return path
        todo += [(f"{path}{name}/", inner) for name, inner in list(here.items()) if isinstance(inner, dict)]
    return ""


def open_scope(function: str, scope: Any, parts: list[str]) -> Any:
    """The scope at `parts` below `scope`, made where it is missing; an error where a parameter is in the way."""
    for i, part in enumerate(parts):
        found = scope.get(part)  # in one step: another thread may be taking it out
        scope = add(scope, part, OrderedDict()) if found is None else found
        if not isinstance(scope, dict):
            refuse_scope(function, "/".join(parts[: i + 1]))
    return scope


def refuse_scope(function: str, name: str) -> None:
    """Raise the error for a scope that has a parameter's name."""
    hint = "give the scope another name, or remove the parameter with pop_parameter or clear_parameters"
    raise ArgumentError(message(function, None, f"there is a parameter '{name}', so it cannot be a scope", hint=hint))


def add(scope: Scope, key: str, value: Any) -> Any:
    """Put `value` under `key` if that is free, and return what is there then: a quicker thread's value counts."""
    with _lock:
        if key not in scope:
            scope[key] = value
            if isinstance(value, Variable):
                value._note_name(key)
            _note(scope, key, None)
        return scope[key]


def put(scope: Scope, key: str, value: Any) -> None:
    """Put `value` under `key`, in place of what was there."""
    with _lock:
        _note(scope, key, scope.get(key))
        scope[key] = value
    if isinstance(value, Variable):
        value._note_name(key)


def take(scope: dict[str, Any], key: str) -> Any:
    """Take `key` out and return its value, or None."""
    with _lock:
        return scope.pop(key, None)


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


def _note(scope: Scope, key: str, old: Any) -> None:
    journal = _journal.get()
    if journal is not None:
        journal.append((scope, key, old))


def call_in_scope(function: str, parts: list[str], call: Callable[[], Any]) -> Any:
    """Return `call()`, made in the scope at `parts`; if it raises, the parameters and scopes that it made go again."""
    outer, before = _journal.get(), current.get()
    journal: list[tuple[Scope, str, Any]] = []
    _journal.set(journal)
    try:
        current.set(open_scope(function, get_current_parameter_scope(), parts))
        result = call()
    except BaseException:
        for entry in reversed(journal):
            _undo(*entry)
        raise
    finally:
        current.set(before)
        _journal.set(outer)
    if outer is not None:
        outer.extend(journal)
    return result


def _undo(scope: Scope, key: str, old: Any) -> None:
    with _lock:
        if old is not None:
            scope[key] = old
        elif not (isinstance(scope.get(key), dict) and scope[key]):  # a scope that others use meanwhile stays
            scope.pop(key, None)
