"""`import nnabla` finds nnrs after `compat.install()`; contexts are found by name."""

import inspect
import os
import subprocess
import sys

import pytest

import nnrs as nn
from gpu_helpers import needs_gpu
from nnrs import ext_utils


def run(script, env=None):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env)


def test_scripts_that_ask_for_a_version_get_the_one_whose_api_it_is():
    done = run(
        "import nnrs, nnrs.compat\n"
        "own = nnrs.__version__\n"
        "nnrs.compat.install()\n"
        "from nnabla import __version__\n"
        "assert __version__ == '1.39.0' and own != __version__\n"
        "nnrs.show_versions()\n"
        "nnrs.compat.uninstall()\n"
        "assert nnrs.__version__ == own"
    )
    assert done.returncode == 0 and done.stdout.startswith("nnrs 0."), done.stderr


def test_modules_that_come_with_nnabla_itself():
    """`import nnabla` is enough for them, and `hasattr` says what there is."""
    done = run(
        "import nnrs.compat; nnrs.compat.install()\n"
        "import nnabla as nn\n"
        "assert nn.utils.rnn.pad_sequence and nn.utils.nnabla_pb2.Shape and nn.core.graph_def.ProtoGraph\n"
        "assert nn.function_bases.relu and nn.backward_function.tanh.tanh_backward and nn._indexing\n"
        "assert not any(hasattr(m, 'no_such') for m in (nn, nn.utils, nn.core, nn.backward_function))\n"
        "try:\n    nn.utils.no_such\n"
        "except AttributeError as e:\n    assert str(e) == \"module 'nnrs.utils' has no attribute 'no_such'\", e\n"
        "from nnabla.utils.data_iterator import DataIterator, SlicedDataSource, CsvDataSource\n"
    )
    assert done.returncode == 0, done.stderr


def test_modules_that_a_script_makes_of_their_specs():
    done = run(
        "import nnrs.compat; nnrs.compat.install()\n"
        "import importlib.util as u\n"
        "spec = u.find_spec('nnabla.utils.rnn')\n"
        "module = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "assert module.pad_sequence and not hasattr(module, 'no_such')\n"
        "import nnabla.utils.rnn\n"
        "assert nnabla.utils.rnn is nnrs.utils.rnn\n"
    )
    assert done.returncode == 0, done.stderr


def test_the_installed_version_of_nnabla_is_that_one():
    done = run(
        "import nnrs.compat\n"
        "from importlib import metadata\n"
        "def version():\n"
        "    try:\n        return metadata.version('nnabla')\n"
        "    except metadata.PackageNotFoundError:\n        return None\n"
        "before = version()\n"
        "nnrs.compat.install()\n"
        "own = metadata.distribution('NNabla')\n"
        "assert version() == own.version == '1.39.0' and own.metadata['Name'] == 'nnabla' and own.files is None\n"
        "assert not own.requires and set(metadata.packages_distributions()['nnabla_ext']) == {'nnabla'}\n"
        "assert 'nnabla' in {d.metadata['Name'] for d in metadata.distributions()}\n"
        "assert metadata.version('numpy')\n"
        "nnrs.compat.uninstall()\n"
        "assert version() == before"
    )
    assert done.returncode == 0, done.stderr


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
        "try:\n    import nnabla.utils.no_such\n"
        "except ModuleNotFoundError as e:\n    assert str(e) == \"No module named 'nnabla.utils.no_such'\", e\n"
        "else:\n    raise AssertionError\n"
        "nnrs.compat.uninstall(); nnrs.compat.uninstall()\n"
        "import sys\n"
        "assert not [m for m in sys.modules if m.startswith('nnabla')]\n"
        "assert sys.modules['nnrs'] is nnrs\n"
        "print('fine')"
    )
    assert done.stdout == "fine\n", done.stderr


# Modules whose names are those of functions, with a way to see that the function is still there.
FUNCTIONS = {
    "grad": "len(nn.grad(x * x, [x])) == 1",
    "recompute": "nn.recompute().__enter__() is None",
    "auto_forward": "nn.auto_forward().__enter__() is None",
}
IMPORTS = (
    "import {p}.{m}",
    "import {p}.{m} as module",
    "from {p}.{m} import {m}",
    "from {p} import {m}",
    "import importlib; importlib.reload(importlib.import_module('{p}.{m}'))",
    "import {p}.{m}, {p}.{m} as again; from {p}.{m} import *",
)


# Each in a process of its own, which comes with NumPy: to import that takes the most time.
FORKS = """
import os, sys, traceback
import numpy
for code in {codes!r}:
    child = os.fork()
    if not child:
        try:
            exec(code, {{"__name__": "__main__"}})
        except BaseException:
            print(code, file=sys.stderr)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
"""


