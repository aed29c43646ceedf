"""A driver or a GPU that cannot be used is one clear error when the context is asked for, and only success is kept.

Run with the fake driver. The last case builds a driver that lacks most functions, with the C compiler.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

PARTIAL = """
int cuInit(unsigned f) { return 0; }
int cuDriverGetVersion(int *v) { *v = 12020; return 0; }
int cuGetErrorName(int e, const char **s) { *s = "?"; return 0; }
int cuGetErrorString(int e, const char **s) { *s = "?"; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
"""

ASK = """
import warnings
import numpy as np, nnrs as nn, nnrs.functions as F
from nnrs.ext import cuda
from nnrs.ext_utils import get_extension_context
try:
    get_extension_context("cudnn")
except Exception as e:
    print(type(e).__name__, e)
with nn.context_scope(get_extension_context("cudnn")):
    y = F.exp(nn.Variable.from_numpy_array(np.zeros(3, np.float32)))
y.forward()
print(y.d)
"""

WHY = """
from nnrs.ext import cuda
print(cuda.why_no_library())
"""


def run(script: str, **env: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env={**os.environ, **env}
    )
    return done.stdout, done.stderr


def refused(*texts: str, **env: str) -> None:
    """Each asking is an error with these texts."""
    out, err = run(ASK, **env)
    for text in texts:
        assert text in out and text in err, (text, out, err)
    assert "panicked" not in err and "[1. 1. 1.]" not in out, err


def main() -> None:
    out, err = run(ASK, FAKE_RETAIN_ONCE="1")
    assert out.startswith("OutOfMemoryError") and "opening GPU 0" in out and out.endswith("[1. 1. 1.]\n"), (out, err)
    refused("UnsupportedError", "the GPU's compute capability is 6.1", "7.0 (Volta) or later", FAKE_CC="61")
    refused("opening GPU 0 (Fake H100)", FAKE_RETAIN="46")
    refused("CUDA is not available", "CUDA_VISIBLE_DEVICES is ''", FAKE_INIT="100", CUDA_VISIBLE_DEVICES="")
    refused("CUDA is not available", "is for CUDA 11.8", "nnrs[cuda12]", FAKE_VERSION="11080")
    host = "import nnrs as nn; nn.Context(['cudnn:float', 'cpu:float'], '', '0')"
    out, err = run(host, FAKE_CC="61")
    assert "RuntimeWarning" in err and "computes on the host: " in err and "6.1" in err, err

    nothing = {"NNRS_CUDA_LIBRARY_PATH": ":/nowhere:", "FAKE_VERSION": "13000"}
    out, err = run(WHY, **nothing)
    assert "pip install 'nnrs[cuda13]' (or 'nnrs[cuda12]') brings it" in out and "in /nowhere" in out, (out, err)
    out, err = run(WHY, FAKE_CC="70", **nothing)
    assert "libnvrtc.so.12" in out and "so.13" not in out and "pip install 'nnrs[cuda12]' brings it" in out, (out, err)

    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "libcuda.so.1")
        with open(os.path.join(folder, "partial.c"), "w") as f:
            f.write(PARTIAL)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, f.name], check=True)
        refused("CUDA is not available", "it has no cuCtxEnablePeerAccess", LD_LIBRARY_PATH=folder)
    print("fine")


if __name__ == "__main__":
    main()
