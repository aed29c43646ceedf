"""The cuDNN backend, as NNabla's `nnabla_ext.cudnn` presents itself: that of CUDA, by another name."""

from __future__ import annotations

from typing import Any

from .._core import Context
from .cuda import (
    array_classes,
    clear_memory_cache,
    device_name,
    device_synchronize,
    functions_on_host,
    get_device_count,
    get_devices,
    graphs,
    made,
    memory_stats,
    reset_memory_peak,
    set_graphs,
    set_memory_limit,
    synchronize,
)

__all__ = [
    "array_classes",
    "clear_memory_cache",
    "context",
    "device_name",
    "device_synchronize",
    "functions_on_host",
    "get_device_count",
    "get_devices",
    "graphs",
    "memory_stats",
    "reset_memory_peak",
    "set_graphs",
    "set_memory_limit",
    "synchronize",
]


def context(device_id: str | int = "0", type_config: str = "float", **kw: Any) -> Context:
    """The context that runs functions on a GPU; see `nnrs.ext.cuda.context`."""
    return made("cudnn", device_id, type_config)
