"""The error for a name that a module does not have: Python's, with the nearest names that it has as a hint.

Every name of NNabla 1.39 is there (tests/test_missing.py), so a name that is not is a slip.
"""

from __future__ import annotations

import pkgutil
import sys
from types import ModuleType

_FOREIGN = ("__future__", "collections.abc", "typing")


def missing_name(module: str, name: str) -> AttributeError:
    """The error for an unknown attribute of a module.

    Args:
        module: The module's whole name, as in `sys.modules`.
        name: What it was asked for.

    >>> import nnrs.functions
    >>> print(missing_name("nnrs.functions", "Relu"))
    module 'nnrs.functions' has no attribute 'Relu'
      hint: did you mean 'relu' or 'relu6' or 'prelu'?
    """
    text = f"module '{module}' has no attribute '{name}'"
    # Names with underscores are asked for by tools that look whether they are there, mostly.
    near = [] if name.startswith("_") else nearest(name, _names(sys.modules[module]))
    if near:
        text += f"\n  hint: did you mean {' or '.join(map(repr, near))}?"
    return AttributeError(text, name=name, obj=None)  # with an object, Python prints what it takes for near, too


def nearest(name: str, names: list[str]) -> list[str]:
    """The three that are most like it at most, whatever their case."""
    import difflib

    by_lower = {n.lower(): n for n in reversed(names)}
    return [by_lower[n] for n in difflib.get_close_matches(name.lower(), by_lower, cutoff=0.7)]


def _names(module: ModuleType) -> list[str]:
    """The names of a module that are meant for users; of a package its modules, too."""
    parts = [m.name for m in pkgutil.iter_modules(getattr(module, "__path__", []))]
    held = [n for n in dir(module) if not _is_foreign(vars(module).get(n))]
    return sorted({n for n in (*parts, *held) if not n.startswith("_")})


def _is_foreign(value: object) -> bool:
    if isinstance(value, ModuleType):
        return not value.__name__.startswith("nnrs")
    return getattr(value, "__module__", None) in _FOREIGN
