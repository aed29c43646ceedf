"""Names that scripts of NNabla import from within its modules: helpers of modules, gradients, functions as messages."""

from __future__ import annotations

import abc
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs.core.module import MetaClass, ParamMemo, insert_parent_name
from nnrs.function import UnsafeVariable
from nnrs.grad import Grad, GradEndFunction
from nnrs.utils import nnabla_pb2
from nnrs.utils.load_function import _create_function_instance
from nnrs.utils.py23_compatible import getargspec
from nnrs.utils.save_function import _create_function_nntxt


def test_parent_names() -> None:
    given = OrderedDict(W=1, b=2)
    assert list(insert_parent_name("conv", given).items()) == [("@conv/W", 1), ("@conv/b", 2)]


def test_parameters_are_listed_once() -> None:
    memo, w, b = ParamMemo(), nn.Variable((1,)), nn.Variable((1,))
    assert list(memo.filter_and_update({"w": w, "same": w})) == ["w"]
    assert list(memo.filter_and_update({"w": w, "b": b})) == ["b"]


class Own:
    """A class that has parameters as a Module has."""

    def __init__(self) -> None:
        self.parameter_scope: Any = OrderedDict()


class Layer(Own, metaclass=MetaClass):
    size = 2

    def make(self, x: Any) -> Any:
        """Its graph."""
        return PF.affine(x, self.size)


def test_methods_have_their_own_parameters() -> None:
    nn.clear_parameters()
    layer = Layer()
    layer.make(nn.Variable((1, 3)))
    assert list(layer.parameter_scope) == ["affine"] and not nn.get_parameters()
    assert Layer.make.__doc__ == "Its graph."
    wrapped = MetaClass.method_wrapper(lambda self, x: PF.affine(x, 4, name="more"))
    wrapped(layer, nn.Variable((1, 3)))
    assert list(layer.parameter_scope) == ["affine", "more"] and not nn.get_parameters()


def test_modules_go_together_with_other_metaclasses() -> None:
    class Base(nn.Module, abc.ABC):
        @abc.abstractmethod
        def width(self) -> int: ...

        def call(self, x: Any) -> Any:
            return PF.affine(x, self.width())

    class Net(Base):
        def width(self) -> int:
            return 4

    class Metal(nn.Module, metaclass=MetaClass):
        def call(self, x: Any) -> Any:
            return PF.affine(x, 5)

    assert Net()(nn.Variable((1, 3))).shape == (1, 4)
    metal = Metal()
    assert metal(nn.Variable((1, 3))).shape == (1, 5) and list(metal.get_parameters()) == ["affine/W", "affine/b"]


def test_what_python_functions_get() -> None:
    class Same(nn.function.PythonFunction):
        name = "Same"

        def min_outputs(self) -> int:
            return 1

        def setup_impl(self, inputs: Any, outputs: Any) -> None:
            outputs[0].reset_shape(inputs[0].shape, True)

        def forward_impl(self, inputs: Any, outputs: Any) -> None:
            assert all(isinstance(v, UnsafeVariable) for v in (*inputs, *outputs))
            outputs[0].d = inputs[0].d

    y = Same()(nn.Variable.from_numpy_array([1.0]))
    y.forward()
    assert y.d.tolist() == [1.0]
    members = "d data g grad ndim reset_shape shape size size_from_axis".split()
    assert all(hasattr(UnsafeVariable, name) for name in members)


def test_gradients_by_an_object() -> None:
    x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
    (g,) = Grad()(x**3, [x], grad_outputs=2.0, bind_grad_output=True)
    g.forward()
    assert g.d.tolist() == [6.0, 24.0] == x.g.tolist()


def test_the_end_of_gradients() -> None:
    x = nn.Variable.from_numpy_array([[3.0, 4.0]], need_grad=True)
    y = GradEndFunction()(x)
    assert y.parent.name == "GradEndFunction" and y.shape == (1, 2)
    x.g = 5.0
    y.forward()
    y.backward()
    assert y.d.tolist() == [[1.0, 1.0]]
    assert x.g.tolist() == [[5.0, 5.0]]  # zeros are added


def test_argument_specifications() -> None:
    def f(a: Any, b: Any = 1, *args: Any, c: Any = 2, **kw: Any) -> None: ...

    spec = getargspec(f)
    assert tuple(spec) == (["a", "b"], "args", "kw", (1,))
    assert spec._fields == ("args", "varargs", "keywords", "defaults")
    with pytest.raises(TypeError):
        getargspec(3)  # type: ignore[arg-type]


CONVOLUTION = {"base_axis": 1, "pad": [1, 1], "stride": [1, 1], "dilation": [1, 1], "group": 1, "channel_last": False}


def test_functions_as_messages() -> None:
    f = nnabla_pb2.Function()
    given = {"type": "Convolution", "inputs": ["x", "w"], "outputs": ["y"], "args": CONVOLUTION}
    _create_function_nntxt(f, "conv", given)
    assert (f.name, f.type, list(f.input), list(f.output)) == ("conv", "Convolution", ["x", "w"], ["y"])
    assert list(f.convolution_param.pad.dim) == [1, 1] and f.convolution_param.group == 1
    x, w = (nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=s)) for s in ((1, 2, 4, 4), (3, 2, 3, 3)))
    made = _create_function_instance(nn.get_current_context(), f)
    y, expected = made(x, w), F.convolution(x, w, pad=(1, 1))
    nn.forward_all([y, expected])
    assert np.array_equal(y.d, expected.d)


def test_a_proto_function_as_message() -> None:
    with nn.graph_def.graph(name="net") as g:
        F.leaky_relu(nn.ProtoVariable((2, 3), name="x"), alpha=0.25)
    (found,) = g.net.functions.values()
    f = nnabla_pb2.Function()
    _create_function_nntxt(f, found.name, found)
    assert f == found.proto and f.leaky_relu_param.alpha == 0.25


def test_functions_that_there_are_not() -> None:
    with pytest.raises(ValueError, match="'function': expected a type of NNabla's, got str 'Relu'"):
        given = {"type": "Relu", "inputs": [], "outputs": [], "args": {}}
        _create_function_nntxt(nnabla_pb2.Function(), "f", given)
    for kind in ("Relu", "PythonFunction", "Any", "annotations", ""):
        with pytest.raises(ValueError, match="a function of a type of NNabla's"):
            _create_function_instance(nn.get_current_context(), nnabla_pb2.Function(type=kind))
    with pytest.raises(TypeError, match="'ctx': expected a Context"):
        _create_function_instance(None, nnabla_pb2.Function(type="ReLU"))  # type: ignore[arg-type]
