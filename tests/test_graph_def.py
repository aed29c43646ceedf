"""Networks as descriptions: made by calls with ProtoVariables or of graphs; saved, loaded, changed, made graphs."""

from __future__ import annotations

import gc
import io
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from file_helpers import fresh  # noqa: F401 - a fixture
from nnrs.core.graph_def import FlatModule, ProtoFunction, ProtoGraph, ProtoNetwork, RepeatInfo
from nnrs.core.graph_optimizer import IdentityRemover
from nnrs.utils.nnp_graph import NnpLoader, NnpNetworkPass

GOLDEN = Path(__file__).parent / "golden" / "nnp"


@pytest.fixture(autouse=True)
def no_descriptions():
    nn.graph_def.reset_default_graph()
    yield
    nn.graph_def.reset_default_graph()


def network(x):
    """Convolution, operators, a function of two outputs, and a layer."""
    h = F.relu(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="c1"))
    h = F.max_pooling(h, (2, 2)) * 2.0 + 1
    a, b = F.split(F.reshape(h + F.tanh(h), (h.shape[0], 2, -1)), axis=1)
    return PF.affine(a - b, 5, name="fc")


# What NNabla 1.39 calls the variables, parameters and functions of this network.
VARIABLES = "Convolution_in Convolution_out ReLU_out MaxPooling_out MulScalar_out AddScalar_out Tanh_out Add2_out"
VARIABLES += " Reshape_out Split_out Split_out_1 Sub2_out Affine_out"
FUNCTIONS = "Convolution ReLU MaxPooling MulScalar AddScalar Tanh Add2 Reshape Split Sub2 Affine"
PARAMETERS = ["c1/conv/W", "c1/conv/b", "fc/affine/W", "fc/affine/b"]


def test_calls_are_described():
    y = network(nn.ProtoVariable((4, 3, 8, 8)))
    g = nn.graph_def.get_default_graph()
    n = g.default_graph()
    assert (n.name, n.inputs, n.outputs) == ("model", ["Convolution_in"], ["Affine_out"])
    assert (" ".join(n.variables), " ".join(n.functions), list(n.parameters)) == (VARIABLES, FUNCTIONS, PARAMETERS)
    assert [f.name for f in n.forward_sequence()] == FUNCTIONS.split()
    assert (y.name, y.shape, y.parent, y.required) == ("Affine_out", (4, 5), "Affine", [])
    assert n.functions["MaxPooling"].args["kernel"] == [2, 2] and n.parameters["c1/conv/W"].need_grad
    assert n.functions["ReLU"].inputs == ["Convolution_out"] and n["functions"]["ReLU"]["type"] == "ReLU"
    assert nn.graph_def.get_default_graph_by_variable(y) is n and nn.graph_def.get_default_graph("model") is n
    assert nn.graph_def.get_default_graph(name="other") is None


def test_a_description_makes_the_graph_that_the_calls_make():
    x = nn.Variable.from_numpy_array(np.random.RandomState(0).randn(4, 3, 8, 8))
    wanted = network(x)
    wanted.forward()
    with nn.graph_def.graph(name="net") as g:
        network(nn.ProtoVariable((4, 3, 8, 8), name="image"))
    assert g.net.inputs == ["image"] and g.outputs == ["@net/Affine_out"]
    for y in (g(x), g.net(x), g["net"](x)):
        y.forward()
        np.testing.assert_array_equal(y.d, wanted.d)
    assert g.net.variables["image"].variable_instance == x
    assert g.net.variables["@net/ReLU_out"].variable_instance.shape == (4, 4, 8, 8)
    assert g().shape == (4, 5) and list(g.get_parameters()) == PARAMETERS
    assert nn.graph_def.get_default_graph().networks == {}


