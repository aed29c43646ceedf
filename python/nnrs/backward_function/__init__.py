"""Gradient rules under NNabla's module names: `nnrs.backward_function.affine` has `affine_backward`.

They are those of `nnrs.backward_functions`; a module is made when it is imported.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from .. import backward_functions
from .._lazy_modules import module_of


class _Rules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module for each function that has a rule, and makes it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if package != __name__:
            return None
        if hasattr(backward_functions, f"{name}_backward"):
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def exec_module(self, module: ModuleType) -> None:
        rule = f"{module.__name__.rpartition('.')[2]}_backward"
        setattr(module, rule, getattr(backward_functions, rule))


sys.meta_path.append(_Rules())


def __getattr__(name: str) -> ModuleType:
    return module_of(__name__, name)
