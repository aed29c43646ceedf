"""Solvers: states, and their files."""

from __future__ import annotations

import collections
import copy
import os
import pickle
import subprocess
import types

import numpy as np
import pytest

import nnrs as nn
import nnrs.solvers as S
from nnrs._errors import FormatError
from solver_helpers import ALL, parameter, solver_of, steps

ORACLE = os.environ.get("NNRS_ORACLE", "/opt/nnrs-env/oracle/bin/python")


def trained(kind, names=("a/W", "b")):
    rng = np.random.default_rng(0)
    params = {name: parameter(rng.normal(size=(i + 2, 3)), rng.normal(size=(i + 2, 3))) for i, name in enumerate(names)}
    solver = kind(0.01)
    solver.set_parameters(params)
    for _ in range(3):
        solver.update()
    return solver


def same_states(x, y):
    assert {n: s.t for n, s in x.items()} == {n: s.t for n, s in y.items()}
    for name, state in x.items():
        assert list(state.pstate) == list(y[name].pstate)
        for key, v in state.pstate.items():
            np.testing.assert_array_equal(v.d, y[name].pstate[key].d)


def test_states_have_nnablas_names():
    names = {kind.__name__: " ".join(trained(kind).get_states()["b"].pstate) for kind in ALL}
    assert names == {
        "Sgd": "",
        "SgdW": "m",
        "Momentum": "m",
        "Lars": "v",
        "Nesterov": "m",
        "Adadelta": "e_sqr_delta e_sqr_grad",
        "Adagrad": "v",
        "AdaBelief": "var mean",
        "RMSprop": "v",
        "RMSpropGraves": "g d n",
        "Adam": "var mean",
        "AdamW": "var mean",
        "AdaBound": "var mean",
        "Adamax": "u m",
        "AMSGRAD": "v_hat v m",
        "AMSBound": "v_hat v m",
        "Lamb": "var mean",
        "Lion": "m",
    }
    belief = solver_of(lambda: S.AdaBelief(amsgrad=True), w=parameter([1.0]))
    assert list(belief.get_states()["w"].pstate) == ["s_max", "mean", "var"]
    state = S.SolverState()
    assert (state.t, state.pstate) == (0, {})


def test_state_arrays_are_the_solvers_own():
    w = parameter([1.0], 0.0)
    solver = S.Momentum(momentum=0.5)
    solver.set_parameters({"w": w})
    state = solver.get_states()["w"]
    state.pstate["m"].d = [1.0]
    state.t = 7
    solver.update()
    assert w.d == 0.5 and steps(solver) == {"w": 1}
    state.t = 7
    solver.set_states({"w": state})
    assert steps(solver) == {"w": 7}


@pytest.mark.parametrize(
    ("states", "kind", "text"),
    [
        ({"x": S.SolverState()}, RuntimeError, "no parameter 'x'"),
        ({"w": S.SolverState()}, ValueError, r"states \[m\] of Momentum for parameter 'w', got \[\]"),
        ({"w": S.SolverState(1, {"m": nn.Variable((3,))})}, ValueError, r"shape \(2,\), as parameter 'w', got \(3,\)"),
        ({"w": S.SolverState(1, {"m": 3})}, TypeError, "a Variable"),
        ({"w": S.SolverState(-1, {"m": nn.Variable((2,))})}, ValueError, "0 or more"),
        ({"w": S.SolverState("a", {"m": nn.Variable((2,))})}, TypeError, "an integer"),
        ({"w": 3}, TypeError, "a SolverState"),
        ([1], TypeError, "a dict"),
    ],
)
def test_wrong_states_change_nothing(states, kind, text):
    solver = solver_of(S.Momentum, w=parameter([1.0, 2.0], 1.0))
    solver.update()
    with pytest.raises(kind, match=text) as error:
        solver.set_states(states)
    assert isinstance(error.value, nn.Error)
    assert steps(solver) == {"w": 1}


