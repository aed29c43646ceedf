"""Out of memory outside of arrays: at a launch, when kernels are loaded, for pinned memory, for CUDA graphs.

Run with the fake driver, which says no as often as its variables tell. Once is survived; twice in a row is
a MemoryError that names arrays, and the next run is right.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np

CASES = {
    "FAKE_LAUNCHOOM=1": "0",
    "FAKE_LAUNCHOOM=2": "1",
    "FAKE_MODOOM=1": "0",
    "FAKE_MODOOM=2": "1",
    "FAKE_NOPIN=1": "0",
    "FAKE_NOGRAPH=1": "0",
}


def case(wish: str, refused: int) -> None:
    import nnrs as nn
    import nnrs.functions as F
    from nnrs.ext import cuda
    from nnrs.ext_utils import get_extension_context

    with nn.context_scope(get_extension_context("cudnn")):
        a = np.linspace(-1, 1, 90_000).astype(np.float32).reshape(300, 300)
        x = nn.Variable(a.shape)
        y = F.tanh(x)
    failed = 0
    for k in range(8):
        x.d = a * k
        try:
            y.forward()
        except MemoryError as e:
            failed += 1
            assert "out of memory on GPU 0" in str(e) and "the largest arrays: " in str(e), e
            y.forward()
        assert np.allclose(y.d, np.tanh(a * k), atol=1e-5)
    assert failed == refused, failed
    large = nn.Variable.from_numpy_array(np.arange(3 << 20, dtype=np.float32))
    with nn.context_scope(get_extension_context("cudnn")):
        z = F.add_scalar(large, 1)
    waits = cuda.host_waits()
    z.forward()
    assert (cuda.host_waits() > waits) == (wish == "FAKE_NOPIN") or wish != "FAKE_NOPIN"
    assert np.array_equal(z.d, np.arange(3 << 20) + np.float32(1))
    if wish == "FAKE_NOGRAPH":
        assert "out of memory on GPU 0" in cuda.graphs(y)[0] and "making a CUDA graph" in cuda.graphs(y)[0], (
            cuda.graphs(y)
        )


if __name__ == "__main__":
    if sys.argv[1:]:
        case(sys.argv[1], int(sys.argv[2]))
    else:
        for setting, refused in CASES.items():
            name, value = setting.split("=")
            done = subprocess.call([sys.executable, __file__, name, refused], env={**os.environ, name: value})
            assert done == 0, setting
        print("fine")
