"""Single functions of descriptions: called with ProtoVariables, made in a graph, described out of one."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs.core import graph_def
from nnrs.core.graph_def import ProtoFunction, ProtoGraphGenerator, ProtoNetwork, ProtoVariable
from nnrs.utils.load_function import _create_function_instance


@pytest.fixture(autouse=True)
def fresh() -> Any:
    nn.clear_parameters()
    yield
    nn.clear_parameters()
    graph_def.reset_default_graph()


def layers() -> tuple[Any, Any, Any]:
    """A graph: x, a value within, y."""
    x = nn.Variable.from_numpy_array(np.arange(6.0).reshape(2, 3))
    h = PF.affine(x, 4, name="fc")
    return x, h, F.relu(h)


def described(names: Any) -> Any:
    """The description of a graph by a generator; the graph's output."""
    x, h, y = layers()
    params = {v.data: key for key, v in nn.get_parameters(grad_only=False).items()}
    by_name = {name: {"x": x, "h": h, "y": y}[of] for name, of in names.items()}
    with graph_def.graph(name="net") as g, ProtoGraphGenerator(by_name, params) as generator:
        y.visit(generator)
    return g, x, y


def test_a_graph_is_described_as_nnabla_does() -> None:
    g, _, _ = described({"in": "x", "out": "y"})
    network = g.net
    assert list(network.variables) == ["in", "@net/Affine_out", "out"]
    assert list(network.parameters) == ["fc/affine/W", "fc/affine/b"] == list(g.get_parameters())
    assert (network.inputs, network.outputs) == (["in"], ["out"])
    affine, relu = network.forward_sequence()
    assert (affine.name, affine.inputs, affine.args) == (
        "@net/Affine",
        ["in", "fc/affine/W", "fc/affine/b"],
        {"base_axis": 1},
    )
    assert (relu.name, relu.inputs, relu.outputs) == ("@net/ReLU", ["@net/Affine_out"], ["out"])
    assert all(v.variable_instance is None for v in network.variables.values())
    assert g(nn.Variable((5, 3))).shape == (5, 4)


def test_a_sink_is_left_out() -> None:
    x = nn.Variable((2, 3))
    with graph_def.graph(name="net") as g, ProtoGraphGenerator(None, {}) as generator:
        F.sink(F.relu(x), F.tanh(x)).visit(generator)
    assert [f.type for f in g.net.functions.values()] == ["ReLU", "Tanh"] and len(g.net.outputs) == 2


def test_two_variables_of_one_name() -> None:
    x = nn.Variable((2, 3))
    h = F.relu(x)
    y = F.relu(h)
    with pytest.raises(ValueError, match="'names': expected names of their own .* got 'h' twice"):
        with graph_def.graph(name="net"), ProtoGraphGenerator({"h": h}, {}) as generator:
            generator.names[y.data] = "h"
            y.visit(generator)
    with pytest.raises(TypeError, match="'names': expected Variables by name"):
        ProtoGraphGenerator({"x": 3}, {})  # type: ignore[dict-item]


def test_functions_are_made_one_by_one() -> None:
    g, x, y = described({"x": "x", "y": "y"})
    network = g.net
    network.variables["x"].variable_instance = x
    network.execute_on_proto(lambda f: f.graph_call(batch_size=2))
    made = network.variables["y"].variable_instance
    nn.forward_all([made, y])
    assert np.array_equal(made.d, y.d) and made.shape == (2, 4)


def test_an_open_size_becomes_the_batchs() -> None:
    with graph_def.graph(name="net") as g:
        F.reshape(ProtoVariable((2, 6), name="x"), (2, 3, 2))
    (f,) = g.net.functions.values()
    f.args["shape"] = [-1, 3, 2]
    g.net.variables["x"].variable_instance = nn.Variable((5, 6))
    f.graph_call(batch_size=5)
    assert g.net.variables[f.outputs[0]].variable_instance.shape == (5, 3, 2)


def test_several_outputs() -> None:
    with graph_def.graph(name="net") as g:
        F.split(ProtoVariable((2, 3), name="x"), axis=1)
    (f,) = g.net.functions.values()
    g.net.variables["x"].variable_instance = nn.Variable.from_numpy_array(np.arange(6.0).reshape(2, 3))
    f.graph_call()
    made = [g.net.variables[name].variable_instance for name in f.outputs]
    nn.forward_all(made)
    assert [v.d.tolist() for v in made] == [[0, 3], [1, 4], [2, 5]]


def test_what_a_function_needs_to_be_made() -> None:
    g, _, _ = described({"x": "x"})
    f = next(g.net.forward_sequence())
    with pytest.raises(ValueError, match="no Variable as variable_instance of the input 'x'"):
        f.graph_call()
    with pytest.raises(ValueError, match="its network is gone"):
        ProtoFunction(None, "ReLU", {}).graph_call()
    kept = g.net.functions["@net/ReLU"]
    del g
    gc.collect()
    with pytest.raises(ValueError, match="is gone"):
        kept.graph_call()


