"""NNabla's files: its networks run to its numbers, what nnrs writes says the same; loops and passes."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import nnp_networks
import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
import nnrs.solvers as S
from file_helpers import fresh  # noqa: F401 - a fixture
from nnrs._messages import parse_text
from nnrs.utils.load import load
from nnrs.utils.nnp_graph import NnpLoader, NnpNetworkPass
from nnrs.utils.save import create_proto, save

GOLDEN = Path(__file__).parent / "golden" / "nnp"


def theirs(name):
    """What NNabla wrote, as a message."""
    path = GOLDEN / name
    text = path.read_text() if path.suffix == ".nntxt" else zipfile.ZipFile(path).read("network.nntxt").decode()
    return parse_text("NNablaProtoBuf", text)


def test_nnablas_networks_run_to_nnablas_numbers():
    assert nnp_networks.check(GOLDEN) == {"functions.nnp": 214, "layers-open.nnp": 4, "layers.nnp": 1}


def test_networks_over_all_functions_say_what_nnablas_say():
    ours = create_proto({"networks": [nnp_networks.network(*m) for m in nnp_networks.functions()]}, False, False)
    makers = {name: f for n in ours.network for f in n.function for name in f.output}
    variables = {v.name: v for n in ours.network for v in n.variable}
    compared = 0
    for network in theirs("functions.nnp").network:
        shapes = {v.name: v for v in network.variable}
        for f in network.function:
            for name in f.output:
                if not name.startswith("@"):  # not a part of a function that is several
                    makers[name].name = f.name
                    assert (str(makers[name]), str(variables[name])) == (str(f), str(shapes[name]))
                    compared += 1
    assert compared == 214


def test_all_that_save_takes_is_written_as_nnabla_writes_it():
    made = create_proto(nnp_networks.contents())
    assert str(made) == str(theirs("contents.nntxt"))


@pytest.mark.parametrize(
    ("name", "values"), [("composed", nnp_networks.composed_values), ("composed-open", nnp_networks.open_values)]
)
def test_functions_that_are_several_here(name, values):
    wanted, found = np.load(GOLDEN / f"{name}.npz"), values(GOLDEN / f"{name}.nntxt")
    assert sorted(found) == sorted(wanted)
    for name, value in found.items():
        assert value.shape == wanted[name].shape
        np.testing.assert_allclose(value, wanted[name], 1e-5, 1e-5, err_msg=name)


@pytest.mark.parametrize("kind", ["nnp", "nntxt", "protobuf"])
def test_graph_def_and_all_formats_have_functions_that_are_several_here(tmp_path, kind):
    proto = theirs("composed.nntxt")
    if kind == "nnp":
        with zipfile.ZipFile(tmp_path / "net.nnp", "w") as file:
            file.writestr("network.nntxt", str(proto))
    else:
        data = proto.SerializeToString() if kind == "protobuf" else str(proto).encode()
        (tmp_path / f"net.{kind}").write_bytes(data)
    loaded, described = NnpLoader(tmp_path / f"net.{kind}"), nn.graph_def.load(str(tmp_path / f"net.{kind}"))
    load([str(tmp_path / f"net.{kind}")])
    for name in loaded.get_network_names():
        net, v = loaded.get_network(name), described.networks[name]
        y = v(*[net.inputs[key] for key in v.inputs])
        for x in net.inputs.values():
            x.d = np.random.RandomState(0).rand(*x.shape) + 0.5
        net.outputs["y"].forward()
        y.forward()
        np.testing.assert_allclose(y.d, net.outputs["y"].d, 1e-5, 1e-6)


def test_loops():
    wanted = np.load(GOLDEN / "loops.npz")
    for name, found in nnp_networks.looped(GOLDEN / "loops.nntxt").items():
        if found.dtype.kind == "U":
            assert found.tolist() == wanted[name].tolist()
        else:
            np.testing.assert_allclose(found, wanted[name], 1e-5, 1e-6)


def small():
    """A network of two layers, its input and its output."""
    x = nn.Variable((4, 3))
    y = PF.affine(F.relu(PF.affine(x, 5, name="one")), 2, name="two")
    return x, y, {"networks": [{"name": "net", "batch_size": 4, "outputs": {"y": y}, "names": {"x": x}}]}


@pytest.mark.parametrize("kind", [".nnp", ".nntxt", ".prototxt", ".protobuf"])
def test_a_network_comes_back_in_each_format(tmp_path, kind):
    x, y, contents = small()
    x.d = np.random.RandomState(0).randn(4, 3)
    y.forward()
    save(tmp_path / f"net{kind}", contents, include_params=True)
    nn.clear_parameters()
    net = NnpLoader(tmp_path / f"net{kind}").get_network("net")
    net.inputs["x"].d = x.d
    net.outputs["y"].forward()
    np.testing.assert_array_equal(net.outputs["y"].d, y.d)
    assert list(nn.get_parameters()) == ["one/affine/W", "one/affine/b", "two/affine/W", "two/affine/b"]
    assert set(net.variables) == {"x", "y", "@net/Affine_out", "@net/ReLU_out", *nn.get_parameters()}
    assert net.inputs["x"].name == "x" and NnpLoader(tmp_path / f"net{kind}").get_network_names() == ["net"]


def test_parameters_of_an_archive_as_floats_or_typed(tmp_path):
    _, _, contents = small()
    for kind in (".h5", ".protobuf"):
        save(tmp_path / "net.nnp", contents, parameter_format=kind)
        assert zipfile.ZipFile(tmp_path / "net.nnp").namelist() == [
            "nnp_version.txt",
            "network.nntxt",
            f"parameter{kind}",
        ]
    save(tmp_path / "net.nnp", contents, parameters={"one": nn.Variable((2,))})
    nn.clear_parameters()
    nn.load_parameters(tmp_path / "net.nnp")
    assert [(n, v.shape) for n, v in nn.get_parameters(grad_only=False).items()] == [("one", (2,))]


def test_networks_share_the_loaders_parameters(tmp_path):
    _, _, contents = small()
    save(tmp_path / "net.nnp", contents)
    scope = {}
    loader = NnpLoader(tmp_path / "net.nnp", scope=scope)
    with pytest.raises(KeyError, match="^get_network: argument 'name': expected one of the networks 'net'"):
        loader.get_network("other")
    one, two = loader.get_network("net"), loader.get_network("net", batch_size=1)
    w = one.variables["one/affine/W"]
    with nn.parameter_scope("", scope):
        inner = nn.get_parameters()["one/affine/W"]
    assert all(np.shares_memory(w.d, v.d) for v in (two.variables["one/affine/W"], inner))
    assert (one.outputs["y"].shape, two.outputs["y"].shape) == ((4, 2), (1, 2))


def test_what_the_file_leaves_out_is_initialized(tmp_path):
    text = """network { name: "n"
      variable { name: "x" type: "Buffer" shape { dim: [2, 3] } initializer { type: "Constant" multiplier: 2 } }
      variable { name: "w" type: "Parameter" shape { dim: [3, 4] } initializer { type: "Uniform" multiplier: 0.5 } }
      variable { name: "b" type: "Parameter" shape { dim: [4] } }
      variable { name: "y" type: "Buffer" shape { dim: [2, 4] } }
      function { name: "f" type: "Affine" input: ["x", "w", "b"] output: "y" affine_param { base_axis: 1 } } }"""
    net = NnpLoader(io.StringIO(text), extension=".nntxt").get_network("n")
    assert net.inputs["x"].d.tolist() == [[2, 2, 2]] * 2 and net.inputs["x"].need_grad
    assert 0 < np.abs(net.variables["w"].d).max() <= 0.5 and not net.variables["b"].d.any()
    assert all(p.need_grad for p in nn.get_parameters().values())


def loaded(change, batch_size=2):
    """The network `small`, saved and loaded with a change."""
    _, _, contents = small()
    file = io.BytesIO()
    save(file, contents)
    return NnpLoader(file, extension=".nnp").get_network("net", batch_size, callback=change)


def test_passes_take_out_and_replace():
    change = NnpNetworkPass()
    change.remove_and_rewire("@net/ReLU")
    net = loaded(change)
    assert net.outputs["y"].parent.inputs[0].parent.name == "Affine"
    change = NnpNetworkPass()
    change.use_up_to("@net/ReLU_out")
    assert list(loaded(change).outputs) == ["@net/ReLU_out"]
    change = NnpNetworkPass()
    change.drop_function("@net/Affine_1")
    net = loaded(change)
    assert list(net.outputs) == ["@net/ReLU_out"] and "two/affine/W" not in net.variables
    change, x = NnpNetworkPass(), nn.Variable((7, 3))
    change.set_variable("x", x)
    change.fix_parameters()
    net = loaded(change)
    assert net.inputs["x"] == x and net.outputs["y"].shape == (7, 2)
    assert not any(net.variables[name].need_grad for name in nn.get_parameters(grad_only=False))
    assert not net.outputs["y"].need_grad and not net.outputs["y"].parent.need_grad  # as NNabla 1.39, without a run


def test_a_pass_fixes_the_parameters_of_its_own_network():
    """A fixed teacher and a student of one file; the scope has the flags of the network made last, as in NNabla."""
    _, _, contents = small()
    file = io.BytesIO()
    save(file, contents)
    nn.clear_parameters()
    loader, fix = NnpLoader(file, extension=".nnp"), NnpNetworkPass()
    fix.fix_parameters()

    def flags(net):
        return {net.variables[name].need_grad for name in nn.get_parameters(grad_only=False)}

    teacher = loader.get_network("net", 2, callback=fix)
    assert flags(teacher) == {False} and not nn.get_parameters()
    student = loader.get_network("net", 2)
    assert (flags(teacher), flags(student)) == ({False}, {True}) and len(nn.get_parameters()) == 4
    again = loader.get_network("net", 2, callback=fix)
    assert (flags(student), flags(again)) == ({True}, {False}) and not nn.get_parameters()
    for name, v in student.variables.items():
        if name in nn.get_parameters(grad_only=False):
            v.d = 7
            assert (teacher.variables[name].d == 7).all(), name
    teacher.inputs["x"].d = student.inputs["x"].d = 1
    loss = F.sum(student.outputs["y"] - teacher.outputs["y"])
    loss.forward()
    loss.backward()
    assert any(v.g.any() for v in student.variables.values() if v.parent is None and v.need_grad)


def test_names_go_depth_first_as_nnablas():
    """Of two branches the first one's functions have the first numbers (NNabla 1.39, asked)."""
    x = nn.Variable((2, 3, 8, 8))
    a = F.relu(PF.convolution(x, 4, (3, 3), pad=(1, 1), name="a1"))
    a = PF.convolution(a, 5, (3, 3), pad=(1, 1), name="a2")
    y = F.concatenate(a, PF.convolution(x, 6, (1, 1), name="b1"), axis=1)
    file = io.BytesIO()
    save(file, {"networks": [{"name": "n", "batch_size": 2, "outputs": {"y": y}, "names": {"x": x}}]})
    for name, maps in (("@n/Convolution_out", 4), ("@n/Convolution_out_1", 5)):
        change = NnpNetworkPass()
        change.use_up_to(name)
        net = NnpLoader(file, extension=".nnp").get_network("n", 1, callback=change)
        assert name in net.outputs and net.variables[name].shape[1] == maps
    seen = []
    y.visit(lambda f: seen.append(f.outputs[0].shape[1]))
    assert seen == [4, 4, 5, 6, 11]


