"""The CUDA backend, as NNabla's `nnabla_ext.cuda` presents itself. One GPU is one device, by its number as text."""

from __future__ import annotations

from typing import Any

from ... import _core
from ..._contexts import add_available_context
from ..._core import Context, Variable
from ..._errors import ArgumentError, check_flag, message
from ..._modes import whole_number
from ...memory import Stats
from ._streams import StreamEventHandler

__all__ = [
    "StreamEventHandler",
    "array_classes",
    "check_gpu_compatibility",
    "clear_memory_cache",
    "compiled_kernels",
    "context",
    "device_name",
    "device_synchronize",
    "functions_on_host",
    "get_device_count",
    "get_devices",
    "graphs",
    "host_waits",
    "libraries",
    "memory_stats",
    "reset_memory_peak",
    "set_autotune",
    "set_compiler",
    "set_graphs",
    "set_libraries",
    "set_memory_limit",
    "set_tf32",
    "synchronize",
    "why_no_library",
    "why_not_compiled",
]

_TYPES = ("float", "half", "bfloat16", "double")


def context(device_id: str | int = "0", type_config: str = "float", **kw: Any) -> Context:
    """The context that runs functions on a GPU.

    Args:
        device_id: Number of the GPU.
        type_config: Element type of results: 'float', 'half', 'bfloat16' or 'double'.
        **kw: Ignored.

    Raises:
        RuntimeError: If there is no GPU that can be used: what was looked for, and where.
        ValueError: For another `type_config` or `device_id`.
    """
    return made("cuda", device_id, type_config)


def made(first: str, device_id: str | int, type_config: str) -> Context:
    """The context of NNabla's backend `first`, which must be there."""
    if type_config not in _TYPES:
        expected = "one of " + ", ".join(repr(known) for known in _TYPES)
        raise ArgumentError(message("get_extension_context", "type_config", expected, repr(type_config)))
    _core.cuda_open(_number("get_extension_context", device_id, "device_id"))
    names = ["cudnn", "cuda"] if first == "cudnn" else ["cuda"]
    backends = [f"{name}:{type_config}" for name in names]
    if type_config != "float":
        backends += [f"{name}:float" for name in names]
    context = Context([*backends, "cpu:float"], "CudaCachedArray", str(device_id))
    for name in reversed(names):
        add_available_context(name)
    return context


def _number(function: str, device: str | int, argument: str = "device") -> int:
    """The number of a GPU that is there."""
    devices = get_devices()
    if str(device) not in devices:
        expected = "one of " + ", ".join(repr(known) for known in devices)
        raise ArgumentError(message(function, argument, expected, repr(device)))
    return int(device)


def check_gpu_compatibility() -> None:
    """See whether nnrs can use all GPUs.

    Raises:
        RuntimeError: If there is none, or one cannot be used: what was looked for, and where, or what does not fit.
    """
    for device in range(get_device_count()):
        _core.cuda_open(device)


def array_classes() -> list[str]:
    """Names of the kinds of arrays."""
    return ["CudaCachedArray", "CudaArray", "CudaDlpackArray"]


def get_device_count() -> int:
    """Number of GPUs."""
    return _core.cuda_device_count()


def get_devices() -> list[str]:
    """Numbers of the GPUs as text."""
    return [str(i) for i in range(get_device_count())]


def device_name(device: str | int = "0") -> str:
    """What its maker calls a GPU."""
    return _core.cuda_device(_number("device_name", device))[0]


def memory_stats(device: str | int = "0") -> Stats:
    """Bytes that arrays hold on a GPU; see `nnrs.memory.stats`."""
    return Stats(**_core.cuda_memory_stats(_number("memory_stats", device)))  # type: ignore[arg-type]


def reset_memory_peak(device: str | int = "0") -> None:
    """Start a new measurement of a GPU's peak."""
    _core.cuda_memory_reset_peak(_number("reset_memory_peak", device))


def set_memory_limit(limit: int | None, device: str | int = "0") -> None:
    """Let arrays hold `limit` bytes together on a GPU at most (None: no limit); beyond it a MemoryError is raised."""
    if limit is not None:
        limit = min(whole_number("set_memory_limit", "limit", limit, 0), 2**63 - 1)
    _core.cuda_memory_set_limit(_number("set_memory_limit", device), limit)