@pytest.mark.parametrize(
    "package, name",
    [("nnrs", name) for name in FUNCTIONS]
    + [("nnabla", "grad"), *(pytest.param("nnabla", name, marks=pytest.mark.long) for name in list(FUNCTIONS)[1:])],
)
def test_imports_of_a_module_leave_the_function_of_its_name(package, name):
    """Whether it is the first import of all, or comes after the package's."""
    before = "import nnrs.compat; nnrs.compat.install()" if package == "nnabla" else ""
    codes = []
    for statement in IMPORTS:
        imported = statement.format(p=package, m=name)
        codes += [
            f"{before}\n{first}\nimport {package} as nn\nx = nn.Variable((2,), need_grad=True)\n"
            f"assert {FUNCTIONS[name]}, nn.{name}\n"
            f"import {package}.{name}\nassert not isinstance(nn.{name}, type(nn))\n"
            for first in (imported, f"import {package}\n{imported}", f"import {package}.functions\n{imported}")
        ]
    done = run(FORKS.format(codes=codes))
    assert not done.returncode, done.stderr


def test_modules_that_scripts_of_nnabla_name():
    done = run(
        "import nnrs as nn, nnrs.compat; nnrs.compat.install()\n"
        "from nnabla._variable import Variable, Context, CommunicatorBackwardCallback\n"
        "from nnabla._nd_array import NdArray\n"
        "import nnabla.solver as S, nnabla.solvers, nnabla.dtypes, numpy as np\n"
        "assert (Variable, Context, NdArray) == (nn.Variable, nn.Context, nn.NdArray)\n"
        "assert nn._variable.Variable is Variable and nn.dtypes is nnabla.dtypes\n"
        "assert CommunicatorBackwardCallback is nn.communicators.CommunicatorBackwardCallback\n"
        "assert S.Adam is nnabla.solvers.Adam and S.Solver is nnabla.solvers.Solver\n"
        "from nnabla.solver import *\n"
        "assert Momentum is S.Momentum and SolverState is S.SolverState\n"
        "assert nnabla.dtypes.np_dtpye_to_int[np.float32] == 11 and nnabla.dtypes.int_to_np_dtype[5] is np.int32\n"
        "try: S.nonsense\n"
        "except AttributeError as e: print(e)\n"
    )
    assert done.stdout.splitlines() == [
        "module 'nnrs.solver' has no attribute 'nonsense'",
    ], done.stderr


def test_settings_are_those_of_nnabla(tmp_path):
    """The defaults and the order of the files are NNabla 1.39's."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".nnabla").write_text("[LOG]\nlog_console_level = ERROR\nlog_file_level = A\n[OWN]\na = 1\n")
    (tmp_path / "nnabla.conf").write_text("[LOG]\nlog_file_level = B\nlog_file_name = x%y\n")
    (tmp_path / "named.conf").write_text("[LOG]\nlog_file_name = z\n")
    script = (
        "from nnrs.config import nnabla_config as c\nimport nnrs as nn, configparser\n"
        "assert c is nn.config.nnabla_config and isinstance(c, configparser.RawConfigParser)\n"
        "print([c['LOG'][k] for k in ('log_console_level', 'log_file_level', 'log_file_name')], c.get('OWN', 'a'))\n"
        "print(c.sections()[:6], c.getint('DATA_ITERATOR', 'data_source_buffer_max_size'))\n"
        "c.set('DATA_ITERATOR', 'data_source_file_cache_size', '7')\n"
        "print(nn.config.nnabla_config['DATA_ITERATOR']['data_source_file_cache_size'], nn.config.in_recomputing)"
    )
    env = {**os.environ, "HOME": str(tmp_path / "home"), "NNABLA_CONFIG_FILE_PATH": str(tmp_path / "named.conf")}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env, cwd=tmp_path
    )
    assert done.stdout.splitlines() == [
        "['ERROR', 'B', 'z'] 1",
        "['DATA_ITERATOR', 'LOG', 'MISC', 'CALLBACK', 'CHECKPOINT', 'MULTINODE'] 1073741824",
        "7 False",
    ], done.stderr


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
    assert {n for n in names if n[0] != "_"} - {"made"} | {"StreamEventHandler"} == set(cudnn.__all__)
    assert all(getattr(cuda, n) is getattr(cudnn, n) for n in cudnn.__all__ if n != "context")
    for module in (cuda, cudnn):
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


def test_modules_are_there_without_an_import_of_their_own():
    code = "import nnrs as nn; nn.functions.relu, nn.variable.Variable, nn.context.Context, nn.utils, nn.solvers"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    code = "import nnrs as nn\nfrom nnrs.auto_forward import set_auto_forward\nwith nn.auto_forward(): pass"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = nn.nonsense
