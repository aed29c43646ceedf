"""`nnrs.utils.load`: networks of files linked with their executors, monitors and optimizers."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest

import nnp_networks
import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from file_helpers import fresh  # noqa: F401 - a fixture
from nnrs._errors import UnsupportedError
from nnrs.parameter import get_current_parameter_scope
from nnrs.utils.load import base_load, load
from nnrs.utils.nnp_graph import NnpLoader
from nnrs.utils.save import save
from signal_helpers import Late, on_a_thread, raising_at
from thread_helpers import parallel


@pytest.fixture(name="schedulers", autouse=True)
def schedulers_of_our_own(monkeypatch):
    """Stand-ins for the schedulers of learning rates, which say what they were made of."""
    kinds = ("Polynomial", "Cosine", "Exponential", "Step", "LinearWarmup")
    module = types.ModuleType("nnrs.utils.learning_rate_scheduler")
    for kind in kinds:
        setattr(module, f"{kind}Scheduler", lambda *args, kind=kind: (kind, *args))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(nn.utils, "learning_rate_scheduler", module, raising=False)


@pytest.fixture(autouse=True)
def the_context_that_was_there():
    """A file's context becomes the default one."""
    before = nn.get_current_context()
    yield
    nn.set_default_context(before)


def written(tmp_path, **more):
    """All that `save` takes, in a file; without what is trained where that is not asked for."""
    contents = nnp_networks.contents()
    save(tmp_path / "all.nnp", contents, **more)
    nn.clear_parameters()
    return tmp_path / "all.nnp"


def test_executors_are_linked(tmp_path):
    info = load(str(written(tmp_path)), batch_size=5)
    run = info.executors["run"]
    assert [(v.name, v.variable_instance.shape, data) for v, data in run.dataset_assign.items()] == [
        ("x", (5, 3), "input")
    ]
    assert [(v.name, kind) for v, kind in run.output_assign.items()] == [("y", ["", "y"])]
    assert list(run.parameters.values()) == list(nn.get_parameters(grad_only=False))
    run.forward_target.forward()
    (y,) = (v.variable_instance for v in run.output_assign)
    assert y.shape == (5, 2) and run.network is info.networks["runtime"] and run.num_evaluations == 1
    both = info.executors["all"]
    assert both.need_back_propagation and both.num_evaluations == 2 and both.loss_variables == []


def test_networks_train_what_others_have_and_do_not_train(tmp_path):
    """Two networks share parameters, of which each optimizer has some: what one leaves as it is, the other trains."""
    x, z = nn.Variable((4, 3)), nn.Variable((4, 2))

    def made(name, v):
        with nn.parameter_scope(name):
            return F.tanh(PF.affine(v, 3))

    losses = {
        "G": F.mean(made("critic", made("maker", z))),
        "D": F.mean(made("critic", x) * made("critic", made("maker", z))),
    }
    trained = {"G": "maker", "D": "critic"}
    contents: dict = {"networks": [], "optimizers": [], "datasets": []}
    for name, loss in losses.items():
        given = {"z": z} if name == "G" else {"x": x, "z": z}
        contents["networks"].append({"name": name, "batch_size": 4, "outputs": {"loss" + name: loss}, "names": given})
        solver = nn.solvers.Sgd(0.5)
        solver.set_parameters({k: v for k, v in nn.get_parameters().items() if k.startswith(trained[name])})
        rule = {
            "name": name,
            "network": name,
            "solver": solver,
            "dataset": "d",
            "update_interval": 1,
            "weight_decay": 0,
        }
        rule |= {"lr_decay": 1, "lr_decay_interval": 1, "loss_variables": ["loss" + name], "data_variables": {}}
        contents["optimizers"].append(rule)
    save(tmp_path / "both.nnp", contents)
    nn.clear_parameters()
    info = load(tmp_path / "both.nnp", prepare_data_iterator=False)
    parameters = nn.get_parameters(grad_only=False)
    assert list(nn.get_parameters()) == list(parameters)
    for name, network in info.networks.items():
        for key, p in network.parameters.items():
            assert p.variable_instance.need_grad == key.startswith(trained[name])
            assert p.variable_instance.data == parameters[key].data
    with pytest.MonkeyPatch.context() as patch:  # one of the file's networks, of which a script fixes a part
        patch.setattr(info.networks["D"].parameters["critic/affine/W"], "need_grad", False)
        info.networks["D"]()
        fixed = {k: p.variable_instance.need_grad for k, p in info.networks["D"].parameters.items()}
        assert fixed == {k: k != "critic/affine/W" for k in parameters}
    for name, v in parameters.items():
        v.need_grad = name.startswith("critic")
    nn.save_parameters(tmp_path / "frozen.h5")
    nn.clear_parameters()
    info = load([tmp_path / "both.nnp", tmp_path / "frozen.h5"], prepare_data_iterator=False)
    parameters = nn.get_parameters(grad_only=False)
    assert list(nn.get_parameters()) == list(parameters)  # an optimizer trains them, whatever they were
    for name, optimizer in info.optimizers.items():
        for v in info.networks[name].variables.values():
            if v.variable_instance is not None and v.variable_instance.parent is None:
                v.variable_instance.d = 0.5
        before = {key: v.d.copy() for key, v in parameters.items()}
        optimizer.target.forward()
        optimizer.solver.zero_grad()
        optimizer.target.backward()
        optimizer.solver.update()
        moved = {key for key, v in parameters.items() if (v.d != before[key]).any()}
        assert moved == {key for key in parameters if key.startswith(trained[name])}