def test_passes_change_arguments(capsys):
    x = nn.Variable((2, 3, 8, 8))
    h = PF.batch_normalization(PF.convolution(x, 4, (3, 3), name="c"), name="bn")
    y = F.average_pooling(h, (2, 2))
    file = io.BytesIO()
    save(file, {"networks": [{"name": "net", "batch_size": 2, "outputs": {"y": y}, "names": {"x": x}}]})
    change = NnpNetworkPass(verbose=1)
    change.set_batch_normalization_batch_stat_all(False)
    change.force_average_pooling_global("AveragePooling", by_type=True)
    change.check_average_pooling_global("@net/AveragePooling")
    seen = []

    @change.on_function_pass_by_type("Convolution")
    def look(f, variables, scope):
        seen.append((f.name, [v.name for v in f.inputs], list(f.outputs[0].referrers), f.outputs[0].parent is f))

    net = NnpLoader(file, extension=".nnp").get_network("net", callback=change)
    assert net.outputs["y"].shape == (2, 4, 1, 1)
    assert net.outputs["y"].parent.inputs[0].parent.arguments["batch_stat"] is False
    assert seen == [("@net/Convolution", ["x", "c/conv/W", "c/conv/b"], ["@net/BatchNormalization"], True)]
    assert "gets the kernel [6, 6]" in capsys.readouterr().out
    change = NnpNetworkPass()
    change.check_average_pooling_global("@net/AveragePooling")
    with pytest.raises(ValueError, match="force_average_pooling_global makes it so"):
        NnpLoader(file, extension=".nnp").get_network("net", callback=change)


