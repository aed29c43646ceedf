"""Every element-wise function's CUDA source compiles to PTX. NVRTC does that without a GPU
(tools/cuda-requirements.txt). (What the kernels compute is checked in `rust/cuda_source.rs`.)
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from nnrs import _core

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from nvrtc import Nvrtc, find_nvrtc

NAMES = [f["name"] for f in _core.registry() if f["elementwise"]]
DTYPES = ["float16", "bfloat16", "float32", "float64"]


@pytest.fixture(scope="module")
def nvrtc() -> Nvrtc:
    path = find_nvrtc()
    if path is None:
        pytest.skip("NVRTC is not installed: pip install --require-hashes -r tools/cuda-requirements.txt")
    return Nvrtc(path)


def sources(dtype: str, names: list[str] = NAMES) -> dict[str, str]:
    found = {name: _core.cuda_source(name, dtype) for name in names}
    return {name: text for name, text in found.items() if text is not None}


def kernels(source: str) -> set[str]:
    return set(re.findall(r'^extern "C" __global__ void (\w+)\(', source, re.MULTILINE))


# Each function in one type, and all of them in all types in the long test.
SPREAD = [pytest.param(dtype, NAMES[k :: len(DTYPES)], id=f"some {dtype}") for k, dtype in enumerate(DTYPES)]
ALL = [pytest.param(dtype, NAMES, id=f"all {dtype}", marks=pytest.mark.long) for dtype in DTYPES]


@pytest.mark.parametrize(("dtype", "names"), SPREAD + ALL)
def test_all_compile_to_ptx(nvrtc: Nvrtc, dtype: str, names: list[str]) -> None:
    """Functions of a type in one program: the prelude is guarded against being there twice."""
    text = "\n".join(sources(dtype, names).values())
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
