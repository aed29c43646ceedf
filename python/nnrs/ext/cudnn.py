"""The cuDNN backend, as NNabla's `nnabla_ext.cudnn` presents itself: that of CUDA, by another name."""

from __future__ import annotations

from typing import Any

from .._core import Context
from .._missing import missing_name
from .cuda import (
    StreamEventHandler,
    array_classes,
    check_gpu_compatibility,
    clear_memory_cache,
    compiled_kernels,
    device_name,
    device_synchronize,
    functions_on_host,
    get_device_count,
    get_devices,
    graphs,
    host_waits,
    libraries,
    made,
    memory_stats,
    reset_memory_peak,
    set_compiler,
    set_graphs,
    set_libraries,
    set_memory_limit,
    set_tf32,
    synchronize,
    why_no_library,
    why_not_compiled,
)

__all__ = [
    "StreamEventHandler",
    "array_classes",
    "check_gpu_compatibility",
    "clear_memory_cache",
    "compiled_kernels",
    "context",
    "device_name",
    "device_synchronize",
    "functions_on_host",
    "get_device_count",
    "get_devices",
    "graphs",
    "host_waits",
    "libraries",
    "memory_stats",
    "reset_memory_peak",
    "set_compiler",
    "set_graphs",
    "set_libraries",
    "set_memory_limit",
    "set_tf32",
    "synchronize",
    "why_no_library",
    "why_not_compiled",
]


def context(device_id: str | int = "0", type_config: str = "float", **kw: Any) -> Context:
    """The context that runs functions on a GPU; see `nnrs.ext.cuda.context`."""
    return made("cudnn", device_id, type_config)


def __getattr__(name: str) -> Any:
    raise missing_name("nnrs.ext.cudnn", name)