X = np.array([[0, 1, 2], [3, 0, 5]], np.float32)
MASK = np.array([[1, 0, 1], [0, 1, 1]], np.float32)


@pytest.mark.parametrize(
    "build",
    [
        lambda x, m, n: [F.nonzero(x)],
        lambda x, m, n: [F.bool_gather(x, m)],
        lambda x, m, n: [F.bool_scatter(F.bool_gather(x, m), m)],
        lambda x, m, n: F.unique(x, with_index=True),
        lambda x, m, n: F.pack_padded_sequence(F.reshape(x, (2, 3, 1)), n, batch_first=True),
        lambda x, m, n: [F.fused_batch_normalization(x, *[F.constant(1, (1, 3)) for _ in range(4)])],
    ],
)
def test_sizes_that_follow_from_data_are_those_of_the_file(build):
    given = {"x": X, "m": MASK, "n": np.array([3, 2])}
    inputs = {name: nn.Variable.from_numpy_array(v) for name, v in given.items()}
    outputs = dict(zip("abc", build(*inputs.values()), strict=False))
    file = io.BytesIO()
    save(file, {"networks": [{"name": "n", "batch_size": 1, "outputs": outputs, "names": inputs}]}, False, False)
    net = NnpLoader(file, extension=".nnp").get_network("n")
    for name, v in net.inputs.items():
        v.d = given[name]
    for name, y in outputs.items():
        y.forward()
        net.outputs[name].forward()
        np.testing.assert_array_equal(net.outputs[name].d, y.d)


