"""Backends by name: `get_extension_context('cpu')` and what goes with it."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from ._core import Context
from ._errors import UnknownExtensionError, check_type, message

_KNOWN = ("cpu",)
_CUDA = ("cuda", "cudnn")


def import_extension_module(ext_name: str) -> ModuleType:
    """The module of a backend.

    Args:
        ext_name: Name of the backend: 'cpu'.

    Raises:
        ModuleNotFoundError: If this build does not have it.

    >>> import_extension_module("cpu").get_device_count()
    1
    """
    return _module("import_extension_module", ext_name)


def _module(function: str, ext_name: str) -> ModuleType:
    check_type(function, "ext_name", ext_name, str, "a backend's name as a str")
    if ext_name in _CUDA:
        hint = "use 'cpu'"
        raise UnknownExtensionError(message(function, "ext_name", "this build has no CUDA backend yet", hint=hint))
    if ext_name not in _KNOWN:
        expected = "one of " + ", ".join(repr(known) for known in _KNOWN)
        raise UnknownExtensionError(message(function, "ext_name", expected, repr(ext_name)))
    return importlib.import_module(f"{__package__}.ext.{ext_name}")


def list_extensions() -> list[str]:
    """Names of the backends of this build.

    >>> list_extensions()
    ['cpu']
    """
    return list(_KNOWN)


def get_extension_context(ext_name: str, **kw: Any) -> Context:
    """The context of a backend, for `nnrs.set_default_context` or `nnrs.context_scope`.

    Args:
        ext_name: Name of the backend: 'cpu'.
        **kw: `device_id` (any, ignored on the CPU) and `type_config`: 'float', 'half', 'bfloat16' or 'double'.

    Raises:
        ModuleNotFoundError: If this build does not have the backend.
        ValueError: For another `type_config`.

    >>> get_extension_context("cpu", type_config="half", device_id="0").backend
    ['cpu:half', 'cpu:float']
    """
    made: Context = _module("get_extension_context", ext_name).context(**kw)
    return made
