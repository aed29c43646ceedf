"""Parameter files that are cut, noise, too deep, or made by an attacker: an error, and nothing has changed."""

import json
import struct
import zipfile
import zlib

import numpy as np
import pytest

import nnrs as nn
import nnrs.solvers
from file_helpers import contents, fresh, make, parameter_file  # noqa: F401 - fixtures
from nnrs.parameter import get_parameter
from nnrs.utils.nnp_graph import NnpLoader


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 9, 100, 0.5, 0.9, -1])
def test_cut_files(path, cut):
    make([("a", np.arange(300.0), True), ("b", np.ones(2), True)])
    nn.save_parameters(path)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(cut * len(raw)) if isinstance(cut, float) else cut])
    before = contents()
    with pytest.raises(ValueError, match="cannot read"):
        nn.load_parameters(path)
    assert contents() == before


def test_any_bytes(path):
    """Files with flipped bytes load or are refused; either way the process lives and nothing is half loaded."""
    make([("a/b", np.arange(12.0), True), ("c", np.ones(2, np.float32), False)])
    nn.save_parameters(path)
    raw = path.read_bytes()
    g = np.random.RandomState(0)
    for _ in range(300):
        bad = bytearray(raw)
        for at in g.randint(0, len(raw), g.randint(1, 8)):
            bad[at] = g.choice([0, 1, 0x7F, 0xFF, g.randint(256)])
        path.write_bytes(bytes(bad))
        nn.clear_parameters()
        try:
            nn.load_parameters(path)
        except ValueError:
            assert contents() == {}


def test_noise(path):
    g = np.random.RandomState(1)
    for size in [0, 1, 8, 64, 4096]:
        for head in [b"", b"\x89HDF\r\n\x1a\n", struct.pack("<Q", size), struct.pack("<Q", 2**63)]:
            path.write_bytes(head + g.bytes(size))
            with pytest.raises(ValueError, match="cannot read"):
                nn.load_parameters(path)


def test_h5_that_claims_too_much_or_points_elsewhere(tmp_path):
    h5py = pytest.importorskip("h5py")
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(64))
    makers = {
        "huge": lambda f: f.create_dataset("a", (2**40, 2**20), "f4", chunks=(1, 1)),
        "hollow": lambda f: [f.create_dataset(f"a{i}", (500, 500), "f4") for i in range(50)],
        "hollow chunks": lambda f: [f.create_dataset(f"a{i}", (500, 500), "f4", chunks=(9, 9)) for i in range(50)],
        "external": lambda f: f.create_dataset("a", (16,), "f4", external=[(str(secret), 0, 64)]),
        "text": lambda f: f.create_dataset("a", data="text"),
        "virtual": lambda f: f.create_virtual_dataset("a", h5py.VirtualLayout((4,), "f4")),
        "null": lambda f: f.create_dataset("a", data=h5py.Empty("f4")),
        "index": lambda f: f.create_dataset("a", data=[1.0]).attrs.create("index", "first"),
    }
    for name, maker in makers.items():
        path = tmp_path / f"{name}.h5"
        with h5py.File(path, "w") as f:
            maker(f)
        with pytest.raises(ValueError, match="cannot read"):
            nn.load_parameters(path)
    assert contents() == {}


@pytest.mark.parametrize("layout", [{}, {"chunks": (1000,)}, {"chunks": (1000,), "compression": "gzip"}])
def test_h5_arrays_without_bytes_are_at_most_a_hundred_times_the_file(tmp_path, layout):
    h5py, resource = pytest.importorskip("h5py"), pytest.importorskip("resource")
    for times in (90, 800):
        with h5py.File(tmp_path / "p.h5", "w") as f:
            f["whole"] = np.zeros(1 << 17, "f4")
            hollow = f.create_dataset("hollow", (times << 17,), "f4", fillvalue=3, **layout)
            if layout:
                hollow[:1000] = 1
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if times < 100:
            nn.load_parameters(tmp_path / "p.h5")
            assert get_parameter("hollow").d[-1] == 3
            nn.clear_parameters()
            continue
        with pytest.raises(ValueError, match="'hollow': most values of its arrays are not in the file"):
            nn.load_parameters(tmp_path / "p.h5")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KB


