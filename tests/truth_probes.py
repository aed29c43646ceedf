"""What is taken for a truth value, and where: the probes that golden/make_truth.py asks NNabla and test_truth.py nnrs.

Each member is a function of the package under test, NumPy and the value; it gives what the value was taken for.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

MODULE = os.environ.get("NNRS_TEST_MODULE", "nnrs")
nn = importlib.import_module(MODULE)
F = importlib.import_module(f"{MODULE}.functions")
PF = importlib.import_module(f"{MODULE}.parametric_functions")
S = importlib.import_module(f"{MODULE}.solvers")
P = importlib.import_module(f"{MODULE}.parameter")
CPU = nn.Context(["cpu:float"], "CpuCachedArray", "0")
PythonFunction = importlib.import_module(f"{MODULE}.function").PythonFunction


class Truth:
    """Says what it is by `__bool__`."""

    def __init__(self, value: bool) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return self.value


class Length:
    """Says what it is by `__len__`."""

    def __len__(self) -> int:
        return 0


class Index:
    """A whole number by `__index__`."""

    def __index__(self) -> int:
        return 0


class Wrong:
    """Cannot say what it is."""

    def __bool__(self) -> bool:
        raise ValueError("no truth")


VALUES: dict[str, Callable[[], Any]] = {
    "True": lambda: True,
    "False": lambda: False,
    "None": lambda: None,
    "0": lambda: 0,
    "1": lambda: 1,
    "2": lambda: 2,
    "-1": lambda: -1,
    "2**70": lambda: 2**70,
    "0.0": lambda: 0.0,
    "0.5": lambda: 0.5,
    "nan": lambda: float("nan"),
    "1j": lambda: 1j,
    "''": lambda: "",
    "'a'": lambda: "a",
    "'False'": lambda: "False",
    "b''": lambda: b"",
    "np.bool_(True)": lambda: np.bool_(True),
    "np.bool_(False)": lambda: np.bool_(False),
    "np.int64(0)": lambda: np.int64(0),
    "np.float32(0.5)": lambda: np.float32(0.5),
    "np.array(True)": lambda: np.array(True),
    "np.array([0])": lambda: np.array([0]),
    "np.array([1, 0])": lambda: np.array([1, 0]),
    "[]": list,
    "[0]": lambda: [0],
    "()": tuple,
    "{}": dict,
    "{1: 2}": lambda: {1: 2},
    "object()": object,
    "Truth(False)": lambda: Truth(False),
    "Truth(True)": lambda: Truth(True),
    "Length()": Length,
    "Index()": Index,
    "Wrong()": Wrong,
    "Variable": lambda: nn.Variable((2,)),
    "NdArray": lambda: nn.NdArray((2,)),
}


def leaf(values: Any = (0.1, 0.2), need_grad: bool = True) -> Any:
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=need_grad)


def member(name: str) -> Callable[[Any], bool]:
    """Sets a property of a Variable, and reads it."""

    def probe(value: Any) -> bool:
        v = leaf()
        setattr(v, name, value)
        return bool(getattr(v, name))

    return probe


def applied(name: str) -> Callable[[Any], bool]:
    return lambda value: bool(getattr(leaf().apply(**{name: value}), name))


def reset_shape(value: Any) -> bool:
    v = leaf()
    try:
        v.reset_shape((3,), force=value)
    except (RuntimeError, ValueError) as error:
        if "truth" in str(error) or "ambiguous" in str(error):
            raise
        return False
    return v.shape == (3,)


def cleared_by_forward(argument: str) -> Callable[[Any], bool]:
    def probe(value: Any) -> bool:
        h = F.exp(leaf(need_grad=False))
        y = F.exp(h)
        data = h.data
        y.forward(**{argument: value})
        return bool(data.clear_called)

    return probe


def cleared_by_forward_all(argument: str) -> Callable[[Any], bool]:
    def probe(value: Any) -> bool:
        h = F.exp(leaf(need_grad=False))
        y = F.exp(h)
        data = h.data
        nn.forward_all([y], **{argument: value})
        return bool(data.clear_called)

    return probe


def cleared_by_backward(value: Any) -> bool:
    h = F.exp(leaf())
    y = F.exp(h)
    y.forward()
    data = h.data
    y.backward(clear_buffer=value)
    return bool(data.clear_called)


def accumulates(value: Any) -> bool:
    x = leaf()
    y = F.mul_scalar(x, 2)
    y.forward()
    x.g, y.g = 1, 1
    y.parent.backward([x], [y], accum=[value])
    return bool(x.g[0] == 3)


def active(value: Any) -> bool:
    y = F.add_n(leaf(), leaf())
    y.parent.set_active_input_mask([True, value])
    y.forward()
    return bool(abs(y.d[0] - 0.2) < 1e-6)


def in_scope(make: Callable[[Any], Any], look: Callable[[], Any]) -> Callable[[Any], bool]:
    def probe(value: Any) -> bool:
        with make(value):
            return bool(look())

    return probe


def auto_forward(value: Any) -> bool:
    try:
        nn.set_auto_forward(value)
        return bool(nn.get_auto_forward())
    finally:
        nn.set_auto_forward(False)


def global_recompute(value: Any) -> bool:
    try:
        nn.set_global_recompute(value)
        return bool(F.exp(leaf()).recompute)
    finally:
        nn.set_global_recompute(False)


def persistent_output(value: Any) -> bool:
    x = leaf()
    y = F.exp(x)
    nn.grad([y], [x], persistent_outputs=[value])
    return bool(y.persistent)


def bound(value: Any) -> bool:
    x = leaf()
    (g,) = nn.grad([F.exp(x)], [x], bind_grad_output=value)
    return bool(x.grad == g.data)


def in_parameters(call: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """With no parameters before and after."""

    def probe(value: Any) -> bool:
        nn.clear_parameters()
        try:
            return call(value)
        finally:
            nn.clear_parameters()

    return probe


def set_parameters(argument: str) -> Callable[[Any], bool]:
    def probe(value: Any) -> bool:
        solver, w, v = S.Adam(), leaf(), leaf()
        solver.set_parameters({"w": w, "v": v})
        w.g = v.g = 1
        solver.update()
        solver.set_parameters({"w": w}, **{"reset": False, argument: value})
        states = solver.get_states()
        return len(states) == 1 if argument == "reset" else states["w"].t == 1

    return probe


def python_function(method: str) -> Callable[[Any], bool]:
    """Whether the gradient's data is there for a PythonFunction that says so."""

    def probe(value: Any) -> bool:
        class Square(PythonFunction):
            name = "Square"

            def min_outputs(self) -> int:
                return 1

            def setup_impl(self, inputs: Any, outputs: Any) -> None:
                outputs[0].reset_shape(inputs[0].shape, True)

            def forward_impl(self, inputs: Any, outputs: Any) -> None:
                outputs[0].d = inputs[0].d ** 2

            def backward_impl(self, inputs: Any, outputs: Any, propagate_down: Any, accum: Any) -> None:
                inputs[0].g = 1

            def grad_depends_input_data(self, i: int, j: int) -> Any:
                return value if method == "grad_depends_input_data" else False

            def grad_depends_output_data(self, i: int, o: int) -> Any:
                return value if method == "grad_depends_output_data" else False

        y = Square()(leaf())
        return bool(getattr(y.parent, method)(0, 0))

    return probe


