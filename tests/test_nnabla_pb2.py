"""`nnrs.utils.nnabla_pb2`: NNabla's messages by name, which the package protobuf's text_format and json_format know."""

from __future__ import annotations

import collections
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from nnrs import _messages, _protobuf
from nnrs.utils import nnabla_pb2

GOLDEN = Path(__file__).parent / "golden" / "nnp"
# NNabla 1.39's fields that are doubles: (message, field).
DOUBLES = {
    ("SELUParameter", "scale"),
    ("SELUParameter", "alpha"),
    ("ELUParameter", "alpha"),
    ("CELUParameter", "alpha"),
}
DOUBLES |= {("SoftPlusParameter", "beta"), ("DropoutParameter", "p")}
DOUBLES |= {(f"{name}Parameter", "val") for name in ("ResetNaN", "ResetInf")}
SCALARS = "Add Mul Pow RSub RDiv RPow Minimum Maximum Equal NotEqual GreaterEqual Greater LessEqual Less"
DOUBLES |= {(f"{name}ScalarParameter", "val") for name in SCALARS.split()}
# How many fields it has of each of protobuf's types: messages, floats, int64, bool, string, double, uint32.
TYPES = {11: 281, 2: 159, 3: 158, 8: 138, 9: 75, 1: 22, 13: 1}


@pytest.fixture
def text_format() -> Any:
    return pytest.importorskip("google.protobuf.text_format", reason="the package protobuf is not installed")


def trained() -> Any:
    """A message of a network with parameters."""
    nn.clear_parameters()
    y = PF.affine(F.elu(nn.Variable((2, 3)), alpha=0.1), 4)
    return nn.graph_def.create_graph_from_variable("net", y).as_proto(include_parameter=True)


def all_fields() -> list[Any]:
    messages = list(nnabla_pb2.DESCRIPTOR.message_types_by_name.values())
    messages += [inner for m in messages for inner in m.nested_types]
    return [field for m in messages for field in m.fields]


def test_messages_are_nnrs_own() -> None:
    assert nnabla_pb2.Network is _messages.message_class("Network")
    assert isinstance(trained(), nnabla_pb2.NNablaProtoBuf)
    assert len(nnabla_pb2.__all__) == 207 and "StatesEntry" not in nnabla_pb2.__all__
    assert {"Network", "DESCRIPTOR"} <= set(dir(nnabla_pb2))


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Netwrk'"):
        _ = nnabla_pb2.Netwrk
    with pytest.raises(ImportError):
        from nnrs.utils.nnabla_pb2 import Netwrk  # type: ignore[attr-defined]  # noqa: F401


def test_bytes() -> None:
    proto = trained()
    assert proto.ByteSize() == len(proto.SerializeToString()) > 0
    assert proto.IsInitialized() and nnabla_pb2.Network().ByteSize() == 0
    assert nnabla_pb2.NNablaProtoBuf.FromString(proto.SerializeToString()) == proto


def test_doubles_keep_their_digits() -> None:
    proto = nnabla_pb2.Function()
    proto.elu_param.alpha = 0.1
    assert proto.elu_param.alpha == 0.1
    solver = nnabla_pb2.AdamParameter(alpha=0.1)
    assert solver.alpha != 0.1 and abs(solver.alpha - 0.1) < 1e-8


def test_descriptors_are_nnablas(text_format: Any) -> None:
    fields = all_fields()
    assert dict(collections.Counter(f.type for f in fields)) == TYPES
    assert {(f.containing_type.name, f.name) for f in fields if f.type == 1} == DOUBLES
    assert [(f.containing_type.name, f.name) for f in fields if f.type == 13] == [("SolverState", "t")]
    entries = {f.message_type.full_name for f in fields if f.message_type and f.message_type.GetOptions().map_entry}
    assert entries == {"Solver.StatesEntry", "SolverState.StateParameterEntry"}
    function = nnabla_pb2.Function.DESCRIPTOR
    assert function.fields_by_name["repeat_param"].containing_oneof is None
    assert function.fields_by_name["affine_param"].containing_oneof.name == "parameter"
    assert nnabla_pb2.Function().DESCRIPTOR is function


def test_text_goes_there_and_back(text_format: Any) -> None:
    proto = trained()
    text = text_format.MessageToString(proto)
    assert text == str(proto) and "alpha: 0.1\n" in text
    assert text_format.Merge(text, nnabla_pb2.NNablaProtoBuf()) == proto
    assert text_format.Parse(text, nnabla_pb2.NNablaProtoBuf()) == proto


def test_maps(text_format: Any) -> None:
    text = 'solver { type: "Adam" states { key: "w" value { t: 3 state_parameter { key: "m" value { data: 0.5 } } } } }'
    proto = text_format.Merge(text, nnabla_pb2.Optimizer())
    assert proto.solver.states["w"].t == 3
    assert list(proto.solver.states["w"].state_parameter["m"].data) == [0.5]
    assert text_format.Merge(text_format.MessageToString(proto), nnabla_pb2.Optimizer()) == proto


def archives() -> list[Path]:
    return sorted(GOLDEN.glob("*.nnp"))[:8]


