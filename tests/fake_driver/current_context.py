"""The caller's current context is what it was after each call: other users of CUDA choose their device by it.

Run with the fake driver and FAKE_DEVICES=2.
"""

from __future__ import annotations

import ctypes

import numpy as np

import nnrs as nn
import nnrs.functions as F
from nnrs.ext_utils import get_extension_context

driver = ctypes.CDLL("libcuda.so.1")


def now() -> int | None:
    current = ctypes.c_void_p()
    assert driver.cuCtxGetCurrent(ctypes.byref(current)) == 0
    return current.value


def compute(device: str) -> None:
    with nn.context_scope(get_extension_context("cudnn", device_id=device)):
        w = nn.Variable.from_numpy_array(np.ones((3, 3), np.float32), need_grad=True)
        y = F.sum(F.affine(F.exp(nn.Variable.from_numpy_array(np.zeros((2, 3), np.float32))), w))
    for _ in range(5):
        y.forward()
        y.backward()
    assert y.d == 18
    assert np.array_equal(w.g, np.full((3, 3), 10.0))


def main() -> None:
    assert driver.cuInit(0) == 0 and now() is None
    compute("1")
    assert now() is None
    contexts = [ctypes.c_void_p(), ctypes.c_void_p()]
    for i, context in enumerate(contexts):
        assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), i) == 0
    for context in contexts:
        for device in ("0", "1"):
            assert driver.cuCtxSetCurrent(context) == 0
            compute(device)
            assert now() == context.value, (device, context)
    print("fine")


if __name__ == "__main__":
    main()
