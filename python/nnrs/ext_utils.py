"""Backends by name: `get_extension_context('cpu')` and what goes with it."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from types import ModuleType
from typing import Any

from ._core import Context
from ._errors import UnknownExtensionError, check_type, message

_KNOWN = ("cpu", "cuda", "cudnn")


def import_extension_module(ext_name: str) -> ModuleType:
    """The module of a backend.

    Args:
        ext_name: Name of the backend, 'cpu', 'cuda' or 'cudnn', or of a module in it ('cuda.utils.inspection').

    Raises:
        ModuleNotFoundError: If there is no such backend.

    >>> import_extension_module("cpu").get_device_count()
    1
    """
    return _module("import_extension_module", ext_name)


def _module(function: str, ext_name: str) -> ModuleType:
    check_type(function, "ext_name", ext_name, str, "a backend's name as a str")
    if ext_name.partition(".")[0] in _KNOWN:
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(f"{__package__}.ext.{ext_name}")
    expected = "one of " + ", ".join(repr(known) for known in _KNOWN)
    raise UnknownExtensionError(message(function, "ext_name", expected, repr(ext_name)))


def list_extensions() -> list[str]:
    """Names of the backends. (Those of CUDA need a GPU when they are asked for a context.)

    >>> list_extensions()
    ['cpu', 'cuda', 'cudnn']
    """
    return list(_KNOWN)


def get_extension_context(ext_name: str, **kw: Any) -> Context:
    """The context of a backend, for `nnrs.set_default_context` or `nnrs.context_scope`.

    Args:
        ext_name: Name of the backend: 'cpu', 'cuda' or 'cudnn' (the last two are the same here). 'cuda.cudnn' is the
            last one's old name: a FutureWarning.
        **kw: `device_id` (number of the GPU; ignored on the CPU) and `type_config`: 'float', 'half', 'bfloat16' or
            'double'.

    Raises:
        ModuleNotFoundError: If there is no such backend.
        RuntimeError: If there is no GPU that can be used: what was looked for, and where.
        ValueError: For another `type_config`, or a GPU that is not there.

    >>> get_extension_context("cpu", type_config="half", device_id="0").backend
    ['cpu:half', 'cpu:float']
    """
    if ext_name == "cuda.cudnn":
        warnings.warn(
            "nnrs: get_extension_context: 'cuda.cudnn' is the old name of 'cudnn'", FutureWarning, stacklevel=2
        )
        ext_name = "cudnn"
    made: Context = _module("get_extension_context", ext_name).context(**kw)
    return made
