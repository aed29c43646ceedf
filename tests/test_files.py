"""Parameter files: NNabla's `.h5` both ways, `.safetensors`, whole or not at all, and any bytes without a crash."""

import errno
import io
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

import nnrs as nn
import nnrs.solvers
from file_helpers import contents, expected, fresh, make, parameter_file, values  # noqa: F401 - fixtures
from nnrs import _core, _files
from nnrs.parameter import get_parameter, get_parameter_or_create, set_parameter
from nnrs.utils.get_file_handle import get_file_handle_load
from nnrs.utils.load import load
from nnrs.utils.save import save

HERE = pathlib.Path(__file__).parent
ORACLE = os.environ.get("NNRS_ORACLE", "/opt/nnrs-env/oracle/bin/python")


def test_loads_what_nnabla_wrote():
    nn.load_parameters(str(HERE / "golden" / "nnabla.h5"))
    assert contents() == expected(values())
    assert list(nn.get_parameters(grad_only=False)) == ["z/conv/W", "z/conv/b", "a", "half", "empty", "scalar"]


def test_h5_is_laid_out_as_nnabla_does(tmp_path):
    h5py = pytest.importorskip("h5py")
    nn.load_parameters(HERE / "golden" / "nnabla.h5")
    nn.save_parameters(tmp_path / "ours.h5")

    def layout(path):
        rows = {}
        with h5py.File(path) as f:
            f.visititems(lambda name, node: rows.update({name: describe(node)}))
        return rows

    def describe(node):
        kinds = {key: (node.attrs.get_id(key).dtype, node.attrs.get_id(key).shape) for key in node.attrs}
        if not isinstance(node, h5py.Dataset):
            return (kinds,)
        return kinds, dict(node.attrs), node.dtype, node.shape, node.chunks, node.compression, node[...].tobytes()

    assert layout(tmp_path / "ours.h5") == layout(HERE / "golden" / "nnabla.h5")


@pytest.mark.skipif(not os.path.exists(ORACLE), reason="no Python with NNabla (set NNRS_ORACLE to one)")
def test_nnabla_loads_what_we_wrote(tmp_path):
    pytest.importorskip("h5py")
    make(values())
    nn.save_parameters(tmp_path / "ours.h5")
    script = (
        "import sys, json, nnabla as nn, numpy as np\n"
        "nn.load_parameters(sys.argv[1])\n"
        "rows = [(n, v.need_grad, str(v.data.data.dtype), v.shape, v.data.data.tobytes().hex())"
        " for n, v in nn.get_parameters(grad_only=False).items()]\n"
        "print('ROWS' + json.dumps(rows))"
    )
    done = subprocess.run([ORACLE, "-c", script, str(tmp_path / "ours.h5")], capture_output=True, text=True, check=True)
    rows = json.loads(done.stdout.split("ROWS")[1])
    assert {n: (g, d, tuple(s), bytes.fromhex(b)) for n, g, d, s, b in rows} == expected(values())
    assert [row[0] for row in rows] == list(nn.get_parameters(grad_only=False))


def test_round_trip(path):
    make(values())
    order = list(nn.get_parameters(grad_only=False))
    nn.save_parameters(path)
    nn.clear_parameters()
    nn.load_parameters(path)
    assert contents() == expected(values())
    assert list(nn.get_parameters(grad_only=False)) == order


def test_load_fills_parameters_in_place(path):
    make([("a/w", np.array([1.5, 2.5], np.float32), True)])
    nn.save_parameters(path)
    nn.clear_parameters()
    use = get_parameter_or_create("a/w", (2,), need_grad=False)
    stored = get_parameter("a/w")
    nn.load_parameters(path)
    assert get_parameter("a/w") is stored and stored.need_grad
    assert use.d.tolist() == [1.5, 2.5]


