"""`nnrs doctor`: what this machine and this installation have, for a bug report or for a look at why it is slow."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any

from ..._core import Error
from ._arguments import add_parser

_PACKAGES = """
h5py:hdf5:h5py matplotlib:viz:matplotlib graphviz:viz:graphviz tensorboardX:tensorboard:tensorboardX
mlflow:mlflow:mlflow pillow:image:PIL opencv-python::cv2 pypng::png pydub:audio:pydub boto3:s3:boto3 tqdm:progress:tqdm
protobuf:protobuf:google.protobuf
""".split()
"""Optional packages: name, extra of nnrs that installs it, module."""

_INSTRUCTIONS = {
    "AVX-512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "AVX2": {"avx2", "fma", "f16c"},
}
"""What a CPU must have for each set of instructions, the best first, by the names of Linux."""


def doctor_command(args: Any) -> None:
    """Print what there is."""
    for title, lines in report():
        print(title)
        for line in lines:
            print(f"  {line}")


def report() -> Iterator[tuple[str, list[str]]]:
    """The parts of the report: a title and its lines.

    >>> [title for title, lines in report()]
    ['nnrs', 'CPU', 'GPU', 'optional packages', 'settings']
    """
    yield "nnrs", _versions()
    yield "CPU", _cpu()
    yield "GPU", _gpu()
    yield "optional packages", [_package(*line.split(":")) for line in _PACKAGES]
    yield "settings", [*_files(), *_variables()]


def _versions() -> list[str]:
    import numpy

    from ... import __file__ as where
    from ..._version import __version__

    python = f"Python {platform.python_version()}, {sys.executable}, {platform.platform()}"
    return [f"nnrs {__version__}, {os.path.dirname(where)}", python, f"NumPy {numpy.__version__}"]


def _cpu() -> list[str]:
    from ..._core import get_num_threads, measure_limits

    flops, moved = measure_limits()
    said = os.environ.get("NNRS_NUM_THREADS") or os.environ.get("OMP_NUM_THREADS")
    why = " by the environment" if said else ""
    return [
        _cpu_name(),
        f"threads: {get_num_threads()}{why}, of {os.cpu_count()} CPUs ({_allowed()} for this process)",
        f"SIMD: {simd()}",
        f"at most: {flops / 1e9:.0f} GFLOP/s in single precision, copies of {moved / 1e9:.1f} GB/s",
    ]


def _cpu_name() -> str:
    return _cpu_info("model name") or platform.processor() or platform.machine()


def _allowed() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _cpu_info(key: str) -> str:
    """A line of Linux's list of CPUs; "" where there is none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found = (line.partition(":")[2] for line in text.splitlines() if line.split(":")[0].strip() == key)
    return next(found, "").strip()


def simd() -> str:
    """The instructions that kernels use here: what the CPU has, or less where `NNRS_SIMD` asks for less."""
    flags = set(_cpu_info("flags").split())
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "portable (kernels of their own only on x86-64)"
    if not flags:
        return "what the CPU has (this system does not tell which)"
    most = {"avx2": 1, "portable": 2}.get(os.environ.get("NNRS_SIMD", ""), 0)
    has = [needs <= flags for needs in _INSTRUCTIONS.values()]
    has[0] = has[0] and has[1]
    chosen = next((name for i, name in enumerate(_INSTRUCTIONS) if has[i] and i >= most), "portable")
    return chosen + (f" (NNRS_SIMD={os.environ['NNRS_SIMD']})" if most else "")


def _gpu() -> list[str]:
    from ...ext import cuda

    try:
        devices = cuda.get_devices()
    except Error as error:
        return [*_driver(), str(error).splitlines()[0], *_wheels()]
    return [*_driver(), *(line for device in devices for line in _device(device))]


def _device(number: str) -> list[str]:
    from ..._core import cuda_device
    from ...ext import cuda

    name, (major, minor), *_ = cuda_device(int(number))
    lines = [f"{number}: {name}, compute capability {major}.{minor}"]
    try:
        lines += [f"   {library}: {path}" for library, path in cuda.libraries(number).items() if path]
        lines += [f"   {library}: not there: {why}" for library, why in cuda.why_no_library(number).items()]
    except Error as error:
        lines.append(f"   {error}")
    return lines


def _driver() -> list[str]:
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [f"driver: {text.splitlines()[0].partition(':')[2].strip()}"] if text else []


def _wheels() -> list[str]:
    """NVIDIA's libraries among Python's packages, which wait for a GPU."""
    names = {str(d.metadata["Name"]): d.version for d in distributions() if d.metadata["Name"]}
    return [f"{name} {names[name]}" for name in sorted(names) if name.startswith("nvidia-")]


def _is_there(module: str) -> bool:
    """Whether a module can be imported.

    >>> _is_there("sys"), _is_there("no_such_package.module")
    (True, False)
    """
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def _package(name: str, extra: str, module: str) -> str:
    if not _is_there(module):
        return f"{name}: not installed (pip install {f'nnrs[{extra}]' if extra else name})"
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"{name}: there, of an unknown version"


def _files() -> list[str]:
    from ..._settings import settings_files

    return [f"{file}: {'read' if file.exists() else 'not there'}" for file in settings_files()]


def _variables() -> list[str]:
    known = (name for name in sorted(os.environ) if name.startswith(("NNRS_", "NNABLA_", "OMP_NUM", "CUDA_VISIBLE")))
    return [f"{name}={os.environ[name]}" for name in known]


def add_doctor_command(subparsers: Any) -> None:
    """Add the command `doctor`."""
    parser = add_parser(subparsers, "doctor", "show what nnrs finds here: threads, SIMD, GPU, packages, settings")
    parser.set_defaults(func=doctor_command)
