"""What the CUDA backend does beside computing: moving data, memory, CUDA graphs, several devices, errors.

Needs a GPU, or NNRS_CUDA=emulate in a build with the feature `emulate`. That every function computes there what it
should is checked by the other tests with NNRS_TEST_BACKEND=cudnn.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from gpu_helpers import DEVICES, gpu, graphs, needs_gpu, numbers, replays, variable, works_on_gpu  # noqa: F401 (a fixture)
from nnrs.ext import cuda
from nnrs.ext_utils import get_extension_context
from python_functions import OneToOne
from solver_helpers import ALL

pytestmark = [needs_gpu, pytest.mark.usefixtures("works_on_gpu")]


def net(x, t):
    h = F.tanh(PF.affine(x, 8, name="a"))
    return F.sum(F.pow_scalar(PF.affine(h, 1, name="b") - t, 2.0))


def train(steps, context, solver=S.Adam):
    nn.clear_parameters()
    nn.random.prng = np.random.RandomState(3)
    losses = []
    with nn.context_scope(context):
        x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
        loss = net(x, t)
    s = solver(0.01)
    s.set_parameters(nn.get_parameters())
    for k in range(steps):
        x.d, t.d = numbers(16, 4, seed=k), numbers(16, 1, seed=100 + k)
        s.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        s.weight_decay(1e-3)
        s.update()
        losses.append(float(loss.d))
    return losses, {k: v.d.copy() for k, v in nn.get_parameters().items()}, loss


def test_the_digits_network_learns_as_on_the_cpu():
    """A few steps of examples/digits.py: convolutions, batch normalization, pooling, dropout, Adam."""
    for package in ("sklearn", "matplotlib", "tqdm", "h5py"):
        pytest.importorskip(package)
    sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
    import digits

    x, t, *_ = digits.load_data()

    def run(context):
        nn.clear_parameters()
        with nn.context_scope(context):
            nn.seed(1)
            network = digits.Network(16, train=True)
        solver, rng = S.Adam(1e-3), np.random.default_rng(0)
        solver.set_parameters(nn.get_parameters())
        return [digits.train_epoch(network, solver, x[:32], t[:32], rng)[0] for _ in range(5)]

    np.testing.assert_allclose(run(gpu()), run(get_extension_context("cpu")), rtol=1e-3)


@pytest.mark.parametrize("solver", ALL)
def test_training_is_that_of_the_cpu(solver):
    on_gpu, there, loss = train(12, gpu(), solver)
    counts = replays(loss)
    on_cpu, here, _ = train(12, get_extension_context("cpu"), solver)
    np.testing.assert_allclose(on_gpu, on_cpu, rtol=2e-4)
    for name, value in here.items():
        np.testing.assert_allclose(there[name], value, rtol=2e-3, atol=1e-5)
    assert len(counts) == 2 and min(counts) > 0, counts


def test_graphs_off_is_the_same_to_the_bit():
    on, _, _ = train(8, gpu())
    with graphs(False):
        off, _, loss = train(8, gpu())
        assert all("CUDA graphs are off" in line for line in cuda.graphs(loss))
    assert on == off


def test_what_the_host_writes_is_seen_and_what_the_gpu_writes_too():
    x = variable([1, 2, 3], need_grad=True)
    y = F.sum(F.exp(x))
    for k in range(8):
        x.d[1] = k  # through a view
        y.forward()
        np.testing.assert_allclose(y.d, np.exp(x.d).sum(), rtol=1e-6)
        x.g = 0
        y.backward(2)
        np.testing.assert_allclose(x.g, 2 * np.exp([1, k, 3]), rtol=1e-6)
    x.d = [0, 0, 0]
    y.forward()
    assert y.d == 3


def test_a_view_that_stays_alive_is_read_anew():
    x = variable([1.0, 2.0])
    view = x.d
    y = F.exp(x)
    y.forward()
    view[...] = 0
    y.forward()
    assert y.d.tolist() == [1, 1]


def test_gradients_accumulate_in_captured_runs():
    x = variable([1.0, 2.0], need_grad=True)
    y = F.sum(x * x)
    y.forward()
    x.g = 0
    for k in range(1, 9):
        y.backward()
        np.testing.assert_allclose(x.g, k * 2 * x.d)


def test_changes_between_replays_are_noticed():
    x = variable(numbers(4, 3), need_grad=True)
    h = F.sin(x)
    y = F.sum(h * h)
    for _ in range(6):
        y.forward()
    h.persistent = True  # another plan
    for k in range(6):
        x.d = numbers(4, 3, seed=k)
        y.forward()
        np.testing.assert_allclose(h.d, np.sin(x.d), rtol=1e-5)
    x.reset_shape((2, 3), True)
    x.d = 1
    y.forward()
    np.testing.assert_allclose(y.d, 6 * np.sin(1) ** 2, rtol=1e-5)
    x.data = nn.NdArray.from_numpy_array(np.zeros((2, 3), np.float32))
    y.forward()
    assert y.d == 0


def test_outputs_dropped_and_taken_by_others_stay_apart():
    """The memory of a captured run is no other run's."""
    x = variable(numbers(64, 64))
    y = F.exp(F.sin(x) + 1)
    for _ in range(6):
        y.forward(clear_buffer=True)
    others = []
    for k in range(6):
        z = F.identity(variable(numbers(64, 64, seed=k)) * 1.0)
        z.forward()
        others.append((z, z.d.copy()))
        y.forward(clear_buffer=True)
    y.data.clear()
    y.forward(clear_buffer=True)
    np.testing.assert_allclose(y.d, np.exp(np.sin(x.d) + 1), rtol=1e-5)
    assert all(np.array_equal(z.d, copy) for z, copy in others)


