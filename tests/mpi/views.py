"""Gradients by other arrays over their memory, and those that no function of the graph has: as summed behind it."""

from __future__ import annotations

import tempfile
import time

import numpy as np

import nnrs as nn
import nnrs.communicators as C
import nnrs.functions as F
from nnrs.function import PythonFunction

comm = C.MultiProcessDataParallelCommunicator(nn.get_current_context(), timeout=30)
comm.init()
own = np.arange(1, 5, dtype=np.float32) * (comm.rank + 1)


def check(loss, gradients, kept=(), hook=None):
    """`kept`: arrays whose memory the gradients have; `hook` is called behind each function."""

    def slow(function):
        time.sleep(0.002)  # what goes too early has gone
        if hook is not None:
            hook(function)

    def run(**how):
        for g in [*gradients, *kept]:
            g.zero()
        loss.forward()
        loss.backward(function_post_hook=slow, **how)

    run()
    comm.all_reduce(gradients)
    want = [g.data.copy() for g in gradients]
    for pack_size in (1, 1 << 20):
        run(communicator_callbacks=comm.all_reduce_callback(gradients, pack_size))
        for g, value in zip(gradients, want, strict=True):
            np.testing.assert_array_equal(g.data, value)


def parameter(*shape):
    return nn.Variable.from_numpy_array(np.random.default_rng(1).normal(size=shape), need_grad=True)


# Tied by a reshape, in the first and the last layer.
w = parameter(2, 2)
h = F.sin(F.reshape(w.reshape((4,), unlink=True) * nn.Variable.from_numpy_array(own), (2, 2)))
loss = F.sum(F.affine(F.sin(h), w))
check(loss, [w.grad])
check(loss, [w.grad.view((4,)), w.grad])
check(loss, [w.grad.narrow(0, 1, 1), w.grad.narrow(0, 0, 1)], [w.grad])

# One buffer for the gradients of all.
flat, parts = nn.NdArray((8,)), [parameter(4), parameter(4)]
for i, p in enumerate(parts):
    p.grad = flat.narrow(0, 4 * i, 4)
loss = F.sum(F.sin(nn.Variable.from_numpy_array(own) * parts[0]) * parts[1])
check(loss, [flat])
check(loss, [p.grad for p in parts])


class Inner(PythonFunction):
    """Whose backward runs a graph with a parameter that the graph around it does not have."""

    name = "Inner"

    def __init__(self):
        super().__init__()
        self.w = parameter(4)

    def min_outputs(self):
        return 1

    def graph(self, x):
        v = nn.Variable.from_numpy_array(x.data, need_grad=True)
        v.g = 0
        y = F.tanh(v * self.w)
        y.forward()
        return v, y

    def grad_depends_input_data(self, i, j):
        return True

    def grad_depends_output_data(self, i, o):
        return False

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].d = self.graph(inputs[0].data)[1].d

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        v, y = self.graph(inputs[0].data)
        y.backward(outputs[0].g)
        inputs[0].g = v.g + (inputs[0].g if accum[0] else 0)


functions = [Inner() for _ in range(3)]
x = nn.Variable.from_numpy_array(own, need_grad=True)
for f in functions:
    x = f(x)
out, penalty = parameter(4), parameter(4)
loss = F.sum(out * x)


def hook(function):
    if function == loss.parent:
        penalty.g += own


check(loss, [out.grad, penalty.grad, *(f.w.grad for f in functions)], hook=hook)

# Parts that arrays share are summed once.
for size in (4, 40000):
    whole = nn.NdArray((size,))
    for inplace in (False, True):
        whole.fill(comm.rank + 1)
        comm.all_reduce([whole.narrow(0, 1, 2), whole, whole.view((2, size // 2))], inplace=inplace)
        assert (whole.data == comm.size * (comm.size + 1) / 2).all()
overlap = [whole.narrow(0, 0, 3), whole.narrow(0, 2, 3)]
for call in (comm.all_reduce, lambda arrays: comm.all_reduce_callback(arrays, 1)):
    try:
        call(overlap)
    except ValueError as error:
        assert "got ones of shapes (3,) and (3,) that overlap" in str(error), error
    else:
        raise AssertionError("an overlap")
nn.parameter.set_parameter("w", w)
nn.parameter.set_parameter("view", w.reshape((4,), unlink=True))
comm.add_context_and_parameters((nn.get_current_context(), nn.get_parameters()))
w.g = 1
comm.allreduce()
assert (w.g == comm.size).all()

# What is said wrongly.
for call in (comm.all_reduce, comm.bcast):
    try:
        call([w.grad], "first") if call == comm.all_reduce else call([w.grad], 0, "first")
    except TypeError as error:
        assert "expected bool, got str 'first'" in str(error), error
    else:
        raise AssertionError("a text is no flag")
with tempfile.TemporaryDirectory() as folder:
    points = nn.checkpoint.Checkpoints(folder + "/0", parameters={"w": w}, communicator=comm)
    own = nn.checkpoint.Checkpoints(folder, parameters={"w": w})
    path = own.save(1)
    try:
        points.load(path, positions=comm.rank == 0)
    except ValueError as error:
        assert "argument 'positions': expected the same on all ranks" in str(error), error
    else:
        raise AssertionError("positions")
print(f"rank {comm.rank} is well")
