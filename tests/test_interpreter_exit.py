"""The end of the interpreter beside daemon threads that are at work in the engine: no abort, no crash, no long wait."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import copy, pickle, sys, threading, time
import numpy as np, nnrs as nn, nnrs.functions as F, nnrs.solvers as S
class Twice(nn.function.PythonFunction):
    name = "Twice"
    def min_outputs(self): return 1
    def setup_impl(self, inputs, outputs): outputs[0].reset_shape(inputs[0].shape, True)
    def forward_impl(self, inputs, outputs): outputs[0].d = 2 * inputs[0].d
    def backward_impl(self, inputs, outputs, propagate_down, accum): inputs[0].g = 2 * outputs[0].g
    def grad_depends_output_data(self, i, o): return False
    def grad_depends_input_data(self, i, j): return False
large = np.ones((64, 100))  # NumPy lets go of the GIL where it copies this
def through_numpy(x):
    x.d = x.g = x.data.data = large
    nn.Variable.from_numpy_array(large), nn.NdArray.from_numpy_array(large), np.array(x.data)
    x[0:3] = 1
    pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.data.cast(np.float64), x.data.cast(np.float32)
    try:
        x.d = np.ones(3)
    except nn.Error:
        pass
def work(kind):
    v = nn.Variable((64, 100))
    x = nn.Variable.from_numpy_array(np.ones((8, 8), "f"), need_grad=True)
    y = F.sum(F.affine(Twice()(x) if kind == "python function" else x, x))
    solver = S.Sgd(lr=1e-6)
    solver.set_parameters({"x": x})
    while True:
        if kind == "numpy":
            through_numpy(v)
        elif kind == "auto":
            with nn.auto_forward():
                F.sum(F.affine(x, x)).backward()
        elif kind == "hook":
            y.forward(function_post_hook=lambda f: None)
        else:
            v.d = large
            y.forward()
            solver.zero_grad()
            y.backward()
            solver.update(update_post_hook=lambda: None)
for _ in range(4):
    threading.Thread(target=work, args=(sys.argv[1],), daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", ["plain", "numpy", "hook", "auto", "python function"])
def test_daemon_threads_at_the_end(kind):
    for k in range(8):
        command = [sys.executable, "-c", SCRIPT, kind, str(0.02 * k)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
