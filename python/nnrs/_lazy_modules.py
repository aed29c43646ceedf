"""Modules of a package that are imported when they are first asked for: `import nnabla` alone has some of NNabla's."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

from ._missing import missing_name


def module_of(package: str, name: str) -> ModuleType:
    """The module `name` of a package; an AttributeError if it has none."""
    loaded = sys.modules.get(f"{package}.{name}")
    if loaded is not None:
        return loaded
    if not name.startswith("_") and _is_there(f"{package}.{name}"):
        return importlib.import_module(f"{package}.{name}")
    raise missing_name(package, name)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # `name` is dotted, and what it lies in is not there
        return False
