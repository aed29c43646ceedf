"""Gradient rules under NNabla's module names: `nnrs.backward_function.affine` has `affine_backward`,
and the rules of what that is made of in NNabla, `affine_data_grad_backward` and `affine_filter_grad_backward`.

They are those of `nnrs.backward_functions`; a module is made when it is imported.

>>> import nnrs as nn
>>> from nnrs.backward_function.relu import relu_backward
>>> gy, x = (nn.Variable.from_numpy_array(values) for values in ([1.0, 1.0], [-1.0, 2.0]))
>>> gx = relu_backward([gy], [x], [x.shape], [None], [gy.shape])
>>> gx.forward()
>>> gx.d.tolist()
[0.0, 1.0]
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
        if backward_functions._names_of(name):
            return importlib.machinery.ModuleSpec(fullname, self)
        return None

    def exec_module(self, module: ModuleType) -> None:
        for rule in backward_functions._names_of(module.__name__.rpartition(".")[2]):
            setattr(module, rule, getattr(backward_functions, rule))
        from .backward_function import CLASSES

        for made in CLASSES.get(module.__name__.rpartition(".")[2], ()):
            made.__module__ = module.__name__
            setattr(module, made.__name__, made)


sys.meta_path.append(_Rules())


def __getattr__(name: str) -> ModuleType:
    return module_of(__name__, name)