def test_modules_name_their_parts():
    class Inner(nn.Module):
        def call(self, x):
            return F.relu(PF.affine(x, 3))

    class Outer(nn.Module):
        def __init__(self):
            self.a, self.b = Inner(), Inner()

        def call(self, x):
            return self.b(self.a(x)) + 1

    outer = Outer()
    y = outer(nn.ProtoVariable((2, 5)))
    n = nn.graph_def.get_default_graph_by_variable(y)
    assert list(n.functions) == [
        "@outer/@a/Affine",
        "@outer/@a/ReLU",
        "@outer/@b/Affine",
        "@outer/@b/ReLU",
        "@outer/AddScalar",
    ]
    assert list(n.parameters) == ["@a/affine/W", "@a/affine/b", "@b/affine/W", "@b/affine/b"]
    outer(nn.ProtoVariable((2, 5)))
    assert list(nn.graph_def.get_default_graph().networks) == ["outer", "outer_1"]


@pytest.mark.parametrize("kind", [".nnp", ".nntxt", ".protobuf"])
def test_saved_and_loaded(tmp_path, kind):
    x = nn.Variable.from_numpy_array(np.random.RandomState(0).randn(4, 3, 8, 8))
    with nn.graph_def.graph(name="net") as g:
        y = network(nn.ProtoVariable((4, 3, 8, 8), name="x"))
    run = {"name": "run", "network": "net", "data": ["x"], "output": {"y": y}}
    g.save(str(tmp_path / f"g{kind}"), include_parameter=True, executors=[run])
    wanted = g(x)
    wanted.forward()
    nn.clear_parameters()
    loaded = nn.graph_def.load(tmp_path / f"g{kind}")
    assert (loaded.inputs, loaded.outputs, list(loaded.executors)) == (["x"], ["y"], ["run"])
    found = loaded(x)
    found.forward()
    np.testing.assert_array_equal(found.d, wanted.d)
    assert loaded(batch_size=7).shape == (7, 5) and nn.get_parameters() == {}
    assert nn.graph_def.load(tmp_path / f"g{kind}", batch_size=3)().shape == (3, 5)
    bare = nn.graph_def.load(tmp_path / f"g{kind}", exclude_parameter=True)
    assert bare.get_parameters() == {} and bare.networks
    only = nn.graph_def.load(tmp_path / f"g{kind}", parameter_only=True)
    assert list(only.get_parameters()) == PARAMETERS and not only.networks
    scope = {}
    nn.graph_def.load([tmp_path / f"g{kind}"], parameter_scope=scope)
    assert list(scope) == ["c1", "fc"]


def test_a_graph_is_described():
    x, t = nn.Variable((4, 3, 8, 8)), nn.Variable((4, 1))
    y = network(x)
    loss = F.mean(F.softmax_cross_entropy(y, t))
    g = nn.graph_def.create_graph_from_variable("net", [loss, y], names={"x": x, "y": y, "loss": loss})
    assert (g.net.inputs, g.net.outputs) == (["x", "@net/SoftmaxCrossEntropy_in"], ["loss"])
    assert list(g.get_parameters()) == PARAMETERS
    assert g.net.parameters["fc/affine/W"].variable_instance == nn.get_parameters()["fc/affine/W"]
    file = io.BytesIO()
    nn.graph_def.save(file, [g.net], variable_batch_size=False)
    assert NnpLoader(file, extension=".nnp").get_network("net").outputs["loss"].shape == ()


def test_functions_and_variables_can_be_changed():
    with nn.graph_def.graph(name="net") as g:
        F.leaky_relu(nn.ProtoVariable((2, 3), name="x"), 0.5)
    f = g.net.functions["@net/LeakyReLU"]
    assert f.args == {"alpha": 0.5, "inplace": False}
    f.proto.leaky_relu_param.alpha = 0.25
    assert f.update_from_proto({}).args["alpha"] == 0.25
    y = g(nn.Variable.from_numpy_array([[-4.0]]))
    y.forward()
    assert y.d == -1
    copy = g.net.clone()
    copy.functions["@net/LeakyReLU"].args["alpha"] = 0.0
    assert f.args["alpha"] == 0.25
    v = copy.variables["x"]
    v.proto.name = "z"
    renames = {}
    v.prepare_renaming(renames)
    v.update_from_proto(None, renames)
    assert renames == {"x": "z"} and v.shape == (2, 3)
    change = NnpNetworkPass()
    change.drop_function("@net/LeakyReLU")
    assert g.net.promote(None) is g.net and not g.net.promote(change).functions
    seen = []
    g.net.execute_on_proto(seen.append)
    assert seen == [f] and isinstance(f, ProtoFunction)


