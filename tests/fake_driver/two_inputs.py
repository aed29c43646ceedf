"""Two large inputs in each step: their copies need not wait for the step before, and waits of the host are counted.

Run with the fake driver and FAKE_PROB=0: nothing happens there unless somebody waits for it.
"""

from __future__ import annotations

import ctypes

import numpy as np

import nnrs as nn
import nnrs.functions as F
from nnrs.ext import cuda
from nnrs.ext_utils import get_extension_context

driver = ctypes.CDLL("libcuda.so.1")
N = 1 << 19  # 2 MiB


def main() -> None:
    cuda.set_graphs(False)
    with nn.context_scope(get_extension_context("cudnn")):
        x, t = nn.Variable((N,)), nn.Variable((N,))
        y = F.sum((F.tanh(x) - t) ** 2)
    rows = []
    for k in range(6):
        x.d, t.d = np.full(N, k, np.float32), np.ones(N, np.float32)
        waits = cuda.host_waits()
        y.forward(clear_no_need_grad=True)
        rows.append((cuda.host_waits() - waits, driver.fake_kernels()))
    print(rows)
    # Two steps fit into the pinned memory; from then on the host waits for room, and says so.
    assert rows[0] == rows[1] == (0, 0) and all(waits > 0 for waits, _ in rows[2:]), rows
    assert np.isclose(y.d, N * (1 - np.tanh(5)) ** 2, rtol=1e-3)
    print("fine")


if __name__ == "__main__":
    main()
