"""A libcuda.so.1 of our own (`fake.cpp`, `machine.hpp`), under which nnrs runs as on a GPU: by the driver's calls, with
its streams, events, pinned memory and captured runs (`kernels/src/cuda/real.rs`). Only the kernels run on the host, as
C++ over `cuda/emulate.hpp`.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CUDA = ROOT / "cuda"
INCLUDES = [CUDA, ROOT / "kernels/src/expr/cuda"]
# What the scripts of test_fake_driver*.py run: a compiler takes a second for each source.
FEW = ["convert", "gpu_sums", "matmul", "program", "reduction"]
COMPILER = os.environ.get("CXX", "c++")
FLAGS = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden"]
KERNELS = [*FLAGS, "-ffp-contract=off", "-fno-strict-aliasing", "-w", *(f"-I{folder}" for folder in INCLUDES)]


def why_not() -> str:
    """Why it cannot be here; empty if it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "the fake driver is for Linux on x86-64"
    return "" if shutil.which(COMPILER) else f"there is no C++ compiler {COMPILER!r}"


def build(whole: bool = False) -> Path:
    """The folder with libcuda.so.1 and, in kernels/, all kernels or a few; built when a source has changed."""
    folder = Path(tempfile.gettempdir()) / f"nnrs-fake-driver-{_hash()}{'-whole' if whole else ''}"
    if folder.exists():
        return folder
    own = Path(tempfile.mkdtemp(prefix="nnrs-fake-driver-"))
    (own / "kernels").mkdir()
    _compile(["-c", *FLAGS, str(HERE / "fake.cpp"), "-o", str(own / "fake.o")])
    link(own, own)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        sources = sorted(CUDA.glob("*.cu")) if whole else [CUDA / f"{name}.cu" for name in FEW]
        list(pool.map(lambda source: _kernels(source, own / "kernels"), sources))
    try:
        own.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(own)
    return folder


def link(built: Path, folder: Path, without: Sequence[str] = ()) -> None:
    """Makes libcuda.so.1 in `folder`, without some functions: a driver that is too old, or not all there."""
    hidden = "".join(f"{name};" for name in without)
    script = folder / "visible"
    script.write_text(f"{{ local: {hidden} }};" if hidden else "{ global: *; };")
    arguments = ["-shared", str(built / "fake.o"), f"-Wl,--version-script={script}", "-Wl,-soname,libcuda.so.1", "-ldl"]
    _compile([*arguments, "-o", str(folder / "libcuda.so.1")])


@dataclass
class Done:
    """What became of a process under the fake driver."""

    status: int
    output: str
    errors: str
    violations: str
    counts: Counter[str]


def run(command: Sequence[str], env: dict[str, str], folder: Path, timeout: float = 300) -> Done:
    """Runs Python with these arguments, in the root of the repository; `folder` is for notes of the driver."""
    report, counts = folder / "violations", folder / "counts"
    env = env | {"FAKE_REPORT": str(report), "FAKE_COUNTS": str(counts)}
    done = subprocess.run(
        [sys.executable, *command], env=env, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
    )
    found: Counter[str] = Counter()
    for line in counts.read_text().splitlines() if counts.exists() else []:
        what, _, times = line.rpartition(" = ")
        found[what] += int(times)
    violations = report.read_text() if report.exists() else ""
    return Done(done.returncode, done.stdout, done.stderr, violations, found)


USE = """
import numpy as np
import nnrs as nn
import nnrs.functions as F
from nnrs.ext import cuda
from nnrs.ext_utils import get_extension_context

def attempt(f):
    try:
        print(f())
    except Exception as e:
        print(*(kind.__name__ for kind in type(e).__mro__), e)

def graph():
    with nn.context_scope(get_extension_context("cudnn")):
        return F.tanh(nn.Variable.from_numpy_array(np.zeros((300, 300), np.float32)))
"""


def use(folder: Path, script: str, driver: Path | None = None, **settings: object) -> str:
    """What a script after `USE` prints; nothing goes to stderr, and the driver has nothing to complain of."""
    built = build()
    done = run(["-c", USE + script], environment(driver or built, built, **settings), folder)
    assert done.status == 0, done.errors
    assert not done.errors and not done.violations, done
    return done.output


def environment(folder: Path, built: Path | None = None, **settings: object) -> dict[str, str]:
    """A process's environment in which `folder` has the driver and `built` the kernels; settings are those of fake.cpp
    without FAKE_, in lower case.
    """
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("NNRS_", "FAKE_", "CUDA_"))}
    # PTX is all that it reads: there is nothing for a compiler to do.
    fixed = {"LD_LIBRARY_PATH": str(folder), "FAKE_KERNELS": str((built or folder) / "kernels")}
    fixed["NNRS_CUDA_COMPILER"] = "0"
    return inherited | fixed | {f"FAKE_{name.upper()}": str(value) for name, value in settings.items()}


def _hash() -> str:
    own = [HERE / name for name in ("fake.cpp", "machine.hpp", "nccl.hpp")]
    sources = [*own, *(p for d in INCLUDES for p in sorted(d.glob("*.*")))]
    text = b"".join(p.read_bytes() for p in sources if p.suffix in (".cpp", ".hpp", ".cu", ".cuh"))
    return hashlib.sha256(text + repr((COMPILER, FLAGS, KERNELS, Path(__file__).read_text())).encode()).hexdigest()[:16]


def _kernels(source: Path, folder: Path) -> None:
    """A library with the kernels of a file, as kernels/src/emulate/mod.rs makes them."""
    plain = _compile(["-E", "-P", "-D__launch_bounds__(...)=", *KERNELS, "-x", "c++", str(source)])
    names = re.findall(r'extern "C" __global__[^(]*?(\w+)\s*\(', plain)
    kernels_of("".join([f'#include "{source}"\n', *(f"NNRS_ENTRY({name})\n" for name in names)]), source.stem, folder)


def kernels_of(source: str, name: str, folder: Path, *flags: str) -> Path:
    """A library with the kernels of a C++ source; `flags` are for the compiler, not for the linker."""
    whole, compiled, library = (folder / f"{name}.{suffix}" for suffix in ("cpp", "o", "so"))
    whole.write_text(f'#include "emulate.hpp"\n{source}')
    _compile([*KERNELS, *flags, "-c", str(whole), "-o", str(compiled)])
    _compile(["-shared", str(compiled), "-o", str(library)])
    return library


def _compile(arguments: list[str]) -> str:
    done = subprocess.run([COMPILER, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{COMPILER} {arguments}:\n{done.stderr}"
    return done.stdout