def test_optimizers_are_linked(tmp_path):
    info = load([written(tmp_path)])
    adam, momentum = info.optimizers["adam"], info.optimizers["momentum"]
    settings = (adam.solver.info["alpha"], momentum.solver.info["momentum"])
    assert adam.solver.name == "Adam" and settings == pytest.approx((0.01, 0.8))
    assert adam.scheduler == ("Exponential", pytest.approx(0.01), pytest.approx(0.9), 2) and adam.weight_decay == 0.5
    assert list(adam.parameters) == sorted(nn.get_parameters(grad_only=False))
    assert list(momentum.parameters) == ["one/affine/W", "one/affine/b"]
    assert [(v.name, data) for v, data in adam.dataset_assign.items()] == [("x", "x"), ("t", "y")]
    assert [(v.name, type(g).__name__) for v, g in momentum.generator_assign.items()] == [("t", "ConstantInitializer")]
    assert list(momentum.data_iterators) == ["train", "valid"] and adam.target.shape == ()
    assert info.monitors["loss"].monitor_variables[0].name == "loss" and info.training_config.max_epoch == 3
    assert info.datasets["valid"].uri == "data.csv" and not info.datasets["valid"].normalize
    assert base_load([tmp_path / "all.nnp"], None).datasets["valid"].data_iterator is not None


@pytest.mark.parametrize("kind", [".protobuf", ".h5"])
def test_states_of_solvers_come_back(tmp_path, kind, monkeypatch):
    if kind == ".h5":
        pytest.importorskip("h5py")
    contents = nnp_networks.contents()
    loss = contents["networks"][0]["outputs"]["loss"]
    solver = contents["optimizers"][0]["solver"]
    contents["optimizers"] = contents["optimizers"][:1]
    for v in contents["networks"][0]["names"].values():
        v.d = 1
    for _ in range(2):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
    save(tmp_path / "all.nnp", contents, include_solver_state=True, solver_state_format=kind)
    wanted = {name: (s.t, s.pstate["mean"].d.copy()) for name, s in solver.get_states().items()}
    nn.clear_parameters()
    monkeypatch.setattr("tempfile.mkdtemp", None)  # also where no temporary file can be made
    found = load(tmp_path / "all.nnp").optimizers["adam"].solver.get_states()
    for name, (t, mean) in wanted.items():
        assert found[name].t == t == 2
        np.testing.assert_array_equal(found[name].pstate["mean"].d, mean)