def test_dropout_draws_new_numbers_each_run():
    y = F.dropout(variable(np.ones((1000,))), 0.5)
    masks = []
    for _ in range(6):
        y.forward()
        masks.append(y.d.copy())
    assert len({m.tobytes() for m in masks}) == 6


def test_hooks_and_python_functions_run_and_are_not_captured():
    class Twice(OneToOne):
        name = "Twice"

        def forward_impl(self, inputs, outputs):
            outputs[0].d = inputs[0].d * 2

        def backward_impl(self, inputs, outputs, prop_down, accum):
            inputs[0].g = 2 * outputs[0].g + (inputs[0].g if accum[0] else 0)

    x = variable([1.0, 2.0], need_grad=True)
    y = F.sum(Twice()(F.exp(x)) * 3.0)
    seen = []
    for k in range(6):
        x.d = [k, k + 1]
        x.g = 0
        y.forward(function_pre_hook=lambda f: seen.append(f.info.type_name))
        y.backward()
        np.testing.assert_allclose(y.d, 6 * np.exp(x.d).sum(), rtol=1e-5)
        np.testing.assert_allclose(x.g, 6 * np.exp(x.d), rtol=1e-5)
    assert len(seen) >= 18
    assert all("not captured" in line for line in cuda.graphs(y)), cuda.graphs(y)


def test_cpu_and_gpu_in_one_graph():
    x = variable([1.0, 2.0], need_grad=True)
    h = F.exp(x)
    with nn.context_scope(get_extension_context("cpu")):
        h = F.sin(h)
    y = F.sum(h * h)
    for _ in range(5):
        x.g = 0
        y.forward()
        y.backward()
    e = np.exp([1.0, 2.0])
    np.testing.assert_allclose(y.d, (np.sin(e) ** 2).sum(), rtol=1e-5)
    np.testing.assert_allclose(x.g, 2 * np.sin(e) * np.cos(e) * e, rtol=1e-4)


@pytest.mark.skipif(DEVICES < 2, reason="one device")
def test_two_devices():
    x = variable(numbers(5, 4))
    h = F.exp(x)
    with nn.context_scope(gpu(device_id="1")):
        y = F.sin(h)
    z = F.sum(y)
    for k in range(5):
        x.d = numbers(5, 4, seed=k)
        z.forward()
        np.testing.assert_allclose(z.d, np.sin(np.exp(x.d)).sum(), rtol=1e-4, atol=1e-4)
    assert cuda.memory_stats(1).peak > 0


def test_types_of_results():
    x = variable(numbers(3, 4))
    for kind, dtype in (("half", np.float16), ("double", np.float64), ("float", np.float32)):
        with nn.context_scope(gpu(type_config=kind)):
            y = F.exp(x)
        y.forward()
        assert y.d.dtype == dtype
        np.testing.assert_allclose(y.d, np.exp(x.d.astype(np.float64)), rtol=2e-3 if kind == "half" else 1e-6)