@pytest.mark.parametrize("extension", [".h5", ".protobuf", ".safetensors"])
@pytest.mark.parametrize("kind", ALL)
def test_files_bring_states_back(kind, extension, tmp_path):
    solver, other = trained(kind), trained(kind)
    before = copy.deepcopy(steps(solver))
    path = tmp_path / f"states{extension}"
    solver.save_states(path)
    other = solver_of(kind, **other.get_parameters())
    assert set(steps(other).values()) == {0}
    other.load_states(str(path))
    same_states(solver.get_states(), other.get_states())
    assert steps(other) == before and os.listdir(tmp_path) == [path.name]


def test_h5_is_nnablas_format(tmp_path):
    h5py = pytest.importorskip("h5py")
    trained(S.Adam).save_states(tmp_path / "states.h5")
    with h5py.File(tmp_path / "states.h5") as f:
        assert not f.attrs and set(f) == {"a", "b"} and set(f["a"]) == {"W"}
        assert [f[name].attrs["index"] for name in ("a/W", "b")] == [0, 1]
        group = f["a/W"]
        assert set(group) == {"t", "mean", "var"} and not group["t"].attrs
        assert group["t"].shape == () and group["t"].dtype == np.int64 and group["t"][()] == 3
        assert (group["var"].attrs["index"], group["mean"].attrs["index"]) == (0, 1)
        assert group["var"].shape == (2, 3) and group["var"].dtype == np.float32


# What NNabla wrote for Momentum after two updates of `b` of shape () and `a/W` of shape (2, 3).
PROTOBUF = bytes.fromhex(
    "f20150c202180a016212130802120f0a016d120aa20100a206046c09793bc202320a03612f57122b080212270a016d1222"
    "a201040a020203a20618000000006c09f93a6c09793b10c7ba3b6c09f93be4a51b3c"
)


def test_nnablas_protobuf_file_is_read_and_written(tmp_path):
    solver = solver_of(S.Momentum, **{"b": parameter(1.0), "a/W": parameter(np.ones((2, 3)))})
    (tmp_path / "theirs.protobuf").write_bytes(PROTOBUF)
    solver.load_states(tmp_path / "theirs.protobuf")
    states = solver.get_states()
    assert steps(solver) == {"b": 2, "a/W": 2}
    np.testing.assert_allclose(states["a/W"].pstate["m"].d, np.arange(6).reshape(2, 3) * 0.0019, rtol=1e-6)
    solver.save_states(str(tmp_path / "ours.protobuf"))
    assert (tmp_path / "ours.protobuf").read_bytes() == PROTOBUF


