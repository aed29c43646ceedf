"""Scripts with PythonFunctions that run on NNabla and on nnrs: what is called, with which flags, and what comes out.

`tests/golden/make_python_function.py` runs them on NNabla; `tests/test_python_function.py` runs the same on nnrs.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np

MODULE = os.environ.get("NNRS_TEST_MODULE", "nnrs")
nn = importlib.import_module(MODULE)
F = importlib.import_module(f"{MODULE}.functions")
S = importlib.import_module(f"{MODULE}.solvers")
bf = importlib.import_module(f"{MODULE}.backward_functions")
PythonFunction = importlib.import_module(f"{MODULE}.function").PythonFunction

X = np.array([[1.0, -2.0, 3.0]], np.float32)
W = np.array([[4.0, 5.0, 6.0]], np.float32)


class Recorded(PythonFunction):
    """Writes down how it is called."""

    def __init__(self, ctx: Any = None) -> None:
        super().__init__(ctx)
        self.log: list[Any] = []

    @property
    def name(self) -> str:
        return self.__class__.__name__

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs, outputs):
        self.log.append(["setup", [list(x.shape) for x in inputs], len(outputs)])
        for y in outputs:
            y.reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        self.log.append(["forward", [x.d.tolist() for x in inputs]])
        self.compute(inputs, outputs)

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        self.log.append(["backward", propagate_down, accum, [y.g.tolist() for y in outputs]])
        for x, g, down, add in zip(inputs, self.gradients(inputs, outputs), propagate_down, accum, strict=True):
            if down:
                x.g = x.g + g if add else g

    def grad_depends_input_data(self, i, j):
        return True

    def grad_depends_output_data(self, i, o):
        return False


class MyMul(Recorded):
    """x0 x1, on NdArrays."""

    def compute(self, inputs, outputs):
        outputs[0].data.copy_from(F.mul2(inputs[0].data, inputs[1].data))

    def gradients(self, inputs, outputs):
        gy = outputs[0].g
        return gy * inputs[1].d, gy * inputs[0].d


class MySquare(Recorded):
    """x x, on NumPy arrays."""

    def compute(self, inputs, outputs):
        outputs[0].d = inputs[0].d ** 2

    def gradients(self, inputs, outputs):
        return [2 * inputs[0].d * outputs[0].g]


class Split2(Recorded):
    """x times 1, 2, ..: as many outputs as are asked for."""

    def min_outputs(self):
        return 2

    def compute(self, inputs, outputs):
        for k, y in enumerate(outputs):
            y.d = inputs[0].d * (k + 1)

    def gradients(self, inputs, outputs):
        return [sum((k + 1) * y.g for k, y in enumerate(outputs))]


class OneToOne(PythonFunction):
    """A function with one output, of its first input's shape, whose gradient reads no data, or the inputs'."""

    name = "OneToOne"
    reads = False

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def grad_depends_output_data(self, i, o):
        return False

    def grad_depends_input_data(self, i, j):
        return self.reads


class Reversal(OneToOne):
    """The gradient with its sign turned, as domain adaptation uses it."""

    name = "Reversal"

    def forward_impl(self, inputs, outputs):
        outputs[0].data.copy_from(inputs[0].data)

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        if not propagate_down[0]:
            return
        dx, dy = inputs[0].grad, outputs[0].grad
        if accum[0]:
            dx += dy * -1.0
        else:
            dx.copy_from(dy * -1.0)


def variable(values: Any, need_grad: bool = True) -> Any:
    v = nn.Variable.from_numpy_array(np.array(values, np.float32))
    v.need_grad = need_grad
    v.grad.zero()
    return v


def static() -> Any:
    f, x, w = MyMul(), variable(X), variable(W)
    y = f(x, w)
    y.forward()
    y.backward()
    y.backward()
    return f.log, y.d, x.g, w.g, y.parent.info.type_name, len(y.parent.inputs)


def one_gradient() -> Any:
    f, x, w = MyMul(), variable(X), variable(W, need_grad=False)
    y = f(x, w)
    y.forward(clear_no_need_grad=True)
    y.backward(2.0, clear_buffer=True)
    return f.log, x.g, w.g


def same_input_twice() -> Any:
    f, x = MyMul(), variable(X)
    y = f(x, x)
    y.forward()
    y.backward()
    return f.log, x.g


def shared_intermediate() -> Any:
    f, g, x = MySquare(), MySquare(), variable(X)
    h = x * 2.0
    y = F.sum(f(h) + g(h) * 3.0)
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    # The order of the two is not promised.
    return sorted([f.log[-1][:3], g.log[-1][:3]]), f.log[:-1], g.log[:-1], y.d, x.g


def two_outputs() -> Any:
    f, x = Split2(), variable(X)
    a, b = f(x)
    y = F.sum(a * b)
    y.forward()
    y.backward()
    return f.log, y.d, x.g


def three_outputs_one_used() -> Any:
    f, x = Split2(), variable(X)
    outputs = f(x, n_outputs=3)
    outputs[2].forward()
    outputs[2].backward(clear_buffer=True)
    return len(outputs), x.g, [entry[:2] for entry in f.log if entry[0] != "backward"]


def another_shape() -> Any:
    f, x = MySquare(), variable(X)
    y = f(x)
    y.forward()
    x.reset_shape((2, 2), True)
    x.d = np.arange(4).reshape(2, 2)
    x.grad.zero()
    y.forward()
    y.backward()
    return f.log, y.d, x.g, y.shape


def dynamic() -> Any:
    f, x, w = MyMul(), variable(X), variable(W)
    with nn.auto_forward():
        y = f(x, w)
        z = F.sum(f(y, w))
    z.backward()
    return f.log, z.d, x.g, w.g


def no_gradient() -> Any:
    f, x, w = MyMul(), variable(X), variable(W)
    with nn.no_grad():
        y = f(x, w)
    y.forward()
    return f.log, y.d


def arrays() -> Any:
    f, g = MyMul(), Split2()
    x, w = nn.NdArray.from_numpy_array(X), nn.NdArray.from_numpy_array(W)
    y = f(x, w)
    a, b = g(x)
    return f.log, type(y).__name__, y.data, a.data, b.data, type(f(variable(X), w)).__name__


def one_object_in_two_nodes() -> Any:
    f, x, w = MyMul(), variable(X), variable(W)
    a = f(x, w)
    b = f(a, w)
    b.forward()
    b.backward()
    return f.log, a.d, b.d, x.g, w.g, a.parent == b.parent


def types() -> Any:
    x = variable(X)
    y = MySquare()(x)
    y.forward()
    y.backward()
    return str(y.d.dtype), str(x.g.dtype)


def training() -> Any:
    """A small network whose features see the domain's gradient reversed."""
    x, w, v = variable(np.eye(3) * 0.5), variable(np.full((3, 2), 0.25)), variable([[0.5], [-0.25]])
    h = F.tanh(F.affine(x, w))
    loss = F.mean(F.affine(Reversal()(h), v) ** 2) + F.mean(h * h)
    solver = S.Sgd(0.5)
    solver.set_parameters({"w": w, "v": v})
    for _ in range(5):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
    return w.d, v.d, loss.d


