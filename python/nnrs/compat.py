"""Lets scripts that say `import nnabla` run on nnrs, unchanged.

After `install()`, `nnabla`, `nnabla.functions`, `nnabla_ext.cpu` and so on are the very modules of nnrs.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from types import CodeType, ModuleType
from typing import Any

from ._errors import UnsupportedError
from ._version import __version__
from .logger import logger

_NNABLA = "1.39.0"  # the version whose API this is: scripts look whether it is new enough for them
_PACKAGES = {"nnabla": "nnrs", "nnabla_ext": "nnrs.ext"}


def real_name(name: str) -> str | None:
    """The module of nnrs that stands for the module `name` of NNabla."""
    head, dot, rest = name.partition(".")
    return _PACKAGES[head] + dot + rest if head in _PACKAGES else None


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """That of the module `name`, if there is one."""
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__spec__ is not None:
        return loaded.__spec__
    try:
        return importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError):  # nor is what it lies in; one without a spec
        return None


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds NNabla's modules and loads nnrs's in their place, when they are first imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        real = real_name(fullname)
        spec = None if real is None else _spec(real)
        if real is None or (spec is None and real not in sys.modules):
            return None
        is_package = spec is None or spec.submodule_search_locations is not None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        # The import system takes what is in sys.modules after this call: nnrs's own module, whose name stays its own.
        real = importlib.import_module(str(real_name(module.__name__)))
        sys.modules[module.__name__] = real
        module.__dict__["__getattr__"] = partial(getattr, real)  # for who made a module himself

    def get_code(self, fullname: str) -> CodeType | None:
        """For `python -m nnabla.utils.x` and `runpy`: nnrs's module is run."""
        spec = _spec(str(real_name(fullname)))
        loader: Any = spec and spec.loader
        return loader.get_code(spec.name) if hasattr(loader, "get_code") else None  # type: ignore[union-attr]

    @staticmethod
    def find_distributions(context: Any = None) -> Iterable[Any]:
        """Lets `importlib.metadata.version("nnabla")` say NNabla's version; asked by `importlib.metadata` alone."""
        from ._compat_metadata import Nnabla

        name = getattr(context, "name", None)
        return [Nnabla(_NNABLA)] if name is None or name.lower() == "nnabla" else []


_alias = _Alias()


def install() -> None:
    """Make `import nnabla` and its submodules find nnrs. Until `uninstall`, `__version__` of both is NNabla's, 1.39.0.

    Raises:
        RuntimeError: If NNabla itself is imported already.

    >>> install()
    >>> import nnabla.functions as F
    >>> F.__name__
    'nnrs.functions'
    >>> uninstall()
    """
    for package, real in _PACKAGES.items():
        loaded = sys.modules.get(package)
        if loaded is not None and loaded.__name__ != real:
            raise UnsupportedError(f"nnrs.compat.install: {package} is imported already; call install() before that")
    if _alias in sys.meta_path:
        return
    sys.meta_path.insert(0, _alias)
    _say_version(_NNABLA)
    logging.root.manager.loggerDict["nnabla"] = logger  # for `logging.getLogger("nnabla").setLevel(..)`
    # What is loaded already is entered, not imported: an import would set `nnrs.grad`, the function, to the module.
    for name in list(sys.modules):
        for package, real in _PACKAGES.items():
            if name == real or name.startswith(f"{real}."):
                sys.modules[package + name[len(real) :]] = sys.modules[name]


def _say_version(version: str) -> None:
    setattr(sys.modules[__package__], "__version__", version)  # noqa: B010 - a module's attribute, for mypy


def uninstall() -> None:
    """Undo `install`: later imports of `nnabla` find NNabla again."""
    if _alias not in sys.meta_path:
        return
    sys.meta_path.remove(_alias)
    _say_version(__version__)
    logging.root.manager.loggerDict.pop("nnabla", None)
    for name in [n for n in sys.modules if real_name(n) is not None]:
        del sys.modules[name]