def test_states_of_solvers_in_files(tmp_path):
    contents = nnp_networks.contents()
    loss = contents["networks"][0]["outputs"]["loss"]
    loss.forward()
    for o in contents["optimizers"]:
        o["solver"].zero_grad()
    loss.backward()
    contents["optimizers"][0]["solver"].update()
    proto = create_proto(contents, save_solver_in_proto=True)
    assert proto.optimizer[0].solver.states["one/affine/W"].t == 1
    save(tmp_path / "t.nnp", contents, include_solver_state=True, solver_state_format=".protobuf")
    names = zipfile.ZipFile(tmp_path / "t.nnp").namelist()
    assert names[-1] == "optimizer.protobuf.optimizer"
    pytest.importorskip("h5py")
    save(tmp_path / "t.nnp", contents, include_solver_state=True)
    names = zipfile.ZipFile(tmp_path / "t.nnp").namelist()
    assert names[3:] == ["adam_Adam_optimizer.h5.optimizer", "momentum_Momentum_optimizer.h5.optimizer"]


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda c: c["networks"][0].pop("names"), ValueError, "expected the key 'names'"),
        (lambda c: c["networks"][0].update(outputs={"y": 3}), TypeError, r"'y'\]': expected a Variable, got int 3"),
        (lambda c: c.update(executors=[{"name": "e", "network": "no"}]), ValueError, "one of the networks 'net'"),
        (
            lambda c: c.update(executors=[{"name": "e", "network": "net", "data": ["q"]}]),
            ValueError,
            "of the network 'net'",
        ),
        (lambda c: c.update(monitors=[{"name": "m", "network": "net", "dataset": "d"}]), ValueError, "datasets none"),
        (lambda c: c.update(networks=[3]), TypeError, "a list of dicts"),
    ],
)
def test_contents_that_do_not_fit(tmp_path, change, error, text):
    _, _, contents = small()
    change(contents)
    with pytest.raises(error, match=text) as e:
        save(tmp_path / "net.nnp", contents)
    assert isinstance(e.value, nn.Error) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [".nnp", ".nntxt", ".protobuf"])
def test_outputs_that_no_function_of_the_file_makes(tmp_path, kind):
    """A file has no sinks: what one makes is no variable of the network, and a leaf alone is none."""
    x = nn.Variable((4, 6))
    path, executor = tmp_path / f"net{kind}", {"name": "run", "network": "net", "data": ["x"], "output": ["y"]}

    def contents(y, *executors):
        net = {"name": "net", "batch_size": 4, "outputs": {"y": y}, "names": {"x": x}}
        return {"networks": [net], "executors": list(executors)}

    both = F.sink(F.exp(x), F.sin(x))
    with pytest.raises(
        ValueError, match=r"variables of the network 'net' 'x', '@net/Exp_out', '@net/Sin_out', got str 'y'"
    ):
        save(path, contents(both, executor))
    for executors in ([], [executor]):
        with pytest.raises(ValueError, match=r"\['outputs'\]': expected a Variable that a function makes, got none"):
            save(path, contents(x, *executors))
    assert not list(tmp_path.iterdir())
    save(path, contents(both, {**executor, "output": ["@net/Exp_out"]}))
    assert list(load(path).executors["run"].output_assign.values()) == [["", "@net/Exp_out"]]