def field(number, content):
    """A field of a protobuf message, shorter than 2**14 bytes."""
    return bytes([number % 16 << 3 | 2 | 128, number >> 4, len(content) % 128 | 128, len(content) // 128]) + content


def test_a_protobuf_file_that_does_not_fit_changes_nothing(tmp_path):
    solver = trained(S.Momentum)
    before = steps(solver)
    path = tmp_path / "s.protobuf"
    deep = field(30, field(40, field(1, b"s/" * 200)))
    no_text = field(30, field(40, field(1, b"\xff")))
    for content in (PROTOBUF[:-1], PROTOBUF + b"\x03", deep, no_text):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"s\.protobuf"):
            solver.load_states(path)
    path.write_bytes(PROTOBUF)
    with pytest.raises(ValueError, match="of shape"):
        solver.load_states(path)
    states = solver.get_states()
    states["b"].t = 2**32
    solver.set_states(states)
    with pytest.raises(nn.Error, match="below 2"):
        solver.save_states(path)
    assert path.read_bytes() == PROTOBUF and steps(solver) == {**before, "b": 2**32}


NNABLA = """
import sys
import numpy as np, nnabla as nn, nnabla.solvers as S
w = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
w.g = np.full((2, 3), 0.5)
solver = S.Adam()
solver.set_parameters({"a/W": w})
solver.load_states(sys.argv[1])
solver.update()
solver.save_states(sys.argv[2])
"""


@pytest.mark.skipif(not os.path.exists(ORACLE), reason="NNabla is not installed (NNRS_ORACLE names its Python)")
def test_nnabla_reads_our_states_and_we_read_its(tmp_path):
    pytest.importorskip("h5py")
    solver = solver_of(S.Adam, **{"a/W": parameter(np.ones((2, 3)), 0.5)})
    solver.update()
    ours, theirs = str(tmp_path / "ours.h5"), str(tmp_path / "theirs.h5")
    solver.save_states(ours)
    subprocess.run([ORACLE, "-c", NNABLA, ours, theirs], check=True, capture_output=True)
    solver.update()
    want = solver.get_states()["a/W"]
    solver.load_states(theirs)
    found = solver.get_states()["a/W"]
    assert found.t == want.t == 2 and list(found.pstate) == list(want.pstate)
    for key, v in found.pstate.items():
        np.testing.assert_allclose(v.d, want.pstate[key].d, rtol=1e-6)


def test_files_that_cannot_be_used(tmp_path):
    h5py = pytest.importorskip("h5py")
    solver = trained(S.Adam)
    before = steps(solver)
    for path in ("x.h6", "x", "x.npz"):
        with pytest.raises(ValueError):
            solver.save_states(tmp_path / path)
        with pytest.raises(ValueError):
            solver.load_states(tmp_path / path)
    with pytest.raises(TypeError):
        solver.save_states(3)
    with pytest.raises(FileNotFoundError):
        solver.load_states(tmp_path / "none.h5")
    for path in ("junk.h5", "junk.protobuf", "junk.safetensors"):
        (tmp_path / path).write_bytes(b"\x10\0\0\0\0\0\0\0junk")
        with pytest.raises(ValueError):
            solver.load_states(tmp_path / path)
    trained(S.Momentum).save_states(tmp_path / "m.h5")
    with pytest.raises(ValueError, match=r"states \[var, mean\] of Adam for parameter 'a/W', got \[m\]"):
        solver.load_states(tmp_path / "m.h5")
    trained(S.Adam, ("c",)).save_states(tmp_path / "c.safetensors")
    for kind in (ValueError, RuntimeError):  # NNabla's is the second
        with pytest.raises(kind, match="load_states: argument 'path': .*c.safetensors'.*no parameter 'c'") as e:
            solver.load_states(tmp_path / "c.safetensors")
        assert isinstance(e.value, nn.Error) and "\n  hint: " in str(e.value)
    nn.clear_parameters()
    with nn.parameter_scope("s"):
        nn.parameter.get_parameter_or_create("w", (2,))
    nn.save_parameters(str(tmp_path / "p.safetensors"))
    nn.clear_parameters()
    with pytest.raises(ValueError, match="no states"):
        solver.load_states(tmp_path / "p.safetensors")
    with h5py.File(tmp_path / "t.h5", "w") as f:
        f["b/t"] = np.arange(3)
    with pytest.raises(ValueError, match="step count"):
        solver.load_states(tmp_path / "t.h5")
    assert steps(solver) == before


class Message:
    """As much of a protobuf message as the solvers use."""

    def __init__(self):
        self.t, self.shape, self.data = 0, types.SimpleNamespace(dim=[]), []
        self.state_parameter = collections.defaultdict(Message)


def optimizer():
    return types.SimpleNamespace(solver=types.SimpleNamespace(states=collections.defaultdict(Message)))


@pytest.mark.parametrize("kind", ALL)
def test_states_in_nnablas_protobuf_format(kind):
    solver = trained(kind)
    params = dict(zip(solver.get_states(), solver.get_parameters().values(), strict=True))
    proto = optimizer()
    solver.set_states_to_protobuf(proto)
    solver.set_states_to_protobuf(proto)  # a second time changes nothing
    assert {name: state.t for name, state in proto.solver.states.items()} == {name: 3 for name in params}
    for name, state in solver.get_states().items():
        for key, v in state.pstate.items():
            part = proto.solver.states[name].state_parameter[key]
            assert tuple(part.shape.dim) == v.shape and part.data == v.d.ravel().tolist()
    other = kind(0.01)
    other.set_parameters(params)
    other.set_states_from_protobuf(proto)
    for name, state in other.get_states().items():
        assert state.t == 3
        for key, v in state.pstate.items():
            np.testing.assert_array_equal(v.d, solver.get_states()[name].pstate[key].d)


def test_protobuf_messages_that_do_not_fit():
    solver = trained(S.Adam)
    with pytest.raises(TypeError, match="set_states_from_protobuf: argument 'optimizer_proto': expected an Optimizer"):
        solver.set_states_from_protobuf(3)
    proto = optimizer()
    solver.set_states_to_protobuf(proto)
    proto.solver.states["a/W"].state_parameter["mean"].data.append(1.0)
    with pytest.raises(ValueError, match="expected the elements of shape"):
        solver.set_states_from_protobuf(proto)
    proto = optimizer()
    proto.solver.states["unknown"].t = 1
    with pytest.raises(RuntimeError, match="no parameter 'unknown'"):
        solver.set_states_from_protobuf(proto)


@pytest.mark.parametrize(
    "notes",
    [
        '{"w":[Infinity,[]]}',
        '{"w":[NaN,[]]}',
        '{"w":["1",[]]}',
        '{"w":[true,[]]}',
        '{"w":[9223372036854775808,[]]}',
        '{"w":[-1,[]]}',
        '{"\\ud800":[1,[]]}',
        '{"w":[1,["\\ud800"]]}',
        '{"w":[1]}',
        '{"w":1}',
        "[1]",
        "x",
    ],
)
def test_notes_of_states_that_are_broken(notes, tmp_path):
    nn._core.save_safetensors(str(tmp_path / "s.safetensors"), [], {"nnrs.states": notes})
    solver = solver_of(S.Sgd, w=parameter([1.0], 1.0))
    with pytest.raises(FormatError, match="s.safetensors"):
        solver.load_states(tmp_path / "s.safetensors")
    assert steps(solver) == {"w": 0}


@pytest.mark.parametrize("extension", [".h5", ".protobuf", ".safetensors"])
def test_empty_files(extension, tmp_path):
    solver = S.Adam()
    if extension == ".protobuf":
        (tmp_path / "parameters.protobuf").write_bytes(b"")
    else:
        nn.save_parameters(tmp_path / f"parameters{extension}", {})
    with pytest.raises(FormatError, match="holds no states of a solver"):
        solver.load_states(tmp_path / f"parameters{extension}")
    solver.save_states(tmp_path / f"states{extension}")
    solver.load_states(tmp_path / f"states{extension}")
    assert not solver.get_states()


@pytest.mark.parametrize("t", [float("inf"), 2**63, 1e30])
def test_counts_that_are_too_large(t):
    solver = solver_of(S.Sgd, w=parameter([1.0], 1.0))
    state = solver.get_states()
    state["w"].t = t
    with pytest.raises(nn.Error, match=r"states\['w'\].t"):
        solver.set_states(state)
    assert steps(solver) == {"w": 0}


def test_the_count_of_updates_ends_where_files_do(tmp_path):
    most = 2**63 - 1
    solver = solver_of(S.Momentum, w=parameter([1.0], 1.0))
    state = solver.get_states()
    state["w"].t = most - 1
    solver.set_states(state)
    for _ in range(3):
        solver.update()
        assert steps(solver) == {"w": most}
    copies = [pickle.loads(pickle.dumps(solver)), copy.deepcopy(solver)]
    for name in ["s.safetensors", "s.h5"]:
        other = solver_of(S.Momentum, w=parameter([1.0], 1.0))
        solver.save_states(tmp_path / name)
        other.load_states(tmp_path / name)
        copies.append(other)
    assert [steps(c) for c in copies] == [{"w": most}] * len(copies)
