"""What NNabla's module `nnabla_ext.cuda.init` has: arrays, devices, events of a GPU.

>>> array_classes()
['CudaCachedArray', 'CudaArray', 'CudaDlpackArray']
>>> try:
...     free, total = get_device_memory_size()
... except RuntimeError:  # no GPU that can be used
...     free, total = 0, 0
>>> 0 <= free <= total
True
"""

from __future__ import annotations

import ctypes

from . import (
    StreamEventHandler,
    _driver,
    array_classes,
    clear_memory_cache,
    device_synchronize,
    get_device_count,
    get_devices,
)
from ._streams import Event, _open

__all__ = [
    "Event",
    "StreamEventHandler",
    "array_classes",
    "clear_memory_cache",
    "device_synchronize",
    "get_device_count",
    "get_device_memory_size",
    "get_devices",
]


def get_device_memory_size() -> list[int]:
    """Bytes of the first GPU's memory: those that are free, and all.

    Raises:
        RuntimeError: If there is no GPU that can be used.
    """
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    with _driver.current(_open("get_device_memory_size", 0)) as driver:
        _driver.check(driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    return [free.value, total.value]