def test_arguments_of_save_that_do_not_fit(tmp_path):
    _, _, contents = small()
    for more in ({"parameter_format": ".npz"}, {"include_solver_state": True}, {"solver_state_format": 3}):
        with pytest.raises(ValueError, match="save: argument"):
            save(tmp_path / "net.nnp", contents, **more)
    with pytest.raises(ValueError, match="a file of kind"):
        save(tmp_path / "net.h5", contents)
    x = nn.Variable((6, 4))
    y = F.reshape(PF.affine(x, 4), (8, 3))
    contents = {"networks": [{"name": "net", "batch_size": 6, "outputs": {"y": y}, "names": {"x": x}}]}
    with pytest.raises(ValueError, match="begin with the batch's size 6"):
        save(tmp_path / "net.nnp", contents)
    save(tmp_path / "net", contents, variable_batch_size=False)
    assert [p.name for p in tmp_path.iterdir()] == ["net"] and zipfile.is_zipfile(tmp_path / "net")


def test_user_code_cannot_be_saved():
    from cube_function import Cube

    x = nn.Variable((2, 3))
    contents = {"networks": [{"name": "n", "batch_size": 2, "outputs": {"y": Cube()(x)}, "names": {"x": x}}]}
    with pytest.raises(RuntimeError, match="user code, which a file cannot hold"):
        create_proto(contents)


def test_networks_that_cannot_be_asked_for(tmp_path):
    _, _, contents = small()
    save(tmp_path / "net.nnp", contents)
    loader = NnpLoader(tmp_path / "net.nnp")
    with pytest.raises(ValueError, match="one of the networks 'net', got str 'other'"):
        loader.get_network("other")
    with pytest.raises(TypeError, match="argument 'name': expected one of the networks 'net', got list") as e:
        loader.get_network(["net"])
    assert isinstance(e.value, nn.Error)
    for batch_size, error in ((0, ValueError), ("a", TypeError), (2**70, (ValueError, OverflowError))):
        with pytest.raises(error):
            loader.get_network("net", batch_size=batch_size)
    with pytest.raises(TypeError, match="a NnpNetworkPass"):
        loader.get_network("net", callback=3)
    nn.parameter.set_parameter("one/affine/W", nn.Variable((1,)))
    assert loader.get_network("net").variables["one/affine/W"].shape == (3, 5)


def types(contents):
    return [f.type for n in create_proto(contents, False, False).network for f in n.function]


def test_matrix_products_and_axes_are_written_so_that_nnabla_loads_them(tmp_path):
    """NNabla 1.39 has loaded such a file, to the same numbers."""
    a, b, c = (nn.Variable.from_numpy_array(np.random.RandomState(i).randn(*s)) for i, s in enumerate(SIZES))
    outputs = {
        "einsum": F.einsum(a, b, equation="ij,jk->ik"),
        "transposed": F.batch_matmul(b, a, True, True),
        "many": F.batch_matmul(a, c),
        "tensor": F.tensor_normalization(c, (-1, 0), nn.Variable((5, 1, 4)), nn.Variable((5, 1, 4))),
    }
    nn.forward_all(list(outputs.values()))
    networks = [
        {"name": k, "batch_size": 1, "outputs": {k: y}, "names": {"a": a, "b": b, "c": c}} for k, y in outputs.items()
    ]
    contents = {"networks": networks}
    found = ["Einsum", "Transpose", "Transpose", "Affine", "Reshape", "BatchMatmul", "TensorNormalization"]
    assert types(contents) == found
    save(tmp_path / "net.nntxt", contents, variable_batch_size=False)
    assert "axes: 2" in (tmp_path / "net.nntxt").read_text()
    loader = NnpLoader(tmp_path / "net.nntxt")
    for name in ("einsum", "transposed", "many"):
        net = loader.get_network(name)
        for k, v in (("a", a), ("b", b), ("c", c)):
            if k in net.inputs:
                net.inputs[k].d = v.d
        net.outputs[name].forward()
        np.testing.assert_allclose(net.outputs[name].d, outputs[name].d, rtol=1e-5, atol=1e-6)


