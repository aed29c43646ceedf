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


@pytest.mark.parametrize("moments", [(0, 2, 4), pytest.param((1, 3), marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["plain", "numpy", "hook", "auto", "python function"])
def test_daemon_threads_at_the_end(kind, moments):
    for k in moments:
        command = [sys.executable, "-c", SCRIPT, kind, str(0.035 * k)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


BUSY = """
import sys, threading, time
import numpy as np, nnrs as nn, nnrs.functions as F, nnrs.solvers as S
began = threading.Event()
def busy(*args, **kw):
    began.set()
    while True:
        pass
def asleep(*args, **kw):
    began.set()
    time.sleep(0.3)  # wakes up while the interpreter ends, or after that
    time.sleep(1000)
class Number:
    __index__ = __float__ = __bool__ = __array__ = __repr__ = {act}
class Busy(nn.function.PythonFunction):
    name = "Busy"
    def min_outputs(self): return 1
    def setup_impl(self, inputs, outputs): outputs[0].reset_shape(inputs[0].shape, True)
    def forward_impl(self, inputs, outputs): {act}()
    def backward_impl(self, inputs, outputs, propagate_down, accum): pass
    def grad_depends_output_data(self, i, o): return False
    def grad_depends_input_data(self, i, j): return False
x = nn.Variable((8,), need_grad=True)
y = F.sum(F.sin(x))
z = Busy()(x)
a, n = nn.NdArray((2,)), Number()
solver = S.Sgd()
solver.set_parameters({{"x": x}})
x.g = 1
threading.Thread(target=lambda: {call}, daemon=True).start()
began.wait()
time.sleep({wait})
print("done")
sys.exit({code})
"""
CALLS = {
    "hook": "y.forward(function_post_hook={act})",
    "shape": "nn.Variable((n,))",
    "initializer": "nn.parameter.get_parameter_or_create('w', (2,), {act})",
    "solver": "solver.update(update_pre_hook={act})",
    "python function": "z.forward()",
    "array": "setattr(x, 'd', n)",
    "number": "a.fill(n)",
    "flag": "y.forward(n)",
    "axis": "y.parent.grad_depends_input_data(n, 0)",
    "visit": "y.visit({act})",
    "function": "F.sin(x, n_outputs=n)",
    "message": "y.visit(n)",
}


def end_of(script: str, **given: object) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", script.format(**given)], capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


# One act for each call, the other one for the next; both in the long test.
ACTS = [
    pytest.param(call, act, marks=[] if (i + k) % 2 == 0 else pytest.mark.long)
    for i, call in enumerate(CALLS)
    for k, act in enumerate(("busy", "asleep"))
]


@pytest.mark.parametrize(("call", "act"), ACTS)
def test_daemon_threads_in_python_code_that_the_engine_calls(call, act):
    wait = 0.05 if act == "busy" else 0.25
    given = {"act": act, "call": CALLS[call].format(act=act), "wait": wait, "code": 3}
    assert end_of(BUSY, **given) == (3, "done\n", "")


def test_functions_of_atexit_may_wait_for_threads_that_use_the_engine():
    script = """
import atexit, threading
stop, done = threading.Event(), threading.Event()
def work():
    stop.wait()
    import nnrs as nn, nnrs.functions as F
    y = F.sum(F.sin(nn.Variable((8,), need_grad=True)))
    y.forward(function_post_hook=lambda f: None)
    y.backward()
    done.set()
def end():
    stop.set()
    print(done.wait(60))
atexit.register(end)
threading.Thread(target=work, daemon=True).start()
import nnrs
"""
    assert end_of(script) == (0, "True\n", "")