def test_visitors_may_change_the_network():
    with nn.graph_def.graph(name="n") as g:
        h = F.identity(F.relu(nn.ProtoVariable((2, 3), name="x")))
        PF.affine(F.identity(F.identity(h) + 1), 4)
    renamed = {}
    g.n.execute_on_proto(IdentityRemover(renamed))
    assert renamed == {
        "@n/Identity_out": "@n/ReLU_out",
        "@n/Identity_out_1": "@n/ReLU_out",
        "@n/Identity_out_2": "@n/AddScalar_out",
    }
    assert [f.type for f in g.n.forward_sequence()] == ["ReLU", "AddScalar", "Affine"]
    assert list(g.n.variables) == ["x", "@n/ReLU_out", "@n/AddScalar_out", "@n/Affine_out"]
    assert g(nn.Variable((5, 3))).shape == (5, 4)


def test_operators_of_proto_variables():
    x = np.random.RandomState(0).rand(2, 3) + 1
    a, b = nn.ProtoVariable((2, 3), name="a"), nn.ProtoVariable((2, 3), name="b")
    with nn.graph_def.graph() as g:
        z = (a + b - a * b / a**b + 2 - (3 - a) * 2 + 1 / b - 2**a + -b) / 4
        _ = +(z**2)
    y = g(nn.Variable.from_numpy_array(x), nn.Variable.from_numpy_array(x + 1))
    y.forward()
    p, q = x, x + 1
    np.testing.assert_allclose(y.d, ((p + q - p * q / p**q + 2 - (3 - p) * 2 + 1 / q - 2**p - q) / 4) ** 2, 1e-4, 1e-5)


def test_loops_are_expanded():
    g = nn.graph_def.load(GOLDEN / "loops.nntxt")
    n = g.networks["repeat"]
    assert n.repeat_info == {"R": 3} and n.variables["s"].repeat_id == ["R"]
    flat = n.expand_loop_control()
    assert list(flat.parameters) == ["layer[0]/w", "layer[1]/w", "layer[2]/w"] and flat.repeat_info == {}
    assert g.networks["recurrent"](batch_size=2).shape == (2, 3, 4)
    g.expand_loop_control()
    assert g.networks["repeat"].repeat_info == {} and g.networks["repeat"]().shape == (2, 4)
    assert (RepeatInfo("a", 2).id, RepeatInfo("a", 2).times) == ("a", 2)


def test_the_batch_may_be_open_from_the_start():
    """The shapes and the batch's size are those that NNabla 1.39 notes."""
    with nn.graph_def.graph() as g:
        h = PF.convolution(nn.ProtoVariable((-1, 3, 8, 8), name="x"), 4, (3, 3))
        F.softmax_cross_entropy(F.reshape(h, (h.shape[0], 4 * 36)), nn.ProtoVariable((-1, 1), name="t"))
    n = g.networks["model"]
    shapes = [(-1, 3, 8, 8), (-1, 4, 6, 6), (-1, 144), (-1, 1), (-1, 1)]
    assert [v.shape for v in n.variables.values()] == shapes and n.functions["Reshape"].args["shape"] == [-1, 144]
    assert n(batch_size=5).shape == (5, 1)
    message = n.as_proto()
    assert message.batch_size == -1
    assert [tuple(v.shape.dim) for v in message.variable if v.type == "Buffer"] == shapes


