"""NNabla's converter as functions, and names that cannot do their work here: each says so when it is used."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import nnrs as nn
from nnrs._messages import message_class
from nnrs.utils import converter
from nnrs.utils.converter import utils

NETWORK = str(Path(__file__).parent / "golden" / "cli" / "network.nnp")


def test_files_are_converted_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = SimpleNamespace(import_format="NNP", export_format="NNP", batch_size=7, config=None)
    text = tmp_path / "a.nntxt"
    assert converter.convert_files(args, [NETWORK], str(text))
    assert "batch_size: 7" in text.read_text()
    assert converter.dump_files(SimpleNamespace(dump_functions=True), [str(text)])
    assert "Type: Affine" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="does not write ONNX"):
        converter.convert_files(args, [NETWORK], str(tmp_path / "a.onnx"))
    with pytest.raises(RuntimeError, match="no NNB files"):
        converter.nnb_template(args, [NETWORK], str(tmp_path / "a.yaml"))
    assert converter.extensions.import_name[0] == ".nnp" and converter.formats.import_name == ["NNP"]


def test_what_is_asked_of_a_file(tmp_path: Path) -> None:
    proto = message_class("NNablaProtoBuf")()
    proto.executor.add(name="run", network_name="net")
    proto.network.add(name="net").function.add(name="f", type="ReLU")
    nnp = SimpleNamespace(protobuf=proto)
    assert converter.select_executor(nnp).name == "run"
    assert converter.search_network(nnp, "net").name == "net" and converter.search_network(nnp, "other") is None
    assert converter.func_set_import_nnp(nnp) == {"ReLU"}
    assert {"ReLU", "Affine"} <= converter.func_set_nnabla_support()
    (tmp_path / "names.txt").write_text("Affine, FLOAT32\n; ReLU\nTanh\n")
    assert converter.func_set_import_config(str(tmp_path / "names.txt")) == {"Affine", "Tanh"}
    with pytest.raises(OSError, match="func_set_import_config"):
        converter.func_set_import_config(str(tmp_path / "none.txt"))
    # As NNabla's answers.
    kinds = ["bool", "double", "float", "int64", "repeated int64", "Shape", "string", "Communicator", "x"]
    assert [converter.type_to_pack_format(kind) for kind in kinds] == ["B", "f", "f", "i", "iI", "iI", "i", "C", None]


def test_yaml_in_order() -> None:
    pytest.importorskip("yaml")
    found = converter.load_yaml_ordered("b: 1\na: {d: 2, c: 3}\n")
    assert list(found) == ["b", "a"] and list(found["a"]) == ["d", "c"]


NOT_HERE = {
    "func_dict_import_config": ("x",),
    "func_set_export_yaml": ({}, "x"),
    "func_set_exporter_funcs_opset_yaml": ([],),
    "func_set_import_onnx_config": ("x",),
    "func_set_import_onnx_opset": ("opset_9",),
    "func_set_nncr_support": (),
    "func_set_onnx_output_target_list": ([],),
    "func_set_onnx_support": (),
    "get_api_level_info": (),
    "get_category_info": (),
    "get_category_info_string": (),
    "get_category_info_version": (),
    "get_function_info": (),
}


@pytest.mark.parametrize("name", list(NOT_HERE))
def test_tables_of_other_formats(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"^{name}: nnrs") as e:
        getattr(converter, name)(*NOT_HERE[name])
    assert isinstance(e.value, nn.Error) and getattr(utils, name) is getattr(converter, name)


def test_other_names_that_cannot_be_used() -> None:
    from nnrs._array import Array
    from nnrs.ext.cuda.experimental.dali_iterator import DaliIterator

    for kind in (Array, DaliIterator):
        with pytest.raises(RuntimeError, match=f"^{kind.__name__}: nnrs .*\n  hint: ") as e:
            kind()
        assert isinstance(e.value, nn.Error)
