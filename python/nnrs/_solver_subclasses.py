"""A script's own classes over `Solver`, which hand all calls on to another solver (as wrappers of nnabla-rl do).

They have no rule of update themselves. So what they do not define raises an error that says so, where NNabla dies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _core
from ._errors import StateError, message

_WITH_RULES = f"{__package__}.solvers"


def has_rule(kind: type) -> bool:
    """Whether a class is one of `nnrs.solvers`, or made of one."""
    return any(base.__module__ == _WITH_RULES for base in kind.__mro__)


def stand_in(kind: type[_core.Solver]) -> Any:
    """An object of a class without a rule: the engine sees a solver that never has parameters."""
    return _core.Solver.__new__(kind, "Sgd", (0.0,))


def guard(kind: type, base: type) -> None:
    """Let what the class did not take over from `base` raise an error, when it is used."""
    for name in dir(base):
        if not name.startswith("_") and getattr(kind, name) is getattr(base, name):
            error = _refusal(kind.__name__, name)
            setattr(kind, name, error if callable(getattr(base, name)) else property(error))


def _refusal(kind: str, name: str) -> Callable[..., Any]:
    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        hint = f"define {name} in {kind}, or derive from a solver"
        raise StateError(message(name, None, f"{kind} has no rule of update", hint=hint))

    return refuse