@pytest.mark.parametrize(
    ("change", "scheduler"),
    [
        ({"lr_scheduler_type": "Cosine", "cosine": {"max_iter": 9}}, ("Cosine", 9)),
        ({"lr_scheduler_type": "Step", "step": {"gamma": 0.5, "iter_steps": [3, 4]}}, ("Step", 0.5, [3, 4])),
        (
            {"lr_scheduler_type": "Exponential", "exponential": {"gamma": 0.5, "iter_interval": 3}},
            ("Exponential", 0.5, 3),
        ),
        ({"lr_scheduler_type": "Polynomial", "polynomial": {"max_iter": 9, "power": 2}}, ("Polynomial", 9, 2)),
    ],
)
def test_schedulers(tmp_path, change, scheduler):
    from nnrs.utils.save import create_proto

    proto = create_proto(nnp_networks.contents(), include_params=True)
    solver = proto.optimizer[0].solver
    for name, value in change.items():
        if isinstance(value, dict):
            settings = getattr(solver, f"{name}_scheduler_param")
            settings.CopyFrom(type(settings)(**value))
        else:
            setattr(solver, name, value)
    (tmp_path / "all.protobuf").write_bytes(proto.SerializeToString())
    found = load(tmp_path / "all.protobuf").optimizers["adam"].scheduler
    assert (found[0], *found[2:]) == scheduler
    solver.lr_scheduler_type = "Custom"
    (tmp_path / "all.protobuf").write_bytes(proto.SerializeToString())
    with pytest.raises(ValueError, match="Polynomial, Cosine, Exponential or Step"):
        load(tmp_path / "all.protobuf")


def test_names_that_are_not_there(tmp_path):
    text = "network { name: 'n' } executor { name: 'e' network_name: 'n' data_variable { variable_name: 'x' } }"
    cases = {
        "network_name: 'm'": "one of the networks 'n', got 'm'",
        "network_name: 'n'": "variables of the network 'n', which the file lacks, got 'x'",
    }
    for network, says in cases.items():
        (tmp_path / "a.nntxt").write_text(text.replace("network_name: 'n'", network))
        with pytest.raises(ValueError, match=says):
            load(tmp_path / "a.nntxt")
    assert not base_load(tmp_path / "a.nntxt", parameter_only=True).executors


def test_contexts_of_files(tmp_path):
    head = "global_config {{ default_context {{ {0} array_class: 'CpuCachedArray' device_id: '0' }} }}"
    old, new = "backend: 'cpu' compute_backend: 'default'", "backends: ['cudnn:float', 'cpu:float']"
    for backends in ("backends: ['cpu:float']", old, new):
        (tmp_path / "a.nntxt").write_text(head.format(backends))
        assert load(tmp_path / "a.nntxt").default_context == nn.get_current_context()
    assert load(tmp_path / "a.nntxt", context="cpu").default_context.backend[0].startswith("cpu")


LOOPS = Path(__file__).parent / "golden" / "nnp" / "loops.nntxt"
RUN = """
executor {
  name: "run" network_name: "repeat"
  data_variable { variable_name: "x" data_name: "x" }
  output_variable { variable_name: "t_R[2]" data_name: "t" }
  output_variable { variable_name: "s_R[1]" data_name: "s" }
}
"""


