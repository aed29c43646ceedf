"""Files of networks that are cut, noise, contradict themselves or claim absurd sizes: an error, nothing has changed."""

from __future__ import annotations

import io
import re
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
from file_helpers import contents, fresh  # noqa: F401 - a fixture
from nnrs._messages import message_class
from nnrs.utils.nnp_graph import NnpLoader

GOLDEN = Path(__file__).parent / "golden" / "nnp"

NETWORK = """network { name: "n" batch_size: 2
  variable { name: "x" type: "Buffer" shape { dim: [-1, 3] } }
  variable { name: "w" type: "Parameter" shape { dim: [3, 2] } }
  variable { name: "h" type: "Buffer" shape { dim: [-1, 2] } }
  variable { name: "y" type: "Buffer" shape { dim: [-1, 2] } }
  function { name: "f" type: "Affine" input: ["x", "w"] output: "h" affine_param { base_axis: 1 } }
  function { name: "g" type: "ReLU" input: "h" output: "y" relu_param { } } }"""


def run(text):
    """Load a network's text and make its graph."""
    return NnpLoader(io.StringIO(text), extension=".nntxt").get_network("n")


def test_the_network_is_right_before_it_is_changed():
    assert run(NETWORK).outputs["y"].shape == (2, 2)


@pytest.mark.parametrize(
    ("old", "new", "error", "says"),
    [
        ('input: "h" output: "y"', 'input: "y" output: "y"', ValueError, "follows from its own output"),
        ('["x", "w"] output: "h"', '["y", "w"] output: "h"', ValueError, "follows from its own output"),
        ('output: "y"', 'output: "h"', ValueError, "two functions make the variable 'h'"),
        ('"Affine"', '"Afine"', ValueError, "nnrs has no function 'Afine'"),
        ('input: "h"', 'input: "q"', ValueError, "unknown variable 'q'"),
        ("dim: [3, 2]", "dim: [4, 2]", ValueError, "affine"),
        ("dim: [3, 2]", "dim: [-3, 2]", ValueError, "parameter 'w' has the size -3"),
        ("dim: [3, 2]", "dim: [1099511627776, 1099511627776]", (ValueError, MemoryError), "n"),
        ("dim: [-1, 3]", "dim: [1099511627776, 1099511627776, 3]", (ValueError, MemoryError), "n"),
        ("base_axis: 1", "base_axis: 9", ValueError, "base_axis"),
        ("base_axis: 1", "base_axes: 1", ValueError, "in line 6: 'AffineParameter' has no field 'base_axes'"),
        ("batch_size: 2", "batch_size: -1", ValueError, "the number of samples"),
        ("batch_size: 2", "batch_size: 2 repeat_info { id: 'R' times: 99999999999 }", None, ""),
        ('type: "ReLU"', 'type: "ReLU" repeat_id: "R"', None, ""),
        ('input: ["x", "w"]', 'input: "x"', ValueError, "inputs"),
        ('output: "y"', 'output: ["y", "z"]', ValueError, "unknown variable 'z'"),
        ('name: "h" type: "Buffer" shape { dim: [-1, 2] } }', 'name: "h" } variable { name: "z" }', None, ""),
    ],
)
def test_networks_that_contradict_themselves(old, new, error, says):
    assert old in NETWORK
    text = NETWORK.replace(old, new)
    if error is None:
        assert run(text).outputs["y"].shape == (2, 2)
        return
    with pytest.raises(error, match=says) as e:
        run(text)
    assert isinstance(e.value, nn.Error) and contents() == {}


