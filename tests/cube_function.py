"""A PythonFunction for tests, x³, and what its tests share. Their graphs run with fusion on and off."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
from nnrs import Variable, backward_functions
from nnrs.function import PythonFunction

X = np.array([1.0, -2.0, 3.0], np.float32)


@pytest.fixture(autouse=True, params=[True, False], ids=["fused", "single"])
def fusion(request):
    old = nn.set_fusion(request.param)
    yield request.param
    nn.set_fusion(old)


@pytest.fixture(autouse=True)
def registry():
    before = dict(backward_functions.registry)
    yield
    for name, rule in list(backward_functions.registry.items()):
        if rule is not before.get(name):
            backward_functions.unregister(name)


def leaf(values=X, need_grad=True) -> Variable:
    v = Variable.from_numpy_array(np.array(values, np.float32), need_grad=need_grad)
    v.g = 0
    return v


class Cube(PythonFunction):
    """x³; what else a method does is given as a function."""

    name = "Cube"

    def __init__(self, setup=None, forward=None, backward=None, reads=True, ctx=None):
        super().__init__(ctx)
        self.setup, self.forward, self.backward, self.reads = setup, forward, backward, reads

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        if self.setup:
            self.setup(inputs, outputs)
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d ** 3
        if self.forward:
            self.forward(inputs, outputs)

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        if propagate_down[0]:
            g = 3 * inputs[0].d ** 2 * outputs[0].g
            inputs[0].g = inputs[0].g + g if accum[0] else g
        if self.backward:
            self.backward(inputs, outputs)

    def grad_depends_input_data(self, i, j):
        return self.reads

    def grad_depends_output_data(self, i, o):
        return False


def raising(error: BaseException):
    def stop(inputs, outputs):
        raise error

    return stop


def trained(y: Variable, x: Variable) -> tuple[np.ndarray, np.ndarray]:
    x.g = 0
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    return y.d.copy(), x.g.copy()
