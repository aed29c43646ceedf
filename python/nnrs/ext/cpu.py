"""The CPU backend, as NNabla's `nnabla_ext.cpu` presents itself."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._core import Context
from .._errors import ArgumentError, message

_BACKENDS = {
    "float": ["cpu:float"],
    "half": ["cpu:half", "cpu:float"],
    "bfloat16": ["cpu:bfloat16", "cpu:float"],
    "double": ["cpu:double", "cpu:float"],
}


def context(type_config: str = "float", **kw: Any) -> Context:
    """The context that runs functions on the CPU.

    Args:
        type_config: Element type of results: 'float', 'half', 'bfloat16' or 'double'.
        **kw: Ignored (`device_id`, say), so that scripts for other backends run.

    Raises:
        ValueError: For another `type_config`.

    >>> context().backend
    ['cpu:float']
    """
    backend = _BACKENDS.get(type_config) if isinstance(type_config, str) else None
    if backend is None:
        expected = "one of " + ", ".join(repr(known) for known in _BACKENDS)
        raise ArgumentError(message("get_extension_context", "type_config", expected, repr(type_config)))
    return Context(list(backend), "CpuCachedArray", "")


def array_classes() -> list[str]:
    """Names of the kinds of arrays."""
    return ["CpuCachedArray", "CpuArray", "CpuDlpackArray"]


def get_device_count() -> int:
    """Number of devices: always 1."""
    return 1


def get_devices() -> list[str]:
    """Names of the devices.

    >>> get_devices()
    ['0']
    """
    return ["0"]


def clear_memory_cache() -> None:
    """Give freed memory that is kept for reuse back to the system."""
    _core.clear_memory_cache()


def synchronize(**kw: Any) -> None:
    """Nothing to wait for on the CPU."""


def device_synchronize(device: str = "0") -> None:
    """Nothing to wait for on the CPU."""
