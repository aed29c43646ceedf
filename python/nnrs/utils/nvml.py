"""What NVIDIA's driver says of its GPUs: the functions of its library NVML under their own names.

The library comes with the driver; it is loaded by `nvmlInit`. An error of it is an `NVMLError`.

>>> try:
...     nvmlInit()
...     print(nvmlDeviceGetCount() >= 0, nvmlShutdown())
... except NVMLError as error:
...     print(error.value in (NVML_ERROR_LIBRARY_NOT_FOUND, NVML_ERROR_DRIVER_NOT_LOADED), None)
True None
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any

from .._core import Error
from .._errors import check_integer

NVML_SUCCESS = 0
NVML_ERROR_UNINITIALIZED = 1
NVML_ERROR_INVALID_ARGUMENT = 2
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NO_PERMISSION = 4
NVML_ERROR_ALREADY_INITIALIZED = 5
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_INSUFFICIENT_SIZE = 7
NVML_ERROR_INSUFFICIENT_POWER = 8
NVML_ERROR_DRIVER_NOT_LOADED = 9
NVML_ERROR_TIMEOUT = 10
NVML_ERROR_IRQ_ISSUE = 11
NVML_ERROR_LIBRARY_NOT_FOUND = 12
NVML_ERROR_FUNCTION_NOT_FOUND = 13
NVML_ERROR_CORRUPTED_INFOROM = 14
NVML_ERROR_GPU_IS_LOST = 15
NVML_ERROR_RESET_REQUIRED = 16
NVML_ERROR_OPERATING_SYSTEM = 17
NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18
NVML_ERROR_IN_USE = 19
NVML_ERROR_MEMORY = 20
NVML_ERROR_NO_DATA = 21
NVML_ERROR_VGPU_ECC_NOT_SUPPORTED = 22
NVML_ERROR_INSUFFICIENT_RESOURCES = 23
NVML_ERROR_UNKNOWN = 999

NVML_DEVICE_NAME_BUFFER_SIZE = 64

nvml_lib: Any = None
"""The library, once `nvmlInit` has loaded it."""
_loading = threading.Lock()

# What is most likely wrong, for those that a program meets.
_REASONS = {
    NVML_ERROR_UNINITIALIZED: "call nvmlInit() first",
    NVML_ERROR_DRIVER_NOT_LOADED: "NVIDIA's driver is not loaded",
    NVML_ERROR_LIBRARY_NOT_FOUND: "the library is not there: it comes with NVIDIA's driver",
    NVML_ERROR_NO_PERMISSION: "this user may not ask",
    NVML_ERROR_FUNCTION_NOT_FOUND: "the driver is too old for this",
    NVML_ERROR_LIB_RM_VERSION_MISMATCH: "library and driver are of different versions: restart the machine",
    NVML_ERROR_GPU_IS_LOST: "the GPU does not answer any more",
}
_NAMES = {
    value: name.removeprefix("NVML_ERROR_").replace("_", " ").lower()
    for name, value in list(globals().items())
    if name.startswith("NVML_ERROR_")
}


class _DeviceStruct(ctypes.Structure):
    """What a handle points to; the library's own."""


c_nvmlDevice_t = ctypes.POINTER(_DeviceStruct)
"""A GPU's handle, as `nvmlDeviceGetHandleByIndex` gives it: a pointer that is the library's own. It holds until
`nvmlShutdown`.
"""
c_nvmlDevice_t.__doc__ = "A GPU's handle, as `nvmlDeviceGetHandleByIndex` gives it. It holds until `nvmlShutdown`."


class c_nvmlUtilization_t(ctypes.Structure):
    """Percent of the time in which the GPU and its memory were busy: `gpu`, `memory`."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class c_nvmlMemory_t(ctypes.Structure):
    """Bytes of a GPU's memory: `total`, `free`, `used`."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class NVMLError(Error, RuntimeError):
    """An error of the library.

    Args:
        value: Its number, one of `NVML_ERROR_..`; the attribute `value`.

    >>> print(NVMLError(NVML_ERROR_NO_PERMISSION))
    NVML: no permission (4): this user may not ask
    """

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        name = _NAMES.get(self.value, "an error that nnrs does not know")
        reason = _REASONS.get(self.value)
        return f"NVML: {name} ({self.value})" + (f": {reason}" if reason else "")


