"""Every element-wise function's CUDA source compiles to PTX. NVRTC does that without a GPU: `pip install
nvidia-cuda-nvrtc-cu12==12.0.140`. (What the kernels compute is checked in `rust/cuda_source.rs`.)
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from nnrs import _core

NAMES = [f["name"] for f in _core.registry() if f["elementwise"]]
DTYPES = ["float16", "bfloat16", "float32", "float64"]


class Nvrtc:
    """The few calls of NVRTC that compiling takes."""

    def __init__(self, path: str) -> None:
        self.lib = ctypes.CDLL(path)
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p

    def check(self, code: int) -> None:
        if code:
            raise RuntimeError(self.lib.nvrtcGetErrorString(code).decode())

    def version(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.check(self.lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return major.value, minor.value

    def text(self, program: ctypes.c_void_p, what: str) -> str:
        size = ctypes.c_size_t()
        self.check(getattr(self.lib, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self.check(getattr(self.lib, f"nvrtcGet{what}")(program, buffer))
        return buffer.value.decode()

    def ptx(self, source: str, *options: str) -> str:
        """`source` compiled; a failure shows the compiler's words."""
        program = ctypes.c_void_p()
        self.check(self.lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"nnrs.cu", 0, None, None))
        try:
            given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
            if self.lib.nvrtcCompileProgram(program, len(options), given):
                raise AssertionError(self.text(program, "ProgramLog"))
            return self.text(program, "PTX")
        finally:
            self.lib.nvrtcDestroyProgram(ctypes.byref(program))


def find_nvrtc() -> str | None:
    """NVRTC 12 in the NVIDIA wheel beside this Python, or the system's."""
    spec = find_spec("nvidia")
    for folder in (spec and spec.submodule_search_locations) or []:
        for file in sorted(Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.12")):
            return str(file)
    for name in ("libnvrtc.so.12", ctypes.util.find_library("nvrtc")):
        try:
            return name and ctypes.CDLL(name) and name
        except OSError:
            continue
    return None


@pytest.fixture(scope="module")
def nvrtc() -> Nvrtc:
    path = find_nvrtc()
    if path is None:
        pytest.skip("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12==12.0.140")
    return Nvrtc(path)


def sources(dtype: str) -> dict[str, str]:
    found = {name: _core.cuda_source(name, dtype) for name in NAMES}
    return {name: text for name, text in found.items() if text is not None}


def kernels(source: str) -> set[str]:
    return set(re.findall(r'^extern "C" __global__ void (\w+)\(', source, re.MULTILINE))


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_compile_to_ptx(nvrtc: Nvrtc, dtype: str) -> None:
    """All functions of a type in one program: the prelude is guarded against being there twice."""
    text = "\n".join(sources(dtype).values())
    ptx = nvrtc.ptx(text, "--gpu-architecture=compute_70", "--fmad=false")
    assert set(re.findall(r"\.entry (\w+)\(", ptx)) == kernels(text)
    assert ".target sm_70" in ptx
    if nvrtc.version() == (12, 0):
        assert ".version 8.0" in ptx, "drivers from 525 on must read it"


def test_one_function_alone(nvrtc: Nvrtc) -> None:
    ptx = nvrtc.ptx(_core.cuda_source("leaky_relu", "float32"), "--gpu-architecture=compute_70", "--fmad=false")
    assert re.findall(r"\.entry (\w+)\(", ptx) == ["leaky_relu_forward", "leaky_relu_backward"]
    assert ".f64" not in ptx, "float kernels must not compute in double"


def test_half_kernels_convert_in_hardware(nvrtc: Nvrtc) -> None:
    ptx = nvrtc.ptx(_core.cuda_source("exp", "float16"), "--gpu-architecture=compute_70", "--fmad=false")
    assert "cvt.f32.f16" in ptx and "cvt.rn.f16.f32" in ptx


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_formula_has_a_source(dtype: str) -> None:
    """Only functions with an argument that must be given have none."""
    needy = {f["name"] for f in _core.registry() if any(default is None for *_, default, _ in f["args"])}
    found = sources(dtype)
    assert set(NAMES) - set(found) <= needy
    assert all(f"{name}_forward" in kernels(text) for name, text in found.items())


def test_functions_without_gradient_have_no_backward_kernel() -> None:
    assert kernels(_core.cuda_source("greater", "float32")) == {"greater_forward"}


def test_others_have_no_source() -> None:
    assert _core.cuda_source("convolution", "float32") is None


def test_wrong_names_and_types_are_refused() -> None:
    with pytest.raises(ValueError, match="no_such_function"):
        _core.cuda_source("no_such_function", "float32")
    with pytest.raises(TypeError, match="int32"):
        _core.cuda_source("exp", "int32")