SIZES = ((2, 3), (3, 4), (5, 3, 4))


def test_outputs_that_nnabla_has_not_are_not_written():
    w, u = nn.Variable((3, 4)), nn.Variable((3,))
    contents = {
        "networks": [{"name": "n", "batch_size": 1, "outputs": {"y": F.spectral_norm(w, u)}, "names": {"w": w}}]
    }
    (function,) = create_proto(contents, False, False).network[0].function
    assert list(function.output) == ["y"]


def test_a_misspelt_key_of_contents_is_an_error_and_leaves_the_file(tmp_path):
    from nnrs.utils.save import save

    path = tmp_path / "net.nnp"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=r"contents.*'networks'.*'network'"):
        save(str(path), {"network": []})
    assert path.read_bytes() == b"old"


def test_a_batch_size_that_a_network_cannot_take_is_told(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr("nnrs.utils.nnp_graph.logger.warning", lambda text, *values: told.append(text % values))
    x = nn.Variable((4, 3))
    net = {"name": "n", "batch_size": 4, "outputs": {"y": PF.affine(x, 2)}, "names": {"x": x}}
    for is_open, size in ((True, 2), (False, 4)):
        save(str(tmp_path / "n.nnp"), {"networks": [net]}, variable_batch_size=is_open)
        network = NnpLoader(str(tmp_path / "n.nnp")).get_network("n", batch_size=2)
        assert network.outputs["y"].shape == (size, 2)
    assert len(told) == 1 and "batch_size=2 is ignored: 'n' was saved for 4 alone" in told[0]


def test_parts_of_a_file_are_chosen_alike_for_each_kind(tmp_path):
    x = nn.Variable((4, 3))
    net = {"name": "n", "batch_size": 4, "outputs": {"y": PF.affine(x, 2)}, "names": {"x": x}}
    run = {"name": "run", "network": "n", "data": ["x"], "output": ["y"], "need_back_propagation": True}
    weights = nn.get_parameters()["affine/W"].d.copy()
    for kind in (".nnp", ".nntxt", ".protobuf"):
        save(str(tmp_path / f"n{kind}"), {"networks": [net], "executors": [run]}, include_params=True)
    for kind in (".nnp", ".nntxt", ".protobuf"):
        nn.clear_parameters()
        assert not load(str(tmp_path / f"n{kind}"), parameter_only=True).networks
        np.testing.assert_array_equal(nn.get_parameters()["affine/W"].d, weights)
        nn.clear_parameters()
        info = load(str(tmp_path / f"n{kind}"), exclude_parameter=True)
        assert info.executors["run"].need_back_propagation and list(info.networks) == ["n"]
        assert not np.array_equal(nn.get_parameters()["affine/W"].d, weights)


def test_a_function_of_a_loop_keeps_its_arguments():
    text = 'network { function { repeat_param { repeat_id: "R" } affine_param { base_axis: 2 } } }'
    f = parse_text("NNablaProtoBuf", text).network[0].function[0]
    assert f.repeat_param.repeat_id == "R" and f.affine_param.base_axis == 2


def test_a_loss_that_nothing_makes_is_named(tmp_path):
    loss = F.mean(PF.affine(nn.Variable((2, 3)), 2))
    solver = S.Sgd()
    solver.set_parameters(nn.get_parameters())
    optimizer = {"name": "o", "solver": solver, "network": "n", "dataset": "d", "loss_variables": ["loss"]}
    optimizer |= {"update_interval": 1, "weight_decay": 0, "lr_decay": 1, "lr_decay_interval": 1, "data_variables": {}}
    network = {"name": "n", "batch_size": 2, "outputs": {"loss": loss}, "names": {}}
    made = create_proto({"networks": [network], "optimizers": [optimizer]}, True)
    made.optimizer[0].ClearField("dataset_name")
    made.network[0].function[-1].ClearField("output")
    (tmp_path / "m.nntxt").write_text(str(made))
    nn.clear_parameters()
    with pytest.raises(nn.Error, match="load: no function of the network makes the variable 'loss'"):
        load([str(tmp_path / "m.nntxt")])