def test_h5_arrays_that_deflate_shrinks_are_read(tmp_path):
    """To a few hundredths of a percent, where all is the same."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "p.h5", "w") as f:
        f.create_dataset("same", data=np.full((1000, 5000), 2, "f4"), compression="gzip", chunks=(500, 5000))
    assert (tmp_path / "p.h5").stat().st_size < 40_000
    nn.load_parameters(tmp_path / "p.h5")
    assert (get_parameter("same").d == 2).all()


ZEROS = zlib.compress(bytes(4 << 20), 4)


def deflated(path, megabytes, layers=1):
    """An `.h5` file of zeros, a thousandth as long."""
    with pytest.importorskip("h5py").File(path, "w") as f:
        for i in range(layers):
            w = f.create_dataset(f"w{i}", (megabytes << 18,), "f4", chunks=(1 << 20,), compression="gzip")
            for at in range(0, len(w), 1 << 20):
                w.id.write_direct_chunk((at,), ZEROS)
    assert path.stat().st_size < megabytes * layers * 1200
    return path


@pytest.mark.parametrize("layers", [1, 8])
def test_h5_arrays_unpack_to_a_hundred_times_the_file_at_most(tmp_path, layers):
    """And 64 MiB in any case, all layers together."""
    resource = pytest.importorskip("resource")
    nn.load_parameters(deflated(tmp_path / "p.h5", 56))
    nn.clear_parameters()
    deflated(tmp_path / "p.h5", 512 // layers, layers)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="it unpacks to more than 100 times the file, which has"):
        nn.load_parameters(tmp_path / "p.h5")
    assert nn.get_parameters() == {}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KB


@pytest.mark.parametrize("name", ["parameter.h5", "adam_Adam_optimizer.h5.optimizer"])
def test_what_is_packed_in_an_archive_counts_by_the_archive(tmp_path, name):
    """Its own length is nothing honest: an archive packs it again."""
    whole = deflated(tmp_path / "p.h5", 56, 6).read_bytes()
    for inside, content in (("good.nnp", deflated(tmp_path / "p.h5", 56).read_bytes()), ("bad.nnp", whole)):
        with zipfile.ZipFile(tmp_path / inside, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("network.nntxt", "")
            archive.writestr(name, content)
    size = (tmp_path / "bad.nnp").stat().st_size
    assert size < 50_000
    NnpLoader(tmp_path / "good.nnp")
    with pytest.raises(
        ValueError, match=f"in '{name}': .*it unpacks to more than 100 times the file, which has {size} "
    ):
        NnpLoader(tmp_path / "bad.nnp")


def test_h5_links_are_not_followed(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f["w"] = [1.0]
    with h5py.File(tmp_path / "p.h5", "w") as f:
        f["good"] = np.ones(2, ">f4")
        f["soft"] = h5py.SoftLink("/nowhere")
        f["loop"] = f["/"]
    nn.load_parameters(tmp_path / "p.h5")
    assert list(nn.get_parameters()) == ["good"]
    assert get_parameter("good").d.tolist() == [1, 1]
    with h5py.File(tmp_path / "p.h5", "a") as f:
        f.create_group("inner")["link"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "w")
    with pytest.raises(ValueError, match="'inner/link' is a link into another file"):
        nn.load_parameters(tmp_path / "p.h5")


@pytest.mark.parametrize("depth", [1000, 50_000])
def test_a_deep_name_in_a_file_is_refused(path, depth):
    """It would make the parameters unusable; those that are there stay."""
    make([("kept", np.ones(2), True)])
    name = "a/" * depth + "w"
    if path.suffix == ".h5":
        if depth > 1000:
            pytest.skip("HDF5 itself does not write it")
        with pytest.importorskip("h5py").File(path, "w") as f:
            f[name] = np.ones(2, "f4")
    else:
        header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    with pytest.raises(ValueError, match="more than 100 scopes") as e:
        nn.load_parameters(path)
    assert isinstance(e.value, nn.Error) and len(str(e.value)) < 1000
    assert list(nn.get_parameters()) == ["kept"]