def _function(name: str) -> Any:
    if nvml_lib is None:
        raise NVMLError(NVML_ERROR_UNINITIALIZED)
    try:
        return getattr(nvml_lib, name)
    except AttributeError:
        raise NVMLError(NVML_ERROR_FUNCTION_NOT_FOUND) from None


def _call(name: str, *args: Any) -> None:
    """Call a function of the library that returns its error."""
    error = int(_function(name)(*args))
    if error != NVML_SUCCESS:
        raise NVMLError(error)


def _paths() -> list[str]:
    if sys.platform != "win32":
        return ["libnvidia-ml.so.1"]
    system, programs = os.environ.get("WINDIR", "C:/Windows"), os.environ.get("ProgramFiles", "C:/Program Files")
    return [f"{system}/System32/nvml.dll", f"{programs}/NVIDIA Corporation/NVSMI/nvml.dll"]


def _load() -> None:
    global nvml_lib
    with _loading:
        for path in _paths() if nvml_lib is None else ():
            try:
                nvml_lib = ctypes.CDLL(path)
                return
            except OSError:
                continue
        if nvml_lib is None:
            raise NVMLError(NVML_ERROR_LIBRARY_NOT_FOUND)


def nvmlInit(flags: int = 0) -> bool:
    """Load the library and begin; each call wants an `nvmlShutdown`.

    Args:
        flags: 1: a machine without GPUs is no error; 2: do not attach to them.

    Raises:
        NVMLError: If there is no library or no driver.
    """
    _load()
    _call("nvmlInitWithFlags", ctypes.c_uint(check_integer("nvmlInit", "flags", flags, 0)))
    return True


def nvmlShutdown() -> None:
    """End, once for each `nvmlInit`; handles no longer hold.

    Raises:
        NVMLError: If `nvmlInit` has not been called.
    """
    _call("nvmlShutdown")


def nvmlErrorString(result: int) -> bytes:
    """The library's own text for an error.

    Args:
        result: The error's number.

    Raises:
        NVMLError: If `nvmlInit` has not been called.
    """
    f = _function("nvmlErrorString")
    f.restype = ctypes.c_char_p
    return bytes(f(result))


def nvmlDeviceGetCount() -> int:
    """Number of GPUs.

    Raises:
        NVMLError: If `nvmlInit` has not been called.
    """
    count = ctypes.c_uint()
    _call("nvmlDeviceGetCount_v2", ctypes.byref(count))
    return count.value


def nvmlDeviceGetHandleByIndex(index: int) -> Any:
    """The handle of a GPU.

    Args:
        index: Its number, from 0 on.

    Raises:
        NVMLError: If there is no such GPU, or `nvmlInit` has not been called.
    """
    device = c_nvmlDevice_t()
    number = check_integer("nvmlDeviceGetHandleByIndex", "index", index, 0)
    _call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(device))
    return device


def nvmlDeviceGetName(handle: Any) -> bytes:
    """A GPU's name, as bytes.

    Args:
        handle: The GPU's handle.

    Raises:
        NVMLError: If the driver does not answer.
    """
    name = ctypes.create_string_buffer(NVML_DEVICE_NAME_BUFFER_SIZE)
    _call("nvmlDeviceGetName", handle, name, ctypes.c_uint(NVML_DEVICE_NAME_BUFFER_SIZE))
    return name.value


def nvmlDeviceGetUtilizationRates(handle: Any) -> c_nvmlUtilization_t:
    """How busy a GPU was in the last moments, in percent.

    Args:
        handle: The GPU's handle.

    Raises:
        NVMLError: If the driver does not answer, or the GPU does not measure it.
    """
    rates = c_nvmlUtilization_t()
    _call("nvmlDeviceGetUtilizationRates", handle, ctypes.byref(rates))
    return rates


def nvmlDeviceGetMemoryInfo(handle: Any) -> c_nvmlMemory_t:
    """A GPU's memory, in bytes.

    Args:
        handle: The GPU's handle.

    Raises:
        NVMLError: If the driver does not answer.
    """
    memory = c_nvmlMemory_t()
    _call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
    return memory
