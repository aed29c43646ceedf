"""`nnrs.utils.get_file_handle`: handlers of files by extension, as NNabla's scripts take them one by one."""

from __future__ import annotations

import io
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

import nnp_networks
import nnrs as nn
import nnrs.solvers as S
from file_helpers import fresh  # noqa: F401 - a fixture
from nnrs.utils import get_file_handle as handles
from nnrs.utils.save import create_proto, save


def test_tables_have_nnablas_keys():
    initial = [".nntxt,.prototxt", ".protobuf,.h5", ".nnp", ".optimizer"]
    assert list(handles.get_initial_file_loader()) == initial
    assert list(handles.get_decorated_file_loader()) == [".optimizer", ".protobuf,.h5", ".nnp"]
    assert list(handles.get_parameter_file_loader()) == [".h5", ".protobuf", ".nntxt,.prototxt", ".nnp"]
    assert list(handles.get_default_file_savers()) == [".nntxt, .prototxt", ".protobuf", ".nnp"]
    assert list(handles.get_parameter_file_savers()) == [".h5", ".protobuf"]
    assert handles.get_buf_type("a_b.protobuf.optimizer") == "protobuf"
    with pytest.raises(ValueError, match="get_buf_type"):
        handles.get_buf_type("name")


def test_contexts_are_saved_and_loaded(tmp_path):
    ctx = handles.FileHandlerContext()
    ctx.proto = create_proto(nnp_networks.contents())
    ctx.parameters = {"a/w": nn.Variable.from_numpy_array([1.0, 2.0])}
    names = [str(tmp_path / f"a{kind}") for kind in (".nntxt", ".protobuf", ".nnp")]
    assert handles.save_files(ctx, handles.get_default_file_savers(), names)
    assert handles.save_files(ctx, handles.get_parameter_file_savers(), str(tmp_path / "p.h5"))
    assert not handles.save_files(ctx, handles.get_parameter_file_savers(), [str(tmp_path / "p.xyz")])
    nn.clear_parameters()
    for name in names:
        found = handles.FileHandlerContext()
        found.parameter_scope = {}
        handles.load_files(found, handles.get_initial_file_loader(), [name, str(tmp_path / "none.xyz")])
        assert str(found.proto) == str(ctx.proto) and list(found.parameter_scope) == (["a"] if "nnp" in name else [])
    handles.load_files(handles.FileHandlerContext(), handles.get_parameter_file_loader(), str(tmp_path / "p.h5"))
    assert nn.get_parameters(grad_only=False)["a/w"].d.tolist() == [1, 2]


def test_states_of_solvers(tmp_path):
    pytest.importorskip("h5py")
    contents = nnp_networks.contents()
    solver = contents["optimizers"][0]["solver"]
    for p in nn.get_parameters().values():
        p.grad.fill(1)
    solver.update()
    save(tmp_path / "all.nnp", contents, include_solver_state=True)
    solver.save_states(tmp_path / "s.h5")
    wanted = {name: state.pstate["mean"].d.tolist() for name, state in solver.get_states().items()}
    with zipfile.ZipFile(tmp_path / "all.nnp") as archive:
        inside = handles.load_solve_state_from_h5(archive, "adam_Adam_optimizer.h5.optimizer")
    opened = io.BytesIO((tmp_path / "s.h5").read_bytes())
    for found in (inside, *(handles.load_solve_state_from_h5(None, f) for f in (tmp_path / "s.h5", opened))):
        means = {name: state.pstate["mean"].d.tolist() for name, state in found.items()}
        assert means == wanted and {state.t for state in found.values()} == {1}
    ctx = handles.FileHandlerContext()
    other = S.Adam(0.01)
    other.set_parameters(nn.get_parameters())
    proto = create_proto(contents).optimizer[0]
    ctx.optimizers = {"adam": SimpleNamespace(name="adam", solver=other, proto=proto)}
    handles.load_files(ctx, handles.get_decorated_file_loader(), str(tmp_path / "all.nnp"))
    assert list(ctx.optimizer_states_checkpoint) == ["adam", "momentum"]
    assert {name: s.pstate["mean"].d.tolist() for name, s in other.get_states().items()} == wanted


def test_handles_of_each_kind(tmp_path):
    for kind in (".nntxt", ".protobuf", ".nnp"):
        path = tmp_path / f"a{kind}"
        with handles.get_file_handle_save(path, kind) as f:
            if kind == ".nnp":
                f.writestr("b.nntxt", "network { name: 'b' }")
            else:
                f.write(b"ab" if kind == ".protobuf" else "ab")
        with handles.get_file_handle_load(None, path, kind) as f:
            assert (f.namelist() if kind == ".nnp" else f.read()) in (["b.nntxt"], "ab", b"ab")
            if kind == ".nnp":
                with handles.get_file_handle_load(f, "b.nntxt", ".nntxt") as inner:
                    assert inner.read() == "network { name: 'b' }"
    opened = io.StringIO()
    with handles.get_file_handle_save(opened, ".nntxt") as f:
        f.write("ab")
    assert opened.read() == "ab"
    with pytest.raises(KeyboardInterrupt), handles.get_file_handle_save(tmp_path / "b.nntxt", ".nntxt") as f:
        raise KeyboardInterrupt
    assert not (tmp_path / "b.nntxt").exists()
    with pytest.raises(ValueError, match="a file of kind"), handles.get_file_handle_load(None, "a.x", ".x"):
        pass
    with pytest.raises(ValueError, match="a file of kind"), handles.get_file_handle_save("a.x", ".x"):
        pass
    pytest.importorskip("h5py")
    with handles.get_file_handle_save(tmp_path / "p.h5", ".h5") as f:
        f["w"] = np.ones(2)
    with handles.get_file_handle_load(None, tmp_path / "p.h5", ".h5") as f:
        assert f["w"][0] == 1