def test_a_function_is_put_into_the_network() -> None:
    with graph_def.graph(name="two") as g:
        x = ProtoVariable((2, 3), name="x")
        relu = ProtoFunction(None, "ReLU", {"inplace": False})
        y = relu([x], 1)
        z = ProtoFunction(None, "Reshape", {"shape": [-1, 2], "inplace": False})([y], 1)
    assert (y.name, y.shape, z.name, z.shape) == ("@two/ReLU_out", (2, 3), "@two/Reshape_out", (3, 2))
    assert g.two.functions["@two/ReLU"] is relu and relu.inputs == ["x"] and g.two.inputs == ["x"]
    g.two.update_actual_shape_of_reshape()
    assert g.two.functions["@two/Reshape"].args["shape"] == [3, 2]


def test_parameters_and_functions_without_inputs() -> None:
    with graph_def.graph(name="one") as g:
        w = nn.Variable((3, 4))
        y = ProtoFunction(None, "Affine", {"base_axis": 1})([ProtoVariable((2, 3), name="x"), w])
        c = ProtoFunction(None, "Constant", {"val": 2.0, "shape": [2, 4]})()
    assert y.shape == (2, 4) == c.shape
    assert list(g.one.parameters) == ["@one/Affine_1"] and g.one.functions["@one/Constant"].inputs == []


def test_wrong_calls() -> None:
    x = ProtoVariable((2, 3), name="x")
    with graph_def.graph(name="net") as g:
        with pytest.raises(ValueError, match="'f_type': expected NNabla's name of a function, got str 'Relu'"):
            ProtoFunction(None, "Relu", {})([x])
        with pytest.raises(TypeError, match="'inputs': expected ProtoVariables or Variables, got int 3"):
            ProtoFunction(None, "ReLU", {})([3])
        with pytest.raises(TypeError, match="ReLU"):
            ProtoFunction(None, "ReLU", {"slope": 3})([x])
        with pytest.raises(ValueError, match="affine"):
            ProtoFunction(None, "Affine", {"base_axis": 1})([x, nn.Variable((5, 4))])
        F.relu(x)
    assert list(g.net.functions) == ["@net/ReLU"]


@pytest.mark.parametrize("shape", [[-1, -1], [-1, 4], [-1, 0]])
def test_shapes_that_cannot_be(shape: list[int]) -> None:
    with graph_def.graph(name="net") as g:
        F.reshape(ProtoVariable((2, 3), name="x"), (3, 2))
    g.net.functions["@net/Reshape"].args["shape"] = shape
    with pytest.raises(ValueError, match=r"'shape': expected one size of -1 at most, for 6 elements"):
        g.net.update_actual_shape_of_reshape()


def test_functions_of_messages() -> None:
    g, _, _ = described({"x": "x"})
    for f in g.net.functions.values():
        made = ProtoNetwork.create_function_instance(
            nn.get_current_context(), f.proto, g.net, _create_function_instance
        )
        assert (made.name, made.type, made.inputs, made.args) == (f.name, f.type, f.inputs, f.args)
        assert not made._is_loop_control


def test_names_for_parameters() -> None:
    g, _, _ = described({"x": "x"})
    f, v, w = g.net.functions["@net/ReLU"], nn.Variable((2, 2)), nn.Variable((3,))
    g.net.parameters.update({"#1": v, "#2": w})
    f.inputs = ["x", "#1", "#2"]
    assert list(g.net.resolve_function_parameters(f, {v.data: "v"})) == ["#1", "#2"]
    assert f.inputs == ["x", "v", "@net/ReLU_2"]
    assert g.net.parameters["v"].variable_instance is v and g.net.parameters["@net/ReLU_2"].shape == (3,)


def test_changes_count_in_the_next_graph() -> None:
    with graph_def.graph(name="net") as g:
        F.leaky_relu(ProtoVariable((1, 2), name="x"), alpha=0.5)
    f, x = g.net.functions["@net/LeakyReLU"], nn.Variable.from_numpy_array([[-4.0, 4.0]])
    before = g(x)
    f.args["alpha"] = 0.25
    after = g(x)
    nn.forward_all([before, after])
    assert (before.d.tolist(), after.d.tolist()) == ([[-2.0, 4.0]], [[-1.0, 4.0]])
    assert g.net.as_proto().function[0].leaky_relu_param.alpha == 0.25


def test_inputs_with_initial_values_are_shared() -> None:
    with graph_def.graph() as g:
        for name in ("one", "two"):
            with graph_def.graph_name(name):
                F.relu(ProtoVariable((2, 3), name="z"))
    for name in ("one", "two"):
        g.networks[name].variables["z"].initializer = nn.initializer.ConstantInitializer(3)
    y, _ = g.one(), g.two()
    z = g.one.variables["z"].variable_instance
    assert z == g.two.variables["z"].variable_instance == g.global_variables["z"] and z.need_grad
    y.forward()
    assert y.d.tolist() == [[3.0] * 3] * 2
    given = nn.Variable((2, 3))
    g.one(given)
    assert g.one.variables["z"].variable_instance == given and g.global_variables["z"] == z
    g.one.variables["z"].shape = (-1, 3)
    assert g.one(batch_size=5).shape == (5, 3)  # as large as it has to be
