"""NVRTC, NVIDIA's compiler from CUDA C to PTX, from its PyPI wheel: it needs no GPU, driver or toolkit."""

from __future__ import annotations

import ctypes
import ctypes.util
from importlib.util import find_spec
from pathlib import Path

# Drivers from 525 on read the PTX of this version. A newer one would shut out older drivers.
WHEEL = "nvidia-cuda-nvrtc-cu12==12.0.140"
VERSION = (12, 0)


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

    def ptx(self, source: str, *options: str, headers: dict[str, str] | None = None, name: str = "nnrs.cu") -> str:
        """`source` compiled; a failure shows the compiler's words."""
        program = ctypes.c_void_p()
        count = len(headers or {})
        texts = (ctypes.c_char_p * count)(*[t.encode() for t in (headers or {}).values()])
        names = (ctypes.c_char_p * count)(*[n.encode() for n in headers or {}])
        create = self.lib.nvrtcCreateProgram
        self.check(create(ctypes.byref(program), source.encode(), name.encode(), count, texts, names))
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