def several(kind, change):
    """A change of a function of NNabla that is several in nnrs, as the file that NNabla made has it."""
    text = (GOLDEN / "composed.nntxt").read_text()
    begin = text.index(f'network {{\n  name: "{kind}"\n')
    end = text.find("\nnetwork {", begin)
    network = text[begin : None if end < 0 else end]
    assert change[0] in network
    return network.replace(*change)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        (
            "ij,jk->ik",
            ('equation: "ij,jk->ik"', 'equation: "ij,jk->iz"'),
            "argument 'equation': expected a result .* got 'ij,jk->iz'",
        ),
        ("ij,jk->ik", ('equation: "ij,jk->ik"', 'equation: "i1->"'), "argument 'equation': expected letters"),
        ("ij,jk->ik", ('equation: "ij,jk->ik"', ""), "argument 'equation': expected a term for each of the 2 arrays"),
        ("ij,jk->ik", ('equation: "ij,jk->ik"', f'equation: "{"a" * 99999},b"'), "for each label"),
        ("ij,jk->ik", ('    input: "x1"\n', ""), "expected a term for each of the 1 arrays, got 2"),
        ("ij,jk->ik", ('    input: "x0"\n    input: "x1"\n', ""), "einsum: expected at least 1 input .x., got 0"),
        ("bias", ('    input: "weight"\n', ""), "argument '(input|weight)'"),
        (
            "bias",
            ('    input: "weight"\n    input: "bias"\n', ""),
            "argument 'input': expected x and weight, then .* got 1 inputs",
        ),
        ("batch", ('    input: "variance"\n', ""), "argument 'input': expected x and weight, .* got 5 inputs"),
        ("batch", ('    input: "beta"\n    input: "gamma"\n', ""), "argument 'bias'"),
        ("z", ('"reflect"', '"wrap"'), "argument 'pad_mode': expected 'constant', 'reflect' or 'repeat', got 'wrap'"),
        ("z", ("dim: 1\n", "dim: -1\n"), "argument"),
        ("z", ("pad {\n        dim: 1", f"pad {{\n        dim: {2**62}"), "."),
        ("bias z", ("pad {\n        dim: 1", f"pad {{\n        dim: {2**63 - 1}"), "."),
        ("bias", ("base_axis: 1", f"base_axis: {-(2**63)}"), "argument 'base_axis'"),
        ("bias z", ("base_axis: 1", f"base_axis: {2**63 - 1}"), "argument 'base_axis'"),
        ("bias", ("group: 1", "group: 0"), "argument 'group'"),
        ("bias", ('"leaky_relu"', '"softmax"'), "argument 'nonlinearity': expected 'identity', .* got 'softmax'"),
        ("bias", ("nonlinearity_args: 0.3", ""), "argument 'nonlinearity_args': expected \\[alpha\\] for 'leaky_relu'"),
    ],
)
def test_functions_that_are_several_here_and_contradict_themselves(name, change, says, tmp_path):
    (tmp_path / "net.nntxt").write_text(several(name, change))
    loader = NnpLoader(tmp_path / "net.nntxt")
    with pytest.raises((ValueError, MemoryError), match=says) as e:
        loader.get_network(name)
    assert isinstance(e.value, nn.Error) and contents() == {}
    place = f"it is function '[^']*' of network '{name}' of '.*net.nntxt'"
    assert re.search(place, str(e.value)) or "variable" in str(e.value)


def test_loops_of_absurd_length():
    text = NETWORK.replace("batch_size: 2", "batch_size: 2 repeat_info { id: 'R' times: 99999999999 }")
    for old in ('type: "ReLU"', 'name: "y" type: "Buffer"'):
        with pytest.raises(ValueError, match="makes more than"):
            run(text.replace(old, old + ' repeat_id: "R"'))
    nested = "".join(f"repeat_info {{ id: 'L{i}' times: 1000 }} " for i in range(9))
    ids = ", ".join(f"'L{i}'" for i in range(9))
    with pytest.raises(ValueError, match="makes more than"):
        run(
            NETWORK.replace("batch_size: 2", "batch_size: 2 " + nested).replace(
                'type: "ReLU"', f'type: "ReLU" repeat_id: [{ids}]'
            )
        )
    wide = "recurrent_param { repeat_id: 'R' length: 60000 }"
    many = NETWORK.replace("batch_size: 2", "batch_size: 2 repeat_info { id: 'R' times: 60000 }")
    with pytest.raises(ValueError, match="makes? more than"):
        run(
            many.replace('type: "ReLU"', f'type: "RecurrentOutput" repeat_id: "R" {wide}').replace("relu_param { }", "")
        )
    with pytest.raises(ValueError, match="there is no loop 'Q'"):
        run(text.replace('type: "ReLU"', 'type: "ReLU" repeat_id: "Q"'))


def test_any_change_of_bytes_is_a_network_or_an_error(tmp_path):
    g = np.random.RandomState(3)
    for name in ("loops.nntxt", "composed.nntxt", "functions.nnp", "layers-open.nnp", "p.protobuf"):
        raw = (GOLDEN / name).read_bytes() if name != "p.protobuf" else protobuf()
        path = tmp_path / name
        for i in range(60):
            bad = bytearray(raw[: g.randint(len(raw))] if i % 5 == 0 else raw)
            for at in g.randint(0, max(len(bad), 1), g.randint(1, 6)) if bad else []:
                bad[at] = g.choice([0, 1, 0x7F, 0xFF, g.randint(256)])
            path.write_bytes(bytes(bad))
            before = contents()
            try:
                loader = NnpLoader(path)
                loader.get_network(loader.get_network_names()[0], batch_size=1)
            except (nn.Error, IndexError):
                assert contents() == before
            nn.clear_parameters()


def protobuf():
    """A network and parameters as bytes."""
    from nnrs._messages import parse_text

    proto = parse_text("NNablaProtoBuf", NETWORK)
    p = proto.parameter.add(variable_name="w", data=np.arange(6.0), need_grad=True)
    p.shape.dim.extend([3, 2])
    return proto.SerializeToString()