def seeded(argument: str) -> Callable[[Any], bool]:
    """Whether a seed moves the generator that the flag is for."""

    def probe(value: Any) -> bool:
        def number() -> float:
            if argument == "set_parameter_seed":
                return float(importlib.import_module(f"{MODULE}.random").prng.rand())
            y = F.rand(shape=(1,))
            y.forward()
            return float(y.d[0])

        other = {"set_function_seed": False, "set_parameter_seed": False}
        nn.seed(7)
        first = number()
        nn.seed(7, **{**other, argument: value})
        return number() == first

    return probe


def copies(value: Any) -> bool:
    nn.NdArray((2,)).copy_from(leaf().data, use_current_context=value)
    return True


MEMBERS: dict[str, Callable[[Any], bool]] = {
    "Variable(need_grad=)": lambda v: nn.Variable((2,), need_grad=v).need_grad,
    "Variable.from_numpy_array(need_grad=)": lambda v: nn.Variable.from_numpy_array(np.ones(2), None, v).need_grad,
    "Variable.need_grad": member("need_grad"),
    "Variable.persistent": member("persistent"),
    "Variable.recompute": member("recompute"),
    "Variable.apply(need_grad=)": applied("need_grad"),
    "Variable.apply(persistent=)": applied("persistent"),
    "Variable.unlinked(need_grad=)": lambda v: leaf().unlinked(need_grad=v).need_grad,
    "Variable.get_unlinked_variable(need_grad=)": lambda v: leaf().get_unlinked_variable(need_grad=v).need_grad,
    "Variable.reset_shape(force=)": reset_shape,
    "Variable.reshape(unlink=)": lambda v: leaf().reshape((1, 2), unlink=v).parent is None,
    "Variable.forward(clear_buffer=)": cleared_by_forward("clear_buffer"),
    "Variable.forward(clear_no_need_grad=)": cleared_by_forward("clear_no_need_grad"),
    "Variable.backward(clear_buffer=)": cleared_by_backward,
    "forward_all(clear_buffer=)": cleared_by_forward_all("clear_buffer"),
    "forward_all(clear_no_need_grad=)": cleared_by_forward_all("clear_no_need_grad"),
    "Variable.visit_check(f)": lambda v: F.exp(leaf()).visit_check(lambda f: v),
    "NdArray.copy_from(use_current_context=)": copies,
    "NdArray.data_ptr(write_only=)": lambda v: nn.NdArray((2,)).data_ptr(np.float32, CPU, v) != 0,
    "Function.backward(accum=)": accumulates,
    "Function.set_active_input_mask(mask)": active,
    "set_auto_forward(auto)": auto_forward,
    "auto_forward(auto)": in_scope(lambda v: nn.auto_forward(v), lambda: nn.get_auto_forward()),
    "no_grad(no_grad_)": in_scope(lambda v: nn.no_grad(v), lambda: not PF.embed(leaf([0], False), 2, 3).need_grad),
    "recompute(recompute_)": in_scope(lambda v: nn.recompute(v), lambda: F.exp(leaf()).recompute),
    "recompute_fn(recompute_)": lambda v: nn.recompute_fn(v)(lambda: F.exp(leaf()).recompute)(),
    "set_global_recompute(recompute)": global_recompute,
    "grad(persistent_outputs=)": persistent_output,
    "grad(bind_grad_output=)": bound,
    "get_parameters(grad_only=)": in_parameters(
        lambda v: (P.set_parameter("w", leaf(need_grad=False)), len(nn.get_parameters(grad_only=v)) == 0)[1]
    ),
    "get_parameter_or_create(need_grad=)": in_parameters(
        lambda v: P.get_parameter_or_create("w", (2,), need_grad=v).need_grad
    ),
    "get_parameter_or_create(as_need_grad=)": in_parameters(
        lambda v: P.get_parameter_or_create("w", (2,), as_need_grad=v).need_grad
    ),
    "Solver.set_parameters(reset=)": set_parameters("reset"),
    "Solver.set_parameters(retain_state=)": set_parameters("retain_state"),
    "seed(set_function_seed=)": seeded("set_function_seed"),
    "seed(set_parameter_seed=)": seeded("set_parameter_seed"),
    "PythonFunction.grad_depends_input_data": python_function("grad_depends_input_data"),
    "PythonFunction.grad_depends_output_data": python_function("grad_depends_output_data"),
    "F.sum(keepdims=)": lambda v: F.sum(leaf(), keepdims=v).ndim == 1,
    "F.relu(inplace=)": lambda v: bool(F.relu(leaf(), inplace=v).parent.arguments["inplace"]),
    "PF.affine(with_bias=)": in_parameters(
        lambda v: (PF.affine(leaf([[1.0]]), 1, with_bias=v), len(nn.get_parameters()) == 2)[1]
    ),
    "PF.affine(fix_parameters=)": in_parameters(
        lambda v: not PF.affine(leaf([[1.0]], False), 1, fix_parameters=v).need_grad
    ),
}


def taken_for(member: str, value: str) -> bool | None:
    """What the value was taken for; None where it is refused."""
    try:
        return bool(MEMBERS[member](VALUES[value]()))
    except Exception:  # noqa: BLE001  (by whatever kind of error)
        return None
