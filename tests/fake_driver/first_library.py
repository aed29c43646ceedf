"""A thread that computes with the GIL (auto_forward) and one without need a library for the first time at once.

Run with the fake driver. Who looks for a library must not want the GIL: it hung in one run of five.
"""

from __future__ import annotations

import faulthandler
import subprocess
import sys
import threading

import numpy as np

RUNS = 12


def once() -> None:
    import nnrs as nn
    import nnrs.functions as F
    from nnrs.ext_utils import get_extension_context

    faulthandler.dump_traceback_later(30, exit=True)
    sys.setswitchinterval(1e-6)
    context, w, go = get_extension_context("cudnn"), np.ones((4, 4), np.float32), threading.Barrier(2)
    leaf = nn.Variable.from_numpy_array

    def without() -> None:
        with nn.context_scope(context):
            y = F.affine(F.exp(leaf(w)), leaf(w))
            F.exp(leaf(w)).forward()
        go.wait()
        y.forward()

    def holding() -> None:
        with nn.context_scope(context), nn.auto_forward(True):
            x, z = leaf(w), leaf(w)
            F.exp(x)
            go.wait()
            for _ in range(30):
                F.affine(x, z)

    threads = [threading.Thread(target=f) for f in (without, holding)]
    [t.start() for t in threads]
    [t.join() for t in threads]


if __name__ == "__main__":
    if sys.argv[1:]:
        once()
    else:
        assert [subprocess.call([sys.executable, __file__, "once"]) for _ in range(RUNS)] == [0] * RUNS
        print("fine")
