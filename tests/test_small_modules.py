"""Small modules of NNabla's: contexts and hooks by other names, callbacks, NVML, signatures, swapping."""

from __future__ import annotations

import ctypes
import inspect
import subprocess
import sys
import types
import warnings

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from nnrs.lms import SwapInOutScheduler
from nnrs.utils import callback, communicator_util, nvml
from nnrs.utils.signature_utils import SignatureEx

# --- names that are elsewhere, too ------------------------------------------------------------------------------------


def test_old_names(caplog):
    from nnrs._computation_graph import forward_all
    from nnrs._init import clear_memory_cache, get_devices, prefer_cached_array
    from nnrs.callback import set_solver_pre_hook
    from nnrs.contrib.context import extension_context

    assert forward_all is nn.forward_all and nn.callback.set_solver_pre_hook is set_solver_pre_hook
    assert prefer_cached_array is nn.prefer_cached_array and get_devices() == ["0"]
    clear_memory_cache()
    assert extension_context(type_config="half") == nn.ext_utils.get_extension_context("cpu", type_config="half")
    assert "deprecated" in caplog.text


# --- signatures -------------------------------------------------------------------------------------------------------


def f(a, /, b, c=1, *d, e, g=2, **h) -> int: ...
def nothing(): ...
def one(a: int = 3) -> str: ...


# Arguments, what is returned, arguments of a call: as in NNabla.
TEXTS = [
    (f, "a, /, b, c=1, *d, e, g=2, **h", " -> 'int'", "a, b, c, *d, e=e, g=g, **h"),
    (nothing, "", "", ""),
    (one, "a: 'int' = 3", " -> 'str'", "a"),
    (lambda *a: 1, "*a", "", "*a"),
    (lambda a=(1, (2,)), **k: 1, "a=(1, (2,)), **k", "", "a, **k"),
]


@pytest.mark.parametrize("function, arguments, returned, call", TEXTS)
def test_texts_of_signatures(function, arguments, returned, call):
    s = SignatureEx.from_callable(function)
    assert s.format_argument_signature() == arguments
    assert s.format_return_annotation() == returned and s.has_return_annotation is bool(returned)
    assert s.format_caller_argument_signature() == call


def test_signatures_change():
    P = inspect.Parameter
    s = SignatureEx.from_callable(f)
    assert str(s.drop_arg("b")) == "(a, /, c=1, *d, e, g=2, **h) -> 'int'"
    assert str(s.drop_arg("q")) == str(s)
    assert str(s.add_arg("z", P.KEYWORD_ONLY)).startswith("(a, /, b, c=1, *d, e, g=2, z, **h)")
    assert str(s.add_arg("z", P.POSITIONAL_ONLY, annotation=int)).startswith("(a, z: int, /, b, c=1, ")
    assert str(SignatureEx.from_callable(nothing).add_arg("z", default=None)) == "(z=None)"
    with pytest.raises(KeyError, match="'q' not found in"):
        s.drop_arg("q", raise_if_not_found=True)
    with pytest.raises(ValueError, match="non-default argument follows default argument"):
        s.add_arg("z")


# --- callbacks --------------------------------------------------------------------------------------------------------


def test_without_modules_callbacks_do_nothing():
    assert callback.get_best_from_status(None) == (None, None) and callback.get_timelimit(None) == -1
    assert callback.check_training_time(None, None, None, 1, 2) is True
    names = ["alternative_cli", "get_load_image_func", "add_train_command_arg", "update_progress"]
    assert [getattr(callback, name)(None) for name in names] == [None] * 4
    names = ["get_callback_version", "update_time_train", "save_train_snapshot", "update_status", "update_forward_time"]
    assert [getattr(callback, name)() for name in names] == [None] * 5
    assert callback.result_base("a", "b", "c") is callback.process_evaluation_result("a", "b") is None