def rules() -> Any:
    """First, second and third derivative by a registered rule, and what the rule is given."""
    seen = []

    def rule(grad_inputs, inputs, input_shapes, outputs, output_shapes, **arguments):
        absent = [[v is None for v in list_] for list_ in (grad_inputs, inputs, outputs)]
        seen.append([absent, [list(s) for s in input_shapes], [list(s) for s in output_shapes], arguments])
        return grad_inputs[0] * inputs[1], grad_inputs[0] * inputs[0]

    bf.register("MyMul", rule)
    f, x = MyMul(), variable(X)
    y = f(f(x, x), x)
    found = []
    for _ in range(3):
        (y,) = nn.grad([y], [x])
        y.forward()
        found.append(y.d.tolist())
    return found, seen


def no_rule() -> Any:
    x = variable(X)
    try:
        nn.grad([MySquare()(x)], [x])
    except ValueError as e:
        return "MySquare" in str(e)


def unfinished() -> Any:
    """Methods that are not there."""
    names = ["name", "min_outputs", "grad_depends_input_data", "grad_depends_output_data"]
    found = []
    for name in names:
        arguments = () if name in ("name", "min_outputs") else (0, 0)
        try:
            member = getattr(PythonFunction(), name)
            member(*arguments)
        except NotImplementedError as e:
            found.append(str(e))
    return found


SCRIPTS = [
    static, one_gradient, same_input_twice, shared_intermediate, two_outputs, three_outputs_one_used, another_shape,
    dynamic, no_gradient, arrays, one_object_in_two_nodes, types, training, rules, no_rule, unfinished,
]  # fmt: skip


def plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, np.ndarray):
        return np.asarray(value, np.float64).tolist()
    return [plain(v) for v in value] if isinstance(value, (tuple, list)) else value
