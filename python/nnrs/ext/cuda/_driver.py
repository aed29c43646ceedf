"""NVIDIA's driver by its own functions: streams beside the queue of nnrs, in the context that both share."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from ..._errors import DeviceError, UnsupportedError, message

_NON_BLOCKING = 1


@cache
def library() -> Any:
    """The driver's library.

    Raises:
        RuntimeError: If it is not there, or does not start.
    """
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        found: Any = ctypes.CDLL(name)
    except OSError as error:
        text = f"{name} was not found: {error}"
        hint = "the driver comes from NVIDIA or the system's packages"
        raise UnsupportedError(message("StreamEventHandler", None, text, hint=hint)) from None
    check(found.cuInit(0), "cuInit")
    return found


def check(code: int, name: str) -> None:
    """An error where a function of the driver has returned one."""
    if code:
        raise DeviceError(f"{name}: NVIDIA's driver gave the error {code}")


@contextlib.contextmanager
def current(device: int) -> Iterator[Any]:
    """The driver, with the context of a GPU as the thread's current one."""
    driver, context, number = library(), ctypes.c_void_p(), ctypes.c_int()
    check(driver.cuDeviceGet(ctypes.byref(number), device), "cuDeviceGet")
    check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), number), "cuDevicePrimaryCtxRetain")
    try:
        check(driver.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent")
        try:
            yield driver
        finally:
            driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(number)


def make_stream(device: int) -> int:
    """A new stream's handle."""
    stream = ctypes.c_void_p()
    with current(device) as driver:
        check(driver.cuStreamCreate(ctypes.byref(stream), _NON_BLOCKING), "cuStreamCreate")
    return stream.value or 0


def wait_for(device: int, stream: int) -> None:
    """Wait until a stream has done all its work."""
    with current(device) as driver:
        check(driver.cuStreamSynchronize(ctypes.c_void_p(stream)), "cuStreamSynchronize")


def free_stream(device: int, stream: int) -> None:
    """Give a stream back, when its work is done."""
    with current(device) as driver:
        check(driver.cuStreamDestroy_v2(ctypes.c_void_p(stream)), "cuStreamDestroy")