def test_the_first_module_with_a_function_is_called(tmp_path):
    (tmp_path / "first.py").write_text("def get_timelimit(args): return args + 1")
    (tmp_path / "second.py").write_text(
        "def get_timelimit(args): return 0\ndef update_status(*a): print(a)\ndef get_callback_version(): return 'v'"
    )
    (tmp_path / "nnabla.conf").write_text("[CALLBACK]\nutil_callback_module = [first, not_there, second]\n")
    code = (
        "import warnings\nwith warnings.catch_warnings(record=True) as w:\n"
        " from nnrs.utils import callback as c\n"
        "assert len(w) == 1 and \"'not_there' is ignored\" in str(w[0].message)\n"
        "assert (c.get_timelimit(3), c.get_callback_version(), c.alternative_cli(1)) == (4, 'v', None)\n"
        "c.update_status('training', start=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("('training', True, None)\n", "")


# --- communicators ----------------------------------------------------------------------------------------------------


def test_a_program_alone_has_no_communicator(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert communicator_util.create_communicator() is None
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    assert communicator_util.create_communicator() is None
    assert communicator_util.current_communicator() is None and communicator_util.single_or_rankzero()


class Fake:
    size, rank, local_rank = 2, 1, 1

    def __init__(self, context):
        self.context = context

    def init(self):
        assert self.context.backend == ["cpu:half", "cpu:float"]


def test_a_program_with_others_has_one(monkeypatch, caplog):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setattr(communicator_util, "_current", None)
    fake = types.SimpleNamespace(MultiProcessCommunicator=Fake)
    monkeypatch.setattr(communicator_util, "communicators", fake)
    made = communicator_util.create_communicator(extension_module="cpu", type_config="half")
    assert isinstance(made, Fake) and communicator_util.current_communicator() is made
    assert not communicator_util.single_or_rankzero()
    Fake.init = lambda self: 1 / 0
    with pytest.raises(ZeroDivisionError):
        communicator_util.create_communicator(extension_module="cpu")
    assert communicator_util.create_communicator(ignore_error=True, extension_module="cpu") is None
    assert "goes on alone" in caplog.text and communicator_util.single_or_rankzero()


# --- NVML -------------------------------------------------------------------------------------------------------------


class Library:
    """Answers as NVML with two GPUs."""

    def nvmlInitWithFlags(self, flags):
        return nvml.NVML_SUCCESS

    def nvmlDeviceGetCount_v2(self, count):
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, device):
        return 0 if index.value < 2 else nvml.NVML_ERROR_INVALID_ARGUMENT

    def nvmlDeviceGetName(self, handle, name, size):
        name.value = b"A GPU"
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory):
        memory._obj.total, memory._obj.free, memory._obj.used = 2**36, 1, 2**36 - 1
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle, rates):
        return nvml.NVML_ERROR_NOT_SUPPORTED

    def nvmlShutdown(self):
        return 12345


def test_nvml(monkeypatch):
    monkeypatch.setattr(nvml, "nvml_lib", Library())
    assert nvml.nvmlInit() is True and nvml.nvmlDeviceGetCount() == 2
    handle = nvml.nvmlDeviceGetHandleByIndex(1)
    assert nvml.nvmlDeviceGetName(handle) == b"A GPU"
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    assert (memory.total, memory.free) == (2**36, 1)
    with pytest.raises(nvml.NVMLError, match=r"NVML: not supported \(3\)") as e:
        nvml.nvmlDeviceGetUtilizationRates(handle)
    assert e.value.value == nvml.NVML_ERROR_NOT_SUPPORTED and isinstance(e.value, nn.Error)
    with pytest.raises(nvml.NVMLError, match="invalid argument"):
        nvml.nvmlDeviceGetHandleByIndex(2)
    with pytest.raises(nvml.NVMLError, match=r"an error that nnrs does not know \(12345\)"):
        nvml.nvmlShutdown()
    with pytest.raises(nvml.NVMLError, match="the driver is too old"):
        nvml.nvmlErrorString(3)
    with pytest.raises(TypeError, match="argument 'index'"):
        nvml.nvmlDeviceGetHandleByIndex("a")


def test_nvml_without_a_library(monkeypatch):
    monkeypatch.setattr(nvml, "nvml_lib", None)
    with pytest.raises(nvml.NVMLError, match=r"call nvmlInit\(\) first"):
        nvml.nvmlDeviceGetCount()

    def none(path):
        raise OSError(path)

    monkeypatch.setattr(ctypes, "CDLL", none)
    with pytest.raises(nvml.NVMLError, match="it comes with NVIDIA's driver") as e:
        nvml.nvmlInit()
    assert e.value.value == nvml.NVML_ERROR_LIBRARY_NOT_FOUND


# --- swapping ---------------------------------------------------------------------------------------------------------


def train(scheduler, steps=3):
    x = nn.Variable.from_numpy_array(np.ones(2, np.float32), need_grad=True)
    y = F.sum(F.exp(x))
    solver = S.Sgd(0.1)
    solver.set_parameters({"x": x})
    for _ in range(steps):
        with scheduler as same:
            assert same is scheduler
            hooks = {
                "function_pre_hook": scheduler.function_pre_hook,
                "function_post_hook": scheduler.function_post_hook,
            }
            y.forward(clear_no_need_grad=True, **hooks)
            solver.zero_grad()
            y.backward(clear_buffer=True)
            solver.update(update_pre_hook=scheduler.update_pre_hook, update_post_hook=scheduler.update_post_hook)
    return x.d.copy()


@pytest.mark.host
def test_a_swap_scheduler_on_the_cpu():
    cpu = nn.ext_utils.get_extension_context("cpu", device_id="0")
    expected = np.ones(2)
    for _ in range(3):
        expected -= 0.1 * np.exp(expected)
    np.testing.assert_allclose(train(SwapInOutScheduler(cpu, cpu, 1000)), expected, rtol=1e-6)


def test_a_swap_scheduler_says_that_it_does_not_swap():
    cpu = nn.Context(["cpu:float"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a machine without a GPU
        gpu = nn.Context(["cudnn:float", "cuda:float", "cpu:float"], "CudaCachedArray", "0")
    with pytest.warns(RuntimeWarning, match="SwapInOutScheduler swaps nothing between GPU and host"):
        SwapInOutScheduler(cpu, gpu, 1000, 1500, True, False)
    with pytest.raises(TypeError, match="argument 'd_ctx': expected a Context"):
        SwapInOutScheduler(cpu, "gpu", 1000)
    with pytest.raises(ValueError, match="argument 'size'"):
        SwapInOutScheduler(cpu, cpu, -1)