def test_scopes_and_given_parameters(path):
    with nn.parameter_scope("net"):
        get_parameter_or_create("w", (2,))
        nn.save_parameters(path)
    nn.clear_parameters()
    with nn.parameter_scope("other"):
        nn.load_parameters(path)
    assert list(nn.get_parameters()) == ["other/w"]
    nn.save_parameters(path, params={"x/y": nn.Variable((3,))})
    nn.clear_parameters()
    nn.load_parameters(path)
    assert {n: v.shape for n, v in nn.get_parameters(grad_only=False).items()} == {"x/y": (3,)}


def test_no_parameters_at_all(path):
    nn.save_parameters(path)
    nn.load_parameters(path)
    assert contents() == {}


@pytest.mark.parametrize("kind", [".h5", ".safetensors"])
def test_types_are_kept_through_an_open_file(kind):
    make(values())
    buffer = io.BytesIO()
    nn.save_parameters(buffer, extension=kind)
    assert buffer.tell() == 0
    nn.clear_parameters()
    nn.load_parameters(buffer, extension=kind)
    assert contents() == expected(values())


def test_safetensors_can_be_read_by_others(tmp_path):
    make(values())
    nn.save_parameters(tmp_path / "p.safetensors")
    raw = (tmp_path / "p.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    head, body = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    metadata = head.pop("__metadata__")
    assert json.loads(metadata["nnrs.need_grad"]) == {n: g for n, _, g in values()}
    kinds = {"float32": "F32", "float64": "F64", "float16": "F16", "int32": "I32"}
    for name, array, _ in values():
        row = head[name]
        assert (row["dtype"], tuple(row["shape"])) == (kinds[str(array.dtype)], array.shape)
        assert body[slice(*row["data_offsets"])] == array.tobytes()


def write_safetensors(path, tensors, metadata=None):
    head, body = ({"__metadata__": metadata} if metadata else {}), b""
    for name, kind, shape, raw in tensors:
        head[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def test_safetensors_of_others(tmp_path):
    path = tmp_path / "p.safetensors"
    halves = struct.pack("<3H", 0x3F80, 0xC000, 0x7F80)  # 1, -2, infinity as bfloat16
    write_safetensors(path, [("b", "BF16", [3], halves), ("i", "I64", [1], struct.pack("<q", -5))])
    nn.load_parameters(path)
    assert get_parameter("b").d.tolist() == [1, -2, np.inf] and get_parameter("b").need_grad
    assert get_parameter("i").d.tolist() == [-5]


@pytest.mark.parametrize(
    "metadata",
    [{"nnrs.order": "{"}, {"nnrs.order": "3"}, {"nnrs.need_grad": "[]"}, {"nnrs.order": "[[1]]", "nnrs.need_grad": ""}],
)
def test_safetensors_with_wrong_metadata(tmp_path, metadata):
    write_safetensors(tmp_path / "p.safetensors", [("a", "F32", [1], bytes(4))], metadata)
    with pytest.raises(ValueError, match="cannot read"):
        nn.load_parameters(tmp_path / "p.safetensors")


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a"), ("", "b"), ("/", "b"), ("a/b", "a//b")])
def test_names_that_clash(tmp_path, names):
    write_safetensors(tmp_path / "p.safetensors", [(n, "F32", [1], bytes(4)) for n in names])
    with pytest.raises(ValueError, match="names clash or are empty"):
        nn.load_parameters(tmp_path / "p.safetensors")
    assert contents() == {}


@pytest.mark.parametrize(
    "here",
    [[("b", np.ones(5), True)], [("b/c", np.ones(2), True)], [("c", np.ones(1), True)]],
    ids=["shape", "in", "on"],
)
def test_load_that_does_not_fit_changes_nothing(path, here):
    make([("a", np.zeros(3), True), ("b", np.zeros(2), True), ("c/d", np.zeros(1), True)])
    nn.save_parameters(path)
    nn.clear_parameters()
    make([("a", np.ones(3), False), *here])
    before = contents()
    with pytest.raises(ValueError, match="load_parameters"):
        nn.load_parameters(path)
    assert contents() == before


def test_wrong_shape_names_both_and_the_way_out(path):
    make([("w", np.zeros((2, 3)), True)])
    nn.save_parameters(path)
    nn.clear_parameters()
    get_parameter_or_create("w", (5,))
    with pytest.raises(ValueError) as caught:
        nn.load_parameters(path)
    assert "parameter 'w' has shape (5,) here, but (2, 3) in the file" in str(caught.value)
    assert "hint: call clear_parameters() first" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("p.xyz", ValueError, r"expected a file of kind '\.h5', .* or '\.safetensors', got '\.xyz'"),
        ("p", ValueError, "got a name without a kind"),
        ("none/p.nnp", FileNotFoundError, "none"),
        ("none/p.protobuf", FileNotFoundError, "none"),
        ("none/p.safetensors", FileNotFoundError, "none"),
        ("none/p.h5", FileNotFoundError, "none"),
    ],
)
def test_paths_that_cannot_be(tmp_path, name, kind, text):
    for call in (nn.save_parameters, nn.load_parameters):
        with pytest.raises(kind, match=text):
            call(tmp_path / name)
        with pytest.raises(nn._core.Error):
            call(str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_arguments_of_the_wrong_type(tmp_path):
    for call in (nn.save_parameters, nn.load_parameters):
        with pytest.raises(TypeError, match="argument 'path'"):
            call(3)
    with pytest.raises(TypeError, match="argument 'params': expected a dict"):
        nn.save_parameters(tmp_path / "p.safetensors", params=[1])
    with pytest.raises(TypeError, match=r"argument 'params\['k'\]': expected a Variable, got int 3"):
        nn.save_parameters(tmp_path / "p.safetensors", params={"k": 3})
    for names in (["a", "a/b"], [""], ["/"]):
        with pytest.raises(ValueError, match="argument 'params': names clash or are empty"):
            nn.save_parameters(tmp_path / "p.safetensors", params=dict.fromkeys(names, nn.Variable((1,))))
    with pytest.raises(TypeError, match="argument 'proto': expected a message NNablaProtoBuf, got int 3"):
        nn.load_parameters(tmp_path / "p.safetensors", proto=3)
    assert list(tmp_path.iterdir()) == []


def test_folder_in_place_of_a_file(path):
    path.mkdir()
    with pytest.raises(ValueError, match="a plain file"):
        nn.load_parameters(path)
    with pytest.raises(OSError):
        nn.save_parameters(path)


def test_parameters_of_any_depth_are_walked(path):
    set_parameter("a/" * 5000 + "w", nn.Variable((2,), need_grad=True))
    assert list(nn.get_parameters()) == ["a/" * 5000 + "w"]
    nn.clear_parameters()
    name = "/".join("abcdefghij" * 9) + "/w"
    make([(name, np.ones(2), True)])
    nn.save_parameters(path)
    nn.clear_parameters()
    nn.load_parameters(path)
    assert list(nn.get_parameters()) == [name]


@pytest.mark.parametrize("fill", [None, 0, 2.5])
@pytest.mark.parametrize("kind", ["f4", ">f8", "i2"])
@pytest.mark.parametrize("libver", [("earliest", "v108"), ("v108", "v108")])
def test_what_was_never_written_has_the_fill_value(tmp_path, fill, kind, libver):
    """As h5py, and so NNabla, reads it."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "p.h5", "w", libver=libver) as f:
        f.create_dataset("whole", (5, 7), kind, fillvalue=fill)
        f.create_dataset("chunks", (5, 7), kind, fillvalue=fill, chunks=(2, 3))
        f.create_dataset("some", (5, 7), kind, fillvalue=fill, chunks=(2, 3), compression="gzip")[:3, :3] = 4
        f.create_dataset("none", (0, 3), kind, fillvalue=fill, chunks=(2, 3), maxshape=(None, 3))
        expected = {name: data[()] for name, data in f.items()}
    nn.load_parameters(tmp_path / "p.h5")
    for name, wanted in expected.items():
        assert np.array_equal(get_parameter(name).d, wanted), name


def test_states_of_a_solver_in_a_deep_group(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "s.h5", "w") as f:
        f["a/" * 1000 + "t"] = 1
    with pytest.raises(ValueError, match="more than 100 scopes"):
        nn.solvers.Adam().load_states(tmp_path / "s.h5")


def test_a_folder_that_cannot_be_written(path, tmp_path):
    """The message has the name that the user gave, not that of a temporary file."""
    if not os.path.isdir("/proc"):
        pytest.skip("there is no /proc")
    with pytest.raises(OSError, match=f"cannot write '/proc/x{path.suffix}'") as e:
        nn.save_parameters(f"/proc/x{path.suffix}")
    assert isinstance(e.value, nn.Error) and ".tmp" not in str(e.value)


def test_failed_save_leaves_the_old_file(path, monkeypatch):
    make([("a", np.ones(2), True)])
    nn.save_parameters(path)
    old = path.read_bytes()
    for module, step in ((os, "replace"), (_core, "flush_file")):
        with monkeypatch.context() as patch:
            patch.setattr(module, step, broken)
            with pytest.raises(OSError, match="No space"):
                nn.save_parameters(path)
        assert path.read_bytes() == old
    assert os.listdir(path.parent) == [path.name]


def test_what_nobody_can_make_again_is_on_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """Parameters, states and networks; pictures and tables do not wait for the disk."""
    make([("a", np.ones(2), True)])
    solver = nn.solvers.Momentum()
    solver.set_parameters(nn.get_parameters())
    x = nn.Variable((1, 2))
    net = {"networks": [{"name": "net", "batch_size": 1, "outputs": {"y": nn.functions.relu(x)}, "names": {"x": x}}]}
    flushed = []
    monkeypatch.setattr(_core, "flush_file", flushed.append)
    monkeypatch.setattr(_core, "flush_folder", flushed.append)
    for write in (
        lambda: nn.save_parameters(tmp_path / "p.h5"),
        lambda: nn.save_parameters(tmp_path / "p.safetensors"),
        lambda: solver.save_states(tmp_path / "s.h5"),
        lambda: save(tmp_path / "n.nnp", net),
    ):
        write()
        assert len(flushed) == 2  # the file and its folder
        flushed.clear()
    with _files.atomic_path(tmp_path / "table.csv") as temporary:
        pathlib.Path(temporary).write_text("1\n")
    assert flushed == [] and (tmp_path / "table.csv").read_text() == "1\n"


def broken(*_):
    raise OSError(28, "No space left on device")


def test_atomic_path_keeps_permissions_and_links(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    with _files.atomic_path(link) as temporary:
        pathlib.Path(temporary).write_text("new")
        assert real.read_text() == "old"
    assert link.is_symlink() and real.read_text() == "new" and real.stat().st_mode & 0o777 == 0o640
    with pytest.raises(KeyboardInterrupt), _files.atomic_path(real) as temporary:
        raise KeyboardInterrupt
    assert sorted(os.listdir(tmp_path)) == ["link", "real"] and real.read_text() == "new"
    real.unlink()
    with _files.atomic_path(link) as temporary:  # what it points to is not there
        pathlib.Path(temporary).write_text("made")
    assert link.is_symlink() and real.read_text() == "made"


def test_h5_behind_a_block_of_the_users(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "p.h5", "w", userblock_size=1024) as f:
        f.create_dataset("a/w", data=np.arange(6.0).reshape(2, 3), compression="gzip")
    with open(tmp_path / "p.h5", "r+b") as file:
        file.write(b"the user's own")
    nn.load_parameters(tmp_path / "p.h5")
    assert nn.get_parameters()["a/w"].d.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("options", [{"compression": "lzf"}, {"chunks": (1, 3)}, {"maxshape": (None, 3)}])
def test_h5_of_newer_forms_says_how_to_write_it_again(options, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "p.h5", "w", libver="latest") as f:
        f.create_dataset("w", data=np.ones((2, 3)), **options)
    with pytest.raises(
        ValueError, match="parameter 'w': .* is not read: write the file again, with h5py, without libver"
    ):
        nn.load_parameters(tmp_path / "p.h5")


def test_files_need_no_h5py(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    make([("a", np.ones(2), True)])
    nn.save_parameters(tmp_path / "p.h5")
    nn.load_parameters(tmp_path / "p.h5")
    solver = nn.solvers.Momentum()
    solver.set_parameters(nn.get_parameters())
    solver.save_states(tmp_path / "s.h5")
    solver.load_states(tmp_path / "s.h5")
    with pytest.raises(ImportError, match=r"pip install 'nnrs\[hdf5\]'"):
        with get_file_handle_load(None, tmp_path / "p.h5", ".h5"):
            pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says when a process began")
def test_what_a_killed_save_left_is_removed_by_the_next_one(tmp_path):
    path = tmp_path / "w.safetensors"
    script = """
import os, signal, sys
from nnrs._files import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    open(temporary, "w").write("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True)
    assert done.returncode == -9 and len(list(tmp_path.glob(".nnrs-*.tmp"))) == 1
    (tmp_path / ".nnrs-0123.tmp").write_text("another program's")
    nn.parameter.get_parameter_or_create("w", (2,))
    nn.save_parameters(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".nnrs-0123.tmp", "w.safetensors"]


@pytest.mark.parametrize("extension", [".h5", ".safetensors"])
def test_a_disk_that_is_full(tmp_path, extension):
    resource = pytest.importorskip("resource")
    make([("a", np.ones((200, 300)), True)])
    path = tmp_path / f"p{extension}"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, limits[1]))
    try:
        with pytest.raises(nn.Error, match="cannot write") as e:
            nn.save_parameters(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(path) in str(e.value) and isinstance(e.value, OSError)
    assert os.listdir(tmp_path) == [path.name] and path.read_bytes() == b"old"


def test_bfloat16_goes_into_safetensors_as_it_is(tmp_path):
    with nn.context_scope(nn.Context(["cpu:bfloat16"])):
        v = nn.Variable.from_numpy_array(np.float32([1, 2.5, -3]), need_grad=True)
        v.data.cast("bfloat16")
        nn.parameter.set_parameter("w", v)
    nn.save_parameters(tmp_path / "p.safetensors")
    nn.clear_parameters()
    nn.load_parameters(tmp_path / "p.safetensors")
    w = nn.get_parameters()["w"]
    assert w.data.dtype == "bfloat16" and w.d.tolist() == [1, 2.5, -3]


def test_errors_of_files_have_the_systems_number(tmp_path, monkeypatch):
    for read in (nn.load_parameters, lambda path: load([path])):
        with pytest.raises(FileNotFoundError) as missing:
            read(str(tmp_path / "none.h5"))
        assert (missing.value.errno, missing.value.strerror) == (errno.ENOENT, os.strerror(errno.ENOENT))
        assert missing.value.filename == str(tmp_path / "none.h5") and "[Errno" not in str(missing.value)
    with pytest.raises(FileNotFoundError) as nowhere:
        nn.save_parameters(str(tmp_path / "no" / "p.h5"), {"w": nn.Variable((1,))})
    assert nowhere.value.errno == errno.ENOENT
    copied = pickle.loads(pickle.dumps(missing.value))
    assert type(copied) is type(missing.value) and copied.errno == errno.ENOENT and str(copied) == str(missing.value)


LIMITED = """
import errno, resource, signal, sys
import numpy as np, nnrs as nn
from nnrs.utils.data_iterator import data_iterator
from nnrs.utils.data_source_implements import SimpleDataSource

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
w = {"w": nn.Variable((400, 400))}
source = SimpleDataSource(lambda i: (np.zeros((400, 400)),), 4)
kinds = ("h5", "nnp", "protobuf", "safetensors")
tasks = [lambda kind=kind: nn.save_parameters(f"{sys.argv[1]}/p.{kind}", w) for kind in kinds]
tasks.append(lambda: data_iterator(source, 2, with_file_cache=True, cache_dir=sys.argv[1]))
for task in tasks:
    try:
        task()
    except nn.Error as error:
        print(isinstance(error, OSError) and error.errno == errno.EFBIG and str(error).endswith("File too large"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_FSIZE")
def test_a_file_that_is_too_large_is_told_with_its_number(tmp_path):
    code = [sys.executable, "-c", LIMITED, str(tmp_path)]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n" * 5, done
