"""NNabla 1.39's names that nnrs does not have yet: the one list of them. docs/missing.md is made from it.

A name in it raises an AttributeError that says so, a module a ModuleNotFoundError; nothing is a silent stub.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from ._errors import MissingModuleError

NAMES: dict[str, str] = {}
"""Missing names by the module that NNabla has them in."""

MODULES: frozenset[str] = frozenset()
"""Missing modules, packages among them."""

_SAME = {"function_bases": "functions", "solver": "solvers", "ext.cudnn": "ext.cuda"}
"""Modules that have the names of another one too."""


def missing(module: str) -> set[str]:
    """The missing names of a module, given without the package's own name."""
    names = [name for of in (module, _SAME.get(module)) if of is not None for name in NAMES.get(of, "").split()]
    modules = [last for parent, _, last in (name.rpartition(".") for name in MODULES) if parent == module]
    return {*names, *modules}


def missing_name(module: str, name: str, more: Sequence[str] = ()) -> AttributeError:
    """The error for an unknown attribute of a module; it says so where NNabla has the name (`more` beside the list)."""
    if name in more or name in missing(module.removeprefix("nnrs").removeprefix(".")):
        return AttributeError(_text(f"{module}.{name}"))
    return AttributeError(f"module '{module}' has no attribute '{name}'")


def missing_module(module: str) -> ModuleNotFoundError:
    """The error for the import of a module that NNabla has."""
    return MissingModuleError(_text(module), name=module)


def _text(name: str) -> str:
    return f"{name} is not in this version of nnrs yet; NNabla 1.39 has it"


class _Finder(importlib.abc.MetaPathFinder):
    """The last finder to be asked: the missing modules are not there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package == "nnrs" and name in MODULES:
            raise missing_module(fullname)
        return None


def install() -> None:
    """Let imports of these modules say so."""
    sys.meta_path.append(_Finder())
