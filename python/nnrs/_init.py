"""What NNabla says of its CPU backend when it is loaded."""

from __future__ import annotations

from ._contexts import (
    add_available_context,
    array_classes,
    available_contexts,
    prefer_cached_array,
    reset_array_preference,
)
from .ext.cpu import clear_memory_cache, device_synchronize, get_device_count, get_devices

__all__ = [
    "add_available_context",
    "array_classes",
    "available_contexts",
    "clear_memory_cache",
    "device_synchronize",
    "get_device_count",
    "get_devices",
    "prefer_cached_array",
    "reset_array_preference",
]