def clear_memory_cache() -> None:
    """Give freed memory that is kept for reuse back to the GPUs."""
    for device in range(get_device_count()):
        _core.cuda_clear_memory_cache(device)


def functions_on_host() -> list[str]:
    """The functions that ran on the host because they have no CUDA kernel."""
    return _core.cuda_functions_on_host()


def graphs(y: Variable) -> list[str]:
    """What became of the runs of the graph behind `y` as CUDA graphs: a line for each plan.

    Runs whose functions all have CUDA kernels (no hooks, no Python) are captured when their arrays have settled, and
    then replayed; random numbers are drawn anew for each. The lines say how often, or why not.
    """
    return _core.cuda_graphs(y)


def set_graphs(on: bool) -> bool:
    """Turn CUDA graphs on or off (`NNRS_CUDA_GRAPHS=0`); gives the old setting. Results are the same."""
    return _core.cuda_set_graphs(check_flag("set_graphs", "on", on))


def libraries(device: str | int = "0") -> dict[str, str | None]:
    """NVIDIA's libraries by name: the file that is used, or None where there is none.

    They are looked for among what is loaded, in the folders of `NNRS_CUDA_LIBRARY_PATH`, in the `nvidia-*` wheels
    beside us, and where the system looks. Without them kernels of nnrs do the same, slower; see `why_no_library`.
    """
    return {name: text if found else None for name, found, text in _core.cuda_libraries(_number("libraries", device))}


def why_no_library(device: str | int = "0") -> dict[str, str]:
    """For each of NVIDIA's libraries that is not used: what was looked for, where, and the extra that brings it."""
    return {name: text for name, found, text in _core.cuda_libraries(_number("why_no_library", device)) if not found}


def set_libraries(on: bool) -> bool:
    """Say whether NVIDIA's libraries are used where they are there; gives the old setting. Rounding differs."""
    return _core.cuda_set_libraries(check_flag("set_libraries", "on", on))


def set_compiler(on: bool) -> bool:
    """Say whether element-wise work gets kernels of its own, compiled where NVRTC is there; gives the old setting.

    `NNRS_CUDA_COMPILER=0` turns it off. Without them a kernel that reads formulas step by step does the same, slower.
    """
    return _core.cuda_set_compiler(check_flag("set_compiler", "on", on))


def compiled_kernels(device: str | int = "0") -> int:
    """How many kernels were compiled, or taken from the disk, for element-wise work."""
    return _core.cuda_generated(_number("compiled_kernels", device))[0]


def why_not_compiled(device: str | int = "0") -> list[str]:
    """What the compiler said where it failed; such work is done step by step instead."""
    return _core.cuda_generated(_number("why_not_compiled", device))[1]


def set_tf32(on: bool) -> bool:
    """Let float products and convolutions round to TF32's 10-bit mantissa (`NNRS_TF32=1`); gives the old setting."""
    return _core.cuda_set_tf32(check_flag("set_tf32", "on", on))


def set_autotune(on: bool) -> bool:
    """Let cuDNN measure its ways of doing each convolution when it is first called (`NNRS_CUDA_AUTOTUNE=1`).

    Steps become faster, the first ones slower. All ways are deterministic, but which one wins, and with it the last
    digits, may differ between processes. Off, cuDNN estimates, alike in each process. Gives the old setting.
    """
    return _core.cuda_set_autotune(check_flag("set_autotune", "on", on))


def host_waits(device: str | int = "0") -> int:
    """How often the host has waited for a GPU in this process: to read results, or for memory.

    A training step that does not read its loss adds none. (The step that captures a CUDA graph waits once.)
    """
    return _core.cuda_host_waits(_number("host_waits", device))


def synchronize(device_id: str | int = "0", **kw: Any) -> None:
    """Wait until a GPU has done all its work."""
    _core.cuda_synchronize(_number("synchronize", device_id, "device_id"))


def device_synchronize(device: str | int = "0") -> None:
    """Wait until a GPU has done all its work."""
    _core.cuda_synchronize(_number("device_synchronize", device))