def test_loops_are_written_out_with_nnablas_names(tmp_path):
    """The variables and functions are those that NNabla 1.39's `load` gives."""
    (tmp_path / "loops.nntxt").write_text(LOOPS.read_text() + RUN)
    info = load(str(tmp_path / "loops.nntxt"), prepare_data_iterator=False, batch_size=2)
    repeat, recurrent = info.networks["repeat"], info.networks["recurrent"]
    assert list(repeat.variables) == ["x", "m_R[0]", "m_R[1]", "m_R[2]", "t_R[0]", "t_R[1]", "y"]
    assert list(repeat.parameters) == ["layer[0]/w", "layer[1]/w", "layer[2]/w"]
    assert [(f.name, f.type, f.inputs, f.outputs) for f in repeat.functions.values()][4:] == [
        ("tanh_R[1]", "Tanh", ["m_R[1]"], ["t_R[1]"]),
        ("tanh_R[2]", "Tanh", ["m_R[2]"], ["y"]),
    ]
    steps = [f"{name}_T[{i}]" for name in ("in", "sum", "h") for i in range(3)]
    assert list(recurrent.variables) == ["x", "h0", *steps, "y", *(f"scaled_T[{i}]" for i in range(3))]
    assert recurrent.functions["scale_T[1]"].inputs == ["h_T[0]", "w"] and "split" in recurrent.functions
    run = info.executors["run"]
    assert [v.name for v in run.output_assign] == ["y", "t_R[0]"]
    x = next(iter(run.dataset_assign)).variable_instance
    x.d = np.full((2, 4), 0.5)
    run.forward_target.forward()
    w = [nn.get_parameters(grad_only=False)[f"layer[{i}]/w"].d for i in range(3)]
    y, t0 = (v.variable_instance.d for v in run.output_assign)
    assert np.allclose(t0, np.tanh(0.5 * w[0])) and np.allclose(y, np.tanh(np.tanh(t0 * w[1]) * w[2]), atol=1e-6)