def test_memory_is_counted_limited_and_given_back():
    before = cuda.memory_stats().live
    cuda.reset_memory_peak()
    x = variable(numbers(256, 256))
    y = F.exp(x)
    y.name = "scores"
    y.forward()
    assert cuda.memory_stats().live >= before + 2 * 256 * 256 * 4
    assert cuda.memory_stats().peak >= cuda.memory_stats().live
    cuda.set_memory_limit(2 * 256 * 256 * 4 + 65536)  # too little, whatever captured runs and tables give back
    try:
        z = F.sin(y)
        with pytest.raises(MemoryError, match="out of memory on GPU 0.*largest arrays: .*'scores'.*256.0 KiB") as info:
            z.forward()
        assert "hint" in str(info.value)
    finally:
        cuda.set_memory_limit(None)
    z.forward()  # the graph is as usable as before
    np.testing.assert_allclose(z.d, np.sin(np.exp(x.d)), rtol=1e-4, atol=1e-5)
    del x, y, z, info
    assert cuda.memory_stats().live < before + 65536  # small tables stay
    cuda.clear_memory_cache()
    assert cuda.memory_stats().cached == 0


def test_infinities_are_found_on_the_device():
    w = variable(np.ones(1000), need_grad=True)
    y = F.sum(w * 3.0)
    y.forward()
    y.backward()
    s = S.Sgd(0.1)
    s.set_parameters({"w": w})
    assert not s.check_inf_grad() and not s.check_nan_grad() and not s.check_inf_or_nan_grad()
    y.backward(np.inf)
    assert s.check_inf_grad() and s.check_inf_or_nan_grad() and not s.check_nan_grad()
    w.g = np.nan
    assert s.check_nan_grad() and s.check_inf_or_nan_grad()


def test_clipping_on_the_device():
    w = variable(np.zeros(100), need_grad=True)
    y = F.sum(w * 3.0)
    y.forward()
    w.g = 0
    y.backward()
    s = S.Sgd(1.0)
    s.set_parameters({"w": w})
    s.clip_grad_by_norm(1.0)
    s.update()
    np.testing.assert_allclose(w.d, -0.1 * np.ones(100), rtol=1e-5)


def test_threads_with_graphs_of_their_own():
    wrong = []

    def work(seed):
        with nn.context_scope(gpu()):
            x = variable(numbers(8, 8, seed=seed))
            y = F.sum(F.exp(F.sin(x)))
            for k in range(20):
                x.d = numbers(8, 8, seed=seed + k)
                y.forward()
                if not np.allclose(y.d, np.exp(np.sin(x.d)).sum(), rtol=1e-4):
                    wrong.append((seed, k))

    workers = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    assert not wrong


def test_parameters_are_saved_and_loaded(tmp_path):
    _, values, _ = train(3, gpu())
    nn.save_parameters(str(tmp_path / "p.h5"))
    nn.clear_parameters()
    nn.load_parameters(str(tmp_path / "p.h5"))
    assert all(np.array_equal(v.d, values[k]) for k, v in nn.get_parameters().items())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_told_that_cuda_does_not_survive():
    script = (
        "import os, sys, warnings, numpy as np, nnrs as nn, nnrs.functions as F\n"
        "from nnrs.ext_utils import get_extension_context\n"
        "nn.set_default_context(get_extension_context('cudnn'))\n"
        "y = F.exp(nn.Variable.from_numpy_array(np.ones(3, np.float32))); y.forward()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try:\n        y.forward()\n"
        "    except RuntimeError as e:\n        print(e, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(pid, 0)\ny.forward()\nprint(y.d[0] > 2.7)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert "forked after its first use" in done.stdout and "True" in done.stdout, (done.stdout, done.stderr)


def test_contexts_that_are_not_there():
    with pytest.raises(ValueError, match="argument 'device_id': expected one of '0'"):
        gpu(device_id=str(DEVICES))
    with pytest.raises(ValueError, match="argument 'type_config'"):
        gpu(type_config="int")


@pytest.mark.parametrize("device", ["x", "-1", -1, 10**30, None])
def test_what_is_asked_of_no_gpu_is_an_error_of_ours(device):
    for ask in (cuda.device_name, cuda.memory_stats, cuda.host_waits, cuda.device_synchronize, cuda.libraries):
        with pytest.raises(nn.Error, match=f"{ask.__name__}: argument 'device': expected one of '0'") as info:
            ask(device)
        assert isinstance(info.value, ValueError)