def test_a_recorded_graph_has_no_batch_size_yet():
    g = nn.graph_def.create_graph_from_variable("net", PF.affine(nn.Variable((6, 3)), 2))
    assert g.net.batch_size is None and g.net.as_proto().batch_size == 6 and g.net().shape == (6, 2)


def test_names_and_scopes():
    with nn.graph_def.graph_name("first"):
        F.relu(nn.ProtoVariable((2, 3)))
    with nn.graph_def.graph_name("second") as n:
        F.relu(nn.ProtoVariable((2, 3)))
        assert nn.graph_def.current_network() is n
        assert nn.graph_def.current_module().get_path_name() == "@second"
    assert list(nn.graph_def.get_default_graph().networks) == ["first", "second"]
    assert (FlatModule(None).get_path_name(), FlatModule("a").get_path_name()) == ("", "@a")
    scope = {}
    with nn.graph_def.graph(name="net", parameter_scope=scope) as g:
        PF.affine(nn.ProtoVariable((2, 3)), 2)
    assert list(scope) == ["affine"] and g.net.parameters["affine/W"].shape == (3, 2)


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="names of their own"), nn.graph_def.graph():
        F.add2(nn.ProtoVariable((2,), name="x"), nn.ProtoVariable((2,), name="x"))
    with pytest.raises(ValueError, match="affine: argument 'base_axis'"), nn.graph_def.graph():
        PF.affine(nn.ProtoVariable((2, 3)), 2, base_axis=5)
    assert nn.graph_def.get_default_graph().networks == {} and not nn.get_parameters()
    with pytest.raises(ValueError, match="the graph has no network"):
        nn.graph_def.get_default_graph()()
    with pytest.raises(AttributeError, match="no network 'x'"):
        ProtoGraph().x  # noqa: B018 - the access is the test
    with pytest.raises(TypeError, match="a list with a ProtoGraph"):
        nn.graph_def.save(io.BytesIO(), [3])
    with nn.graph_def.graph(name="net") as g:
        y = F.relu(nn.ProtoVariable((2, 3), name="x"))
    with pytest.raises(ValueError, match="one of the networks 'net'"):
        g.save(io.BytesIO(), executors=[{"name": "e", "network": "other"}])
    with pytest.raises(TypeError, match="Variables for the inputs"):
        g(3)
    with pytest.raises(TypeError, match="1 inputs at most"):
        g(nn.Variable((2, 3)), nn.Variable((2, 3)))
    with pytest.raises(ValueError, match="expected an output"):
        nn.graph_def.get_default_graph_by_variable(y)
    n = ProtoNetwork(ProtoGraph(), "lost")
    gc.collect()
    with pytest.raises(ValueError, match="its ProtoGraph is gone"):
        n()
    with pytest.raises(TypeError, match="a tuple of ints"):
        nn.ProtoVariable("ab")


def test_wrong_inputs_of_a_network():
    """Which inputs are missing is said, and nothing is taken for them; what is no argument is none."""
    t, u = nn.Variable((2, 3)), nn.Variable((2, 3))
    network = nn.graph_def.create_graph_from_variable("net", t * 2 + u, names={"t": t, "u": u})
    x = nn.Variable.from_numpy_array(np.ones((2, 3)))
    with pytest.raises(ValueError, match="network 'net': argument 'args': expected 2 inputs, got none for u"):
        network(x)
    with pytest.raises(TypeError, match="network 'net': argument 'u': expected batch_size or ctx"):
        network(x, u=x)
    y = network(x, x)
    y.forward()
    assert (y.d == 3).all()
    with pytest.raises(TypeError, match="create_graph_from_variable: argument 'name'"):
        nn.graph_def.create_graph_from_variable(None, y)
    with pytest.raises(ValueError, match="argument 'variables': expected one Variable at least"):
        nn.graph_def.create_graph_from_variable("net", [])
