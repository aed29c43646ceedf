"""Two large inputs in each step: their copies need not wait for the step before, and waits of the host are counted.

Run with the fake driver. With FAKE_PROB=0 nothing happens there unless the host waits for it: then work of all streams
is done in random order.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np

N = 3 << 18  # 3 MiB
SEEDS = 4


def steps() -> None:
    import nnrs as nn
    import nnrs.functions as F
    from nnrs.ext import cuda
    from nnrs.ext_utils import get_extension_context

    driver = ctypes.CDLL("libcuda.so.1")
    cuda.set_graphs(False)
    with nn.context_scope(get_extension_context("cudnn")):
        x, t = nn.Variable((N,)), nn.Variable((N,))
        y = F.sum((F.tanh(x) - t) ** 2)
    rows = []
    for k in range(4):
        x.d, t.d = np.full(N, k, np.float32), np.ones(N, np.float32)
        waits = cuda.host_waits()
        y.forward(clear_no_need_grad=True)
        rows.append((cuda.host_waits() - waits, driver.fake_kernels()))
    # The first step fits into the pinned memory; then the host waits for room, and says so.
    assert rows[0] == (0, 0) and rows[1][0] > 0, rows
    assert np.isclose(y.d, N * (1 - np.tanh(3)) ** 2, rtol=1e-3)
    print(rows[2][1])


def main() -> None:
    ran = []
    for seed in range(SEEDS):
        env = {**os.environ, "FAKE_PROB": "0", "FAKE_SEED": str(seed)}
        ran.append(int(subprocess.check_output([sys.executable, __file__, "steps"], env=env)))
    # With one landing for both, the third step's copies waited for all three kernels of the first.
    assert min(ran) < 3, ran
    print("fine")


if __name__ == "__main__":
    steps() if sys.argv[1:] else main()