BROKEN = {
    "an argument": ("base_axis: 1", "base_axis: 9"),
    "a type": ('type: "Affine"', 'type: "Zork"'),
    "an input less": ('input: "x"', ""),
    "an executor of nothing": ('network_name: "net"', 'network_name: "no"'),
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("there", [True, False])
def test_what_cannot_be_made_changes_nothing(tmp_path, what, there):
    x = nn.Variable((2, 3))
    y = PF.affine(x, 4)
    weight = nn.get_parameters()["affine/W"]
    weight.d = 7
    network = {"name": "net", "batch_size": 2, "outputs": {"y": y}, "names": {"x": x}}
    contents = {"networks": [network], "executors": [{"name": "run", "network": "net"}]}
    save(tmp_path / "a.nntxt", contents, include_params=True)
    text = (tmp_path / "a.nntxt").read_text()
    old, new = BROKEN[what]
    assert old in text
    (tmp_path / "b.nntxt").write_text(text.replace(old, new))
    weight.d, weight.need_grad = 1, False
    if not there:
        nn.clear_parameters()
    before = set(nn.get_parameters(grad_only=False))
    with pytest.raises(ValueError, match="."):
        load([tmp_path / "b.nntxt"])
    assert set(nn.get_parameters(grad_only=False)) == before
    assert (weight.d == 1).all() and not weight.need_grad
    load([tmp_path / "a.nntxt"])
    assert (nn.get_parameters()["affine/W"].d == 7).all()


@pytest.mark.parametrize("name", ["", "first/affine/W/W"])
def test_a_network_whose_parameters_have_no_place_changes_nothing(tmp_path, name):
    """Neither the current scope nor the loader's has some of them."""
    x = nn.Variable((2, 3))
    y = PF.affine(PF.affine(x, 4, name="first"), 4, name="last")
    save(tmp_path / "a.nntxt", {"networks": [{"name": "net", "batch_size": 2, "outputs": {"y": y}, "names": {"x": x}}]})
    text = (tmp_path / "a.nntxt").read_text()
    assert '"last/affine/W"' in text
    (tmp_path / "a.nntxt").write_text(text.replace('"last/affine/W"', f'"{name}"'))
    nn.clear_parameters()
    weight = nn.parameter.get_parameter_or_create("first/affine/W", (3, 4))
    scope = {}
    loader = NnpLoader(tmp_path / "a.nntxt", scope=scope)
    with pytest.raises(ValueError, match="set_parameter: "):
        loader.get_network("net")
    assert not scope and list(nn.get_parameters(grad_only=False)) == ["first/affine/W"]
    weight.d = 5
    assert (nn.get_parameters()["first/affine/W"].d == 5).all()


def saved_layer(path):
    """A file of a layer with its parameters; the scope has its weight, of sevens, and no bias."""
    y = PF.affine(nn.Variable((2, 3)), 4)
    network = {"name": "n", "batch_size": 2, "outputs": {"y": y}, "names": {}}
    save(path, {"networks": [network]}, include_params=True)
    nn.parameter.pop_parameter("affine/b")
    weight = nn.get_parameters()["affine/W"]
    weight.d = 7
    return weight


def in_the_middle(monkeypatch, call):
    """Let another thread call `call` when a load has made its networks."""
    linked = nn.utils.load.linked
    monkeypatch.setattr("nnrs.utils.load.linked", lambda info: [linked(info), parallel(call)][0])


def test_a_load_that_fails_leaves_what_others_do_meanwhile(tmp_path, monkeypatch):
    """It writes nothing before it has made all: what others write, make, take and remove stays."""
    weight, others, values = saved_layer(tmp_path / "a.nntxt"), nn.Variable((4,), need_grad=True), {}

    def meanwhile(*args):
        values["loaded"] = weight.d.copy()
        values["names"] = list(nn.get_parameters(grad_only=False))
        weight.d, weight.need_grad = 9, False
        nn.parameter.get_parameter_or_create("affine/c", (1,))
        nn.parameter.set_parameter("affine/b", others)
        nn.parameter.pop_parameter("there/v")
        raise ValueError("no")

    nn.parameter.get_parameter_or_create("there/u", (1,))
    nn.parameter.get_parameter_or_create("there/v", (1,))
    in_the_middle(monkeypatch, meanwhile)
    with pytest.raises(ValueError, match="no"):
        load(tmp_path / "a.nntxt")
    assert values["names"] == ["affine/W", "there/u", "there/v"] and (values["loaded"] == 7).all()
    found = nn.get_parameters(grad_only=False)
    assert list(found) == ["affine/W", "affine/c", "affine/b", "there/u"] and found["affine/b"] is others
    assert (weight.d == 9).all() and not weight.need_grad


def test_a_load_shares_the_parameters_that_another_thread_makes_meanwhile(tmp_path, monkeypatch):
    saved_layer(tmp_path / "a.nntxt")
    wanted, made = load(tmp_path / "a.nntxt").networks["n"].parameters["affine/b"].variable_instance.d.copy(), []
    nn.clear_parameters()
    in_the_middle(monkeypatch, lambda *_: made.append(PF.affine(nn.Variable((2, 3)), 4)))
    found = load(tmp_path / "a.nntxt").networks["n"].parameters
    for name, v in nn.get_parameters().items():
        (used,) = (x for x in made[0].parent.inputs if x.shape == v.shape)
        used.d = wanted[0] + 5
        assert (found[name].variable_instance.d == v.d).all() and (v.d == used.d).all()


def test_a_load_leaves_a_parameter_that_another_thread_puts_in_place_of_one(tmp_path, monkeypatch):
    """As in NNabla 1.39 the network has the one that was there, with the file's values: nothing is shared."""
    weight, mine = saved_layer(tmp_path / "a.nntxt"), nn.Variable.from_numpy_array(np.full((3, 4), 9), need_grad=True)
    in_the_middle(monkeypatch, lambda *_: nn.parameter.set_parameter("affine/W", mine))
    network = load(tmp_path / "a.nntxt").networks["n"]
    assert nn.get_parameters()["affine/W"] is mine and (mine.d == 9).all() and (weight.d != 7).all()
    weight.d = 5
    assert (mine.d == 9).all() and (network.parameters["affine/W"].variable_instance.d == 5).all()
    y = network.variables[network.outputs[0]].variable_instance
    assert any(v.shape == (3, 4) and (v.d == 5).all() for v in y.parent.inputs)


@pytest.mark.parametrize("there", [True, False])
def test_a_load_computes_a_dynamic_graph_with_the_values_of_the_file(tmp_path, there):
    """Values of NNabla 1.39."""
    x = nn.Variable((2, 3))
    h = PF.affine(x, 4, fix_parameters=False)
    y = F.tanh(F.exp(h))
    nn.get_parameters()["affine/b"].d = 1
    network = {"name": "net", "batch_size": 2, "outputs": {"y": y}, "names": {"x": x, "h": h}}
    executor = {"name": "run", "network": "net", "data": ["x"], "output": ["y"]}
    save(tmp_path / "a.nnp", {"networks": [network], "executors": [executor]})
    nn.get_parameters()["affine/b"].d = 0
    if not there:
        nn.clear_parameters()
    with nn.auto_forward():
        made = load(tmp_path / "a.nnp")
        assert nn.get_auto_forward()
    found = {name: v.variable_instance for name, v in made.networks["net"].variables.items()}
    assert (found["h"].d == 1).all() and np.allclose(found["y"].d, np.tanh(np.exp(1)))
    assert made.executors["run"].forward_target.d.shape == ()


@on_a_thread
def test_a_signal_leaves_no_scope_of_the_library(tmp_path):
    y = PF.affine(nn.Variable((2, 3)), 4)
    save(tmp_path / "a.nnp", {"networks": [{"name": "n", "batch_size": 2, "outputs": {"y": y}, "names": {}}]})
    loader, outermost, before = NnpLoader(tmp_path / "a.nnp"), get_current_parameter_scope(), sys.gettrace()
    at, is_over = 0, False
    while not is_over:
        at += 1
        # Modules without a `with` of these: a trace raises an instruction late, behind their ends.
        trace = raising_at(at, Late(), ("nnrs._modes", "nnrs.parameter", "contextlib"))
        sys.settrace(trace)
        try:
            loader.get_network("n")
        except Late:
            sys.settrace(before)
            assert get_current_parameter_scope() is outermost
        sys.settrace(before)
        is_over = trace.seen < at
    assert at > 20


def test_a_load_puts_back_the_parameters_that_another_thread_removes_meanwhile(tmp_path, monkeypatch):
    weight = saved_layer(tmp_path / "a.nntxt")
    nn.parameter.get_parameter_or_create("other", (1,))
    in_the_middle(monkeypatch, lambda *_: nn.clear_parameters())
    load(tmp_path / "a.nntxt")
    assert list(nn.get_parameters()) == ["affine/W", "affine/b"] and (weight.d != 7).all()


def test_a_load_that_another_thread_leaves_no_place_changes_nothing(tmp_path, monkeypatch):
    weight = saved_layer(tmp_path / "a.nntxt")
    in_the_middle(monkeypatch, lambda *_: nn.parameter.get_parameter_or_create("affine/b/c", (1,)))
    with pytest.raises(ValueError, match="'affine/b' is a parameter in the file, but a scope here"):
        load(tmp_path / "a.nntxt")
    assert list(nn.get_parameters()) == ["affine/W", "affine/b/c"] and (weight.d == 7).all()


def test_arguments_of_load_are_not_a_fault_of_the_file(tmp_path, monkeypatch):
    save(tmp_path / "a.nntxt", {})
    for options in ({"batch_size": "2"}, {"context": 3}):
        with pytest.raises(TypeError, match=f"load: argument '{next(iter(options))}'") as e:
            load(tmp_path / "a.nntxt", **options)
        assert isinstance(e.value, nn.Error)
    for size, says in ((0, "1 or more, got 0"), (2**63, f"{2**63 - 1} at most, got {2**63}")):
        with pytest.raises(ValueError, match=f"load: argument 'batch_size': expected {says}"):
            load(tmp_path / "a.nntxt", batch_size=size)
    with pytest.raises(ModuleNotFoundError, match="load: argument 'context': expected one of 'cpu', .*, got 'nope:1'"):
        load(tmp_path / "a.nntxt", context="nope:1")
    monkeypatch.setattr("nnrs.utils._load_contexts.get_extension_context", no_gpu)
    with pytest.raises(NotImplementedError, match="^no GPU"):
        load(tmp_path / "a.nntxt", context="cudnn")


def test_errors_of_readers_name_their_own_arguments(tmp_path):
    (tmp_path / "bad.nnp").write_bytes(b"no archive")
    readers = {"load: argument 'filenames'": load, "NnpLoader: argument 'filepath'": NnpLoader}
    readers["load: argument 'filename'"] = nn.core.graph_def.load
    for head, read in readers.items():
        for source in (None, 3, tmp_path, tmp_path / "none.nnp", tmp_path / "a.csv", tmp_path / "bad.nnp"):
            with pytest.raises((ValueError, TypeError, OSError), match=f"^{head}: ") as e:
                read(source)
            assert isinstance(e.value, nn.Error)
    loader = NnpLoader(written(tmp_path))
    with pytest.raises(ValueError, match="^get_network: argument 'batch_size': expected 1 or more, got 0"):
        loader.get_network("training", batch_size=0)
    with pytest.raises(TypeError, match="^get_network: argument 'callback': expected a NnpNetworkPass, got int 3"):
        loader.get_network("training", callback=3)


def no_gpu(*args, **kwargs):
    raise UnsupportedError("no GPU")


def test_iterators_of_a_dataset_share_a_generator(tmp_path, monkeypatch):
    """As in NNabla: the second one goes on where the first has begun."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x:x\n" + "".join(f"{i}\n" for i in range(12)))
    dataset = {"name": "a", "uri": "a.csv", "cache_dir": None, "shuffle": True, "batch_size": 4, "variables": ["x"]}
    dataset["no_image_normalization"] = True
    save("a.nntxt", {"datasets": [dataset]})
    made = load("a.nntxt").datasets["a"]
    orders = []
    for _ in range(2):
        with made.data_iterator() as it:
            orders.append([int(it.next()[0][0, 0]) for _ in range(3)])
    assert orders == [[6, 2, 9], [6, 7, 3]]  # NNabla's


CACHED = """dataset {
  name: "a" uri: "a.csv" batch_size: 4 cache_dir: "c" shuffle: true variable: "x" no_image_normalization: true
}"""


def orders_of(dataset, n):
    orders = []
    for _ in range(n):
        with dataset.data_iterator() as it:
            orders.append([int(x) for _ in range(3) for x in it.next()[0].ravel()])
    return orders


def test_whether_a_cache_is_read_is_decided_when_the_file_is_loaded(tmp_path, monkeypatch):
    """The numbers are NNabla 1.39's."""
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x:x\n" + "".join(f"{i}\n" for i in range(12)))
    Path("a.nntxt").write_text(CACHED)
    dataset = load("a.nntxt").datasets["a"]
    first, second = [6, 11, 4, 10, 2, 8, 1, 7, 9, 3, 0, 5], [6, 1, 10, 2, 7, 5, 11, 0, 3, 4, 9, 8]
    assert orders_of(dataset, 2) == [first, second]
    Path("a.csv").write_text("x:x\n" + "".join(f"{i}\n" for i in range(100, 112)))
    assert orders_of(dataset, 1) == [[101, 109, 100, 105, 111, 102, 108, 106, 103, 107, 104, 110]]


@pytest.mark.usefixtures("small_cache_files")
def test_an_iterator_does_not_write_the_cache_that_another_one_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x:x\n" + "".join(f"{i}\n" for i in range(12)))
    Path("a.nntxt").write_text(CACHED)
    dataset = load("a.nntxt").datasets["a"]
    with dataset.data_iterator() as it:
        first = it.next()[0].ravel().tolist()
        assert sorted(*orders_of(dataset, 1)) == list(range(12))
        assert sorted(first + [x for _ in range(2) for x in it.next()[0].ravel()]) == list(range(12))


@pytest.fixture(name="small_cache_files")
def cache_files_of_three_samples():
    settings = nn.config.nnabla_config["DATA_ITERATOR"]
    before, settings["data_source_file_cache_size"] = settings["data_source_file_cache_size"], "3"
    yield
    settings["data_source_file_cache_size"] = before


def test_a_cache_made_explicitly_is_made_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("x:x\n" + "".join(f"{i}\n" for i in range(12)))
    Path("a.nntxt").write_text(CACHED.replace("shuffle", "create_cache_explicitly: true overwrite_cache: true shuffle"))
    for _ in range(2):
        dataset = load("a.nntxt").datasets["a"]
        written = []
        for _ in range(2):
            orders_of(dataset, 1)
            written.append(Path("c/cache_index.csv").stat().st_mtime_ns)
        assert written[0] == written[1]
