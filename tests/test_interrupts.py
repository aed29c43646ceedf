"""Ctrl-C in long work that is no run of a graph."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LONG = {
    # What has ended by an error has changed nothing. Work is asked after each 50 ms: it must take as long.
    "cast": """
import signal, numpy as np, nnrs as nn
def ask(signal, frame):
    raise KeyboardInterrupt
def is_ended(n):
    x = nn.NdArray((n,))
    x.data = np.resize(np.arange(256).astype(np.int8), n)
    signal.setitimer(signal.ITIMER_REAL, 0.005)
    try:
        x.cast(np.float64)
        signal.pause()
    except KeyboardInterrupt:
        pass
    is_ended = x.dtype == np.int8
    x.cast(np.int8)
    assert x.data[3] == 3 and x.data[200] == 200 - 256
    return is_ended
signal.signal(signal.SIGALRM, ask)
assert any(is_ended(2**size) for size in (25, 26, 27, 28))
""",
    # Python itself asks before and after the call.
    "outputs": """
import signal, nnrs as nn, nnrs.functions as F
asked = []
signal.signal(signal.SIGALRM, lambda signal, frame: asked.append(signal))
x = nn.Variable((2**18,))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
y = F.split(x)
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(y) == 2**18 and len(asked) > 12, len(asked)
""",
}


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no alarm signal")
@pytest.mark.parametrize("work", LONG)
def test_ctrl_c(work):
    command = [sys.executable, "-c", LONG[work]]
    env = os.environ | {"NNRS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
