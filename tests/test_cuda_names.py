"""What NNabla's `nnabla_ext.cuda` has besides contexts: streams, events, marks for profilers. No GPU is needed.

The driver and NVTX are stand-ins here, which note what they are called with.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

import nnrs as nn
from nnrs import _core
from nnrs.ext import cuda, cudnn
from nnrs.ext.cuda import _driver, init, lms, nvtx
from nnrs.ext_utils import import_extension_module

HAS_GPU = False
with contextlib.suppress(RuntimeError):
    HAS_GPU = cuda.get_device_count() > 0
without_gpu = pytest.mark.skipif(HAS_GPU, reason="there is a GPU")


class FakeDriver:
    """NVIDIA's driver as far as it is called. `fails` names a function that gives an error."""

    def __init__(self, fails: str = "") -> None:
        self.calls: list[str] = []
        self.fails = fails
        self.made = 0

    def __getattr__(self, name: str) -> Any:
        def called(*args: Any) -> int:
            self.calls.append(name.removesuffix("_v2"))
            if name == self.fails:
                return 700
            if name == "cuStreamCreate":
                self.made += 1
                args[0]._obj.value = 0x1000 + self.made
            if name == "cuMemGetInfo_v2":
                args[0]._obj.value, args[1]._obj.value = 3, 8
            return 0

        return called

    def work(self) -> list[str]:
        """What was called, but for contexts."""
        found = [name for name in self.calls if not name.startswith(("cuCtx", "cuDevice"))]
        self.calls.clear()
        return found


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()
    monkeypatch.setattr(_driver, "library", lambda: made)
    monkeypatch.setattr(_core, "cuda_open", lambda device: None)
    monkeypatch.setattr(_core, "cuda_synchronize", lambda device: made.calls.append(f"wait {device}"))
    return made


@without_gpu
@pytest.mark.parametrize(
    "call",
    [
        lambda: cuda.StreamEventHandler(),
        lambda: cuda.StreamEventHandler(0),
        lambda: cudnn.StreamEventHandler(),
        lambda: init.Event(0),
        lambda: init.get_device_memory_size(),
        lambda: cuda.check_gpu_compatibility(),
        lambda: import_extension_module("cuda.utils.inspection").CudaEventTimerCallback("cuda", "0"),
    ],
)
def test_without_a_gpu_it_says_so(call: Any) -> None:
    with pytest.raises(RuntimeError, match="CUDA is not available"):
        call()


def test_a_stream(driver: FakeDriver) -> None:
    handler = cuda.StreamEventHandler()
    assert (handler.device_id, handler.value, handler.is_stream_destroy) == (0, 0x1001, False)
    assert driver.work() == ["cuStreamCreate"]
    handler.add_default_stream_event()
    handler.stream_wait_event()
    handler.event_synchronize()
    handler.default_stream_synchronize()
    assert driver.work() == ["wait 0"] * 3
    handler.stream_synchronize()
    assert driver.work() == ["cuStreamSynchronize"]
    handler.stream_create(1)
    assert (handler.device_id, handler.value) == (1, 0x1002)
    assert driver.work() == ["cuStreamDestroy", "cuStreamCreate"]


def test_a_stream_that_is_gone(driver: FakeDriver) -> None:
    handler = cuda.StreamEventHandler(1)
    handler.stream_destroy()
    driver.work()
    handler.stream_destroy()
    handler.stream_synchronize()
    handler.stream_wait_event()
    assert driver.work() == [] and handler.is_stream_destroy


GIVES_BACK = ["cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"]


@pytest.mark.parametrize("name", ["cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2", "cuStreamCreate"])
def test_errors_of_the_driver(name: str, driver: FakeDriver) -> None:
    driver.fails = name
    with pytest.raises(RuntimeError, match=rf"^{name.removesuffix('_v2')}: NVIDIA's driver gave the error 700$"):
        cuda.StreamEventHandler()
    given_back = [n for n in driver.calls if n in GIVES_BACK]
    assert given_back == {"cuCtxPushCurrent_v2": GIVES_BACK[1:], "cuStreamCreate": GIVES_BACK}.get(name, [])


def test_events(driver: FakeDriver) -> None:
    start, end = init.Event("0"), init.Event(0)
    with pytest.raises(TypeError, match="'start_event': expected recorded events"):
        end.elapsed(start)
    start.record()
    end.record()
    end.synchronize()
    assert 0 <= end.elapsed(start) < 60_000 and driver.work() == ["wait 0", "wait 0"]
    with pytest.raises(TypeError, match="got int 3"):
        end.elapsed(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'device_id': expected int"):
        init.Event("first")


def test_memory(driver: FakeDriver) -> None:
    assert init.get_device_memory_size() == [3, 8]


@without_gpu
def test_without_a_driver() -> None:
    _driver.library.cache_clear()
    with pytest.raises(RuntimeError, match="libcuda.so.1 was not found|nvcuda.dll was not found"):
        _driver.library()


def test_a_timer_of_functions(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "get_devices", lambda: ["0"])
    timer = import_extension_module("cuda.utils.inspection").CudaEventTimerCallback("cuda", "0")
    y = nn.functions.exp(nn.Variable((2,)))
    y.forward(function_pre_hook=timer.pre_hook, function_post_hook=timer.post_hook)
    timer.calc_elapsed_time()
    (found,) = timer.average().values()
    assert found["num"] == 1 and found["scale"] == "ms" and driver.work() == ["wait 0"]


def test_swaps() -> None:
    assert lms.SwapInOutScheduler is nn.lms.SwapInOutScheduler


class FakeLibrary:
    """NVTX, which notes texts and whether there was a colour."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def nvtxMarkA(self, text: bytes) -> None:
        self.said.append(text)

    nvtxRangePushA = nvtxMarkA

    def nvtxRangePushEx(self, about: Any) -> None:
        a = about._obj
        assert a.size == ctypes.sizeof(a) == 48 and a.version == 2
        self.said.append((a.message, hex(a.color)[:4]))

    def nvtxRangePop(self) -> None:
        self.said.append("pop")


@pytest.fixture
def marks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    library = FakeLibrary()
    monkeypatch.setattr(nvtx, "_library", lambda: library)
    yield library.said


def test_marks_and_ranges(marks: list[Any]) -> None:
    nvtx.mark_A("batch")
    nvtx.range_push("epoch")
    nvtx.range_push("plain", coloring=False)
    nvtx.range_pop()
    nvtx.range_pop()
    assert marks == [b"batch", (b"epoch", "0xff"), b"plain", "pop", "pop"]


def test_marks_are_texts(marks: list[Any]) -> None:
    for call in (nvtx.mark_A, nvtx.range_push):
        with pytest.raises(TypeError, match="'msg': expected a str, got int 3"):
            call(3)  # type: ignore[arg-type]
    assert not marks


def test_marks_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvtx, "_library", lambda: None)
    nvtx.range_push("epoch")
    nvtx.mark_A("batch")
    nvtx.range_pop()


def test_modules_of_backends() -> None:
    assert import_extension_module("cuda.nvtx") is nvtx
    with pytest.raises(ModuleNotFoundError, match="expected one of 'cpu', 'cuda', 'cudnn', got 'cuda.nothing'"):
        import_extension_module("cuda.nothing")
    with pytest.raises(ModuleNotFoundError, match="got 'rocm.nvtx'"):
        import_extension_module("rocm.nvtx")