def test_parameters_that_claim_other_sizes(tmp_path):
    proto = message_class("NNablaProtoBuf").FromString(protobuf())
    for sizes in ([3, 3], [2**40, 2**40], [-3, -2], [6] + [1] * 200):
        proto.parameter[0].shape.dim[:] = sizes
        (tmp_path / "p.protobuf").write_bytes(proto.SerializeToString())
        with pytest.raises(ValueError, match="parameter 'w' has 6 values for sizes"):
            nn.load_parameters(tmp_path / "p.protobuf")
    proto.parameter[0].shape.dim[:] = [6]
    for name in ("", "a/" * 200 + "w", "/"):
        proto.parameter[0].variable_name = name
        (tmp_path / "p.protobuf").write_bytes(proto.SerializeToString())
        with pytest.raises(ValueError, match="names clash|more than 100 scopes"):
            nn.load_parameters(tmp_path / "p.protobuf")
    assert contents() == {}


def test_archives_that_unpack_to_absurdly_much(tmp_path):
    path = tmp_path / "bomb.nnp"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("network.nntxt", b" " * (200 << 20))
    assert path.stat().st_size < 300_000
    tracemalloc.start()
    with pytest.raises(ValueError, match="unpacks to 209715200 bytes"):
        NnpLoader(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    lying = bytearray(path.read_bytes())
    for head, at in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        place = lying.index(head) + at
        lying[place : place + 4] = (100).to_bytes(4, "little")
    path.write_bytes(bytes(lying))
    with pytest.raises(ValueError, match="cannot be unpacked"):
        NnpLoader(path)


def test_archives_of_archives_and_other_things(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as z:
        z.writestr("network.nntxt", NETWORK)
    with zipfile.ZipFile(tmp_path / "a.nnp", "w") as z:
        z.writestr("inner.nnp", inner.getvalue())
        z.writestr("notes.txt", "anything")
        z.writestr("folder/", "")
    assert NnpLoader(tmp_path / "a.nnp").get_network_names() == []
    for name, data in (("network.nntxt", b"\xff\xfe"), ("parameter.h5", b"no HDF5"), ("p.protobuf", b"\x0a\xff")):
        with zipfile.ZipFile(tmp_path / "b.nnp", "w") as z:
            z.writestr(name, data)
        with pytest.raises(ValueError, match=f"in '{name}'"):
            NnpLoader(tmp_path / "b.nnp")


def test_h5_of_chunks_and_loops(tmp_path):
    h5py = pytest.importorskip("h5py")
    values = np.random.RandomState(0).randn(7, 9).astype(np.float32)
    with h5py.File(tmp_path / "p.h5", "w") as f:
        f.create_dataset("plain", data=values, chunks=(3, 4))
        f.create_dataset("packed", data=values, chunks=(2, 5), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("one", data=values[0], chunks=(2,), compression="gzip")
        f.create_dataset("half", data=values.astype(">f8"), compression="gzip", chunks=(7, 9))
        f.create_dataset("flags", data=values > 0)
        f.create_dataset("none", shape=(0, 3), maxshape=(None, 3), chunks=(2, 3), dtype="i2")
        for i in range(300):
            f[f"many/{i:03}"] = np.int64(i)
        f["again"] = f["plain"]
    nn.load_parameters(tmp_path / "p.h5")
    found = {name: p.data.data for name, p in nn.get_parameters(grad_only=False).items()}
    for name in ("plain", "packed"):
        np.testing.assert_array_equal(found.get(name, found.get("again")), values)
    np.testing.assert_array_equal(found["one"], values[0])
    np.testing.assert_array_equal(found["half"], values.astype("f8"))
    assert found["flags"].dtype == bool and found["none"].shape == (0, 3) and found["many/299"] == 299
    nn.save_parameters(tmp_path / "q.h5")
    with h5py.File(tmp_path / "q.h5") as f:
        assert len(f["many"]) == 300 and f["many/123"][()] == 123
        np.testing.assert_array_equal(f["packed"][...], values)
    raw = (tmp_path / "p.h5").read_bytes()
    g = np.random.RandomState(4)
    for _ in range(300):
        bad = bytearray(raw)
        for at in g.randint(0, 12_000, g.randint(1, 8)):
            bad[at] = g.choice([0, 1, 0x7F, 0xFF, g.randint(256)])
        (tmp_path / "p.h5").write_bytes(bytes(bad))
        nn.clear_parameters()
        try:
            nn.load_parameters(tmp_path / "p.h5")
        except (ValueError, MemoryError):
            assert contents() == {}


def test_chunks_that_unpack_to_more_than_they_say(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "p.h5", "w") as f:
        d = f.create_dataset("a", shape=(4, 4), dtype="f4", chunks=(4, 4), compression="gzip")
        d.id.write_direct_chunk((0, 0), zlib.compress(bytes(50 << 20)))
    with pytest.raises(ValueError, match="a chunk has 68 bytes, expected 64"):
        nn.load_parameters(tmp_path / "p.h5")
