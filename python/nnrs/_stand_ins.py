"""Objects that stand for Variables in calls (`ProtoVariable`): who calls a function that is given one.

`core.graph_def` says so when it is imported. Compiled functions ask the core, parametric functions ask here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core

_kinds: tuple[type, ...] = ()
_handler: Callable[..., Any] | None = None


def call_by(kind: type, handler: Callable[..., Any]) -> None:
    """From now on, a call with an object of `kind` among its arguments is `handler(function, args, kwargs)`."""
    global _kinds, _handler
    _core.call_stand_ins_by(kind, handler)
    _kinds, _handler = (kind,), handler


def handler_of(args: Any, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """What makes a call with these arguments, if such an object is among them."""
    if not _kinds or not any(isinstance(x, _kinds) for x in (*args, *kwargs.values())):
        return None
    return _handler