@pytest.mark.parametrize("path", archives(), ids=lambda p: p.stem)
def test_files_of_nnabla(path: Path, text_format: Any) -> None:
    """Protobuf's reader gives what the core's does."""
    with zipfile.ZipFile(path) as archive:
        text = next(archive.read(n) for n in archive.namelist() if n.endswith((".nntxt", ".prototxt"))).decode()
    proto = text_format.Merge(text, nnabla_pb2.NNablaProtoBuf())
    assert proto == _messages.parse_text("NNablaProtoBuf", text)
    assert text_format.Merge(text_format.MessageToString(proto), nnabla_pb2.NNablaProtoBuf()) == proto


def test_a_network_of_text_runs(text_format: Any) -> None:
    text = """network { name: "net"
      variable { name: "x" type: "Buffer" shape { dim: 2 dim: 3 } }
      variable { name: "y" type: "Buffer" shape { dim: 2 dim: 3 } }
      function { name: "f" type: "ReLU" input: "x" output: "y" relu_param { } } }"""
    proto = text_format.Merge(text, nnabla_pb2.NNablaProtoBuf())
    graph = nn.graph_def.ProtoGraph.from_proto(proto)
    assert graph(nn.Variable((2, 3))).shape == (2, 3)


def test_json(text_format: Any) -> None:
    from google.protobuf import json_format

    proto = trained()
    said = json_format.MessageToDict(proto, preserving_proto_field_name=True)
    assert said["network"][0]["name"] == "net"
    assert json_format.ParseDict(said, nnabla_pb2.NNablaProtoBuf()) == proto


@pytest.mark.parametrize(
    "text", ["netwrk { }", "network { name: 3 }", "network {", 'network { batch_size: "a" }', "\0"]
)
def test_wrong_text(text: str, text_format: Any) -> None:
    with pytest.raises(text_format.ParseError):
        text_format.Merge(text, nnabla_pb2.NNablaProtoBuf())


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the descriptors is there."""
    for name in ("google.protobuf", "google"):
        monkeypatch.setitem(sys.modules, name, None)
    for cached in (_protobuf.descriptor, _protobuf._descriptors, _protobuf.file_descriptor):
        cached.cache_clear()
    network = nnabla_pb2.Network(name="main")
    assert [(f.name, value) for f, value in network.ListFields()] == [("name", "main")]
    with pytest.raises(ImportError, match=r"needs the package protobuf\n  hint: pip install 'nnrs\[protobuf\]'"):
        _ = network.DESCRIPTOR
    with pytest.raises(ImportError, match="protobuf"):
        _ = nnabla_pb2.DESCRIPTOR


def test_messages_are_made_of_dicts() -> None:
    x = nnabla_pb2.Variable(name="x", shape={"dim": [1, 2]}, type=None)
    network = nnabla_pb2.Network(variable=[{"name": "y"}, x])
    assert [v.name for v in network.variable] == ["y", "x"] and list(network.variable[1].shape.dim) == [1, 2]
    solver = nnabla_pb2.Solver(states={"w": nnabla_pb2.SolverState(t=3)})
    assert solver.states["w"].t == 3
    assert nnabla_pb2.Variable(shape={}).HasField("shape") and not nnabla_pb2.Variable().HasField("shape")


def test_of_the_arguments_a_function_has_those_set_last() -> None:
    f = nnabla_pb2.Function()
    f.affine_param.base_axis = 2
    assert not f.relu_param.inplace and f.WhichOneof("parameter") == "affine_param"  # reading sets nothing
    f.relu_param.SetInParent()
    assert f.WhichOneof("parameter") == "relu_param" and not f.HasField("affine_param")
    assert f.affine_param.base_axis == 0 and f.WhichOneof("parameter") == "relu_param"
    f.affine_param.base_axis = 1
    f.repeat_param.repeat_id = "loop"  # stands beside them
    assert [field.name for field, _ in f.ListFields()] == ["repeat_param", "affine_param"]
    assert nnabla_pb2.Function.FromString(f.SerializeToString()).affine_param.base_axis == 1
    with pytest.raises(ValueError, match="'group': expected 'parameter'"):
        f.WhichOneof("nothing")


def test_numbers_of_fields() -> None:
    assert (nnabla_pb2.Network.NAME_FIELD_NUMBER, nnabla_pb2.Variable.SHAPE_FIELD_NUMBER) == (1, 20)
    network = nnabla_pb2.Network()
    assert network.FindInitializationErrors() == [] and network.SerializePartialToString() == b""


WRONG_VALUES = {
    "no such field": (lambda: nnabla_pb2.Variable(nam="x"), ValueError),
    "no such field within": (lambda: nnabla_pb2.Variable(shape={"dims": [1]}), ValueError),
    "no message": (lambda: nnabla_pb2.Variable(shape=3), TypeError),
    "another message": (lambda: nnabla_pb2.Network().variable.append(nnabla_pb2.Shape()), TypeError),
    "messages": (lambda: nnabla_pb2.Network().variable.extend([3]), TypeError),
    "text for a number": (lambda: nnabla_pb2.Shape().dim.append("a"), TypeError),
    "more than 64 bits": (lambda: setattr(nnabla_pb2.Network(), "batch_size", 2**63), ValueError),
    "text among floats": (lambda: nnabla_pb2.Parameter(data=["a"]), TypeError),
    "a matrix": (lambda: nnabla_pb2.Parameter(data=[[1.0], [2.0]]), ValueError),
    "an index": (lambda: nnabla_pb2.Shape().dim.insert(0, "a"), TypeError),
}


@pytest.mark.parametrize("call, kind", WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_values_that_a_field_does_not_hold(call: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as error:
        call()
    assert isinstance(error.value, nn._core.Error)
