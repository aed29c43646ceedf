"""`import nnabla` finds nnrs after `compat.install()`; contexts are found by name."""

import inspect
import logging
import os
import subprocess
import sys

import pytest

import nnrs as nn
from gpu_helpers import needs_gpu
from nnrs import ext_utils


def run(script, env=None):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env)


def test_install_makes_nnabla_mean_nnrs():
    done = run(
        "import nnrs, nnrs.compat\n"
        "nnrs.compat.install(); nnrs.compat.install()\n"
        "import nnabla as nn, nnabla.parametric_functions as PF\n"
        "from nnabla.ext_utils import get_extension_context\n"
        "from nnabla.experimental.viewers import SimpleGraph\n"
        "import nnabla.initializer, nnrs.parameter, nnabla_ext.cpu\n"
        "assert nn is nnrs and nn.parametric_functions is PF and PF.__name__ == 'nnrs.parametric_functions'\n"
        "assert nn.initializer is nnrs.initializer and nnrs.parameter.__spec__.name == 'nnrs.parameter'\n"
        "assert nnabla_ext.cpu.get_device_count() == 1\n"
        "try:\n    import nnabla.utils.data_iterator\n"
        "except ModuleNotFoundError as e:\n    assert 'not in this version of nnrs yet' in str(e), e\n"
        "else:\n    assert nn.utils.data_iterator.__name__ == 'nnrs.utils.data_iterator'\n"
        "nnrs.compat.uninstall(); nnrs.compat.uninstall()\n"
        "import sys\n"
        "assert not [m for m in sys.modules if m.startswith('nnabla')]\n"
        "assert sys.modules['nnrs'] is nnrs\n"
        "print('fine')"
    )
    assert done.stdout == "fine\n", done.stderr


def test_install_refuses_when_nnabla_is_there():
    done = run(
        "import sys, types\nimport nnrs.compat\n"
        "sys.modules['nnabla'] = types.ModuleType('nnabla')\n"
        "try:\n    nnrs.compat.install()\nexcept RuntimeError as e:\n    print(e)"
    )
    assert "nnabla is imported already; call install() before that" in done.stdout, done.stderr


@pytest.mark.host
def test_contexts_by_name():
    assert ext_utils.list_extensions() == ["cpu", "cuda", "cudnn"]
    context = ext_utils.get_extension_context("cpu", device_id="0")
    assert (context.backend, context.array_class, context.device_id) == (["cpu:float"], "CpuCachedArray", "")
    assert ext_utils.get_extension_context("cpu", type_config="half").backend == ["cpu:half", "cpu:float"]


def test_without_a_gpu_asking_for_one_is_one_error():
    code = (
        "import nnrs.ext_utils\n"
        "for name in ('cuda', 'cudnn'):\n"
        "    try:\n        nnrs.ext_utils.get_extension_context(name)\n"
        "    except RuntimeError as e:\n        print(e)\n"
    )
    done = run(code, env={**os.environ, "NNRS_CUDA": "", "CUDA_VISIBLE_DEVICES": ""})
    # What is wrong decides the advice: no driver, or one that shows no GPU.
    advice = [done.stdout.count(text) for text in ("nnrs[cuda12]", "CUDA_VISIBLE_DEVICES is ''")]
    assert done.stdout.count("CUDA is not available: ") == sum(advice) == max(advice) == 2, (done.stdout, done.stderr)
    assert not done.stderr


@pytest.mark.host
def test_a_context_that_falls_back_to_the_host_says_so_once():
    script = (
        "import warnings, nnrs as nn\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    nn.Context(['cpu:float', 'cudnn:float'], '', '77'), nn.Context(['tpu:float', 'cpu:float'], '', '77')\n"
        "    assert not said\n"
        "    for _ in range(2): nn.Context(['cudnn:float', 'cpu:float'], '', '77')\n"
        "print(len(said), said[0].category.__name__, said[0].message)\n"
    )
    done = run(script)
    assert done.stdout.startswith(
        "1 RuntimeWarning nnrs: Context(['cudnn:float', 'cpu:float'], device_id='77') computes on the host: "
    ), done


@pytest.mark.host
@pytest.mark.parametrize("wish", ["emulate:0", "emulate:x", "emulate:"])
def test_a_wrong_wish_for_emulated_gpus_is_one_clear_error(wish):
    script = "from nnrs.ext_utils import get_extension_context\nget_extension_context('cudnn')\n"
    done = run(script, env={**os.environ, "NNRS_CUDA": wish})
    assert "NNRS_CUDA" in done.stderr and "CUDA is not available: " in done.stderr, done.stderr
    known = f"expected emulate:N with a number N, 1 or more, got {wish}"
    assert known in done.stderr or "wants a build with the feature 'emulate'" in done.stderr, done.stderr


def test_both_names_of_the_cuda_backend_have_the_same_functions():
    from nnrs.ext import cuda, cudnn

    names = {
        n for n in vars(cuda) if inspect.isfunction(getattr(cuda, n)) and getattr(cuda, n).__module__ == cuda.__name__
    }
    assert {n for n in names if n[0] != "_"} - {"made"} == set(cudnn.__all__)
    assert all(getattr(cuda, n) is getattr(cudnn, n) for n in cudnn.__all__ if n != "context")
    for module in (cuda, cudnn):
        with pytest.raises(AttributeError, match="StreamEventHandler is not in this version of nnrs yet; NNabla 1.39"):
            _ = module.StreamEventHandler
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = module.nonsense


@needs_gpu
def test_the_old_name_of_cudnn_and_the_names_of_contexts():
    script = (
        "import nnrs as nn\nfrom nnrs.ext_utils import get_extension_context as get\n"
        "for name in ('cuda', 'cuda.cudnn', 'cudnn'):\n    print(get(name).backend, nn.available_contexts)\n"
    )
    done = run(script)
    assert "'cuda.cudnn' is the old name of 'cudnn'" in done.stderr, done
    cuda, *cudnn = [line for line in done.stdout.splitlines() if line[0] == "["]
    assert cuda == "['cuda:float', 'cpu:float'] ['cpu', 'cuda']"
    assert cudnn[0] == cudnn[1] == "['cudnn:float', 'cuda:float', 'cpu:float'] ['cpu', 'cuda', 'cudnn']"


@pytest.mark.host
def test_unknown_contexts():
    with pytest.raises(ModuleNotFoundError, match="expected one of 'cpu', 'cuda', 'cudnn', got 'foo'"):
        ext_utils.get_extension_context("foo")
    with pytest.raises(TypeError, match="argument 'ext_name'"):
        ext_utils.get_extension_context(3)
    for config in ("x", None, []):
        with pytest.raises(ValueError, match="argument 'type_config': expected one of 'float', 'half'"):
            ext_utils.get_extension_context("cpu", type_config=config)


def test_logger_is_silent():
    assert nn.logger is logging.getLogger("nnrs")
    assert [type(h) for h in nn.logger.handlers] == [logging.NullHandler]


def test_modules_are_there_without_an_import_of_their_own():
    code = "import nnrs as nn; nn.functions.relu, nn.variable.Variable, nn.context.Context, nn.utils, nn.solvers"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    code = "import nnrs as nn\nfrom nnrs.auto_forward import set_auto_forward\nwith nn.auto_forward(): pass"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = nn.nonsense
