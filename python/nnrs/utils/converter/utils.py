"""What scripts ask NNabla's converter about networks in files, and lists for formats that nnrs does not write."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any, NoReturn

from ..._errors import FileError, MissingPackageError, UnsupportedError, message, reason

_FORMATS = {
    "bool": "B",
    "double": "f",
    "float": "f",
    "int64": "i",
    "repeated int64": "iI",
    "Shape": "iI",
    "string": "i",
    "Communicator": "C",
}


def type_to_pack_format(typestring: str) -> str | None:
    """The letters that NNB files have for a type of arguments; None for another type.

    >>> type_to_pack_format("Shape"), type_to_pack_format("int")
    ('iI', None)
    """
    return _FORMATS.get(typestring)


def select_executor(nnp: Any, name: str | None = None) -> Any:
    """The first executor of a file.

    Args:
        nnp: Object with the file's message as `protobuf`.
        name: Not used, as in NNabla.
    """
    return nnp.protobuf.executor[0]


def search_network(nnp: Any, name: str) -> Any:
    """The network of a name in a file; None if there is none.

    Args:
        nnp: Object with the file's message as `protobuf`.
        name: The network's name.
    """
    return next((n for n in nnp.protobuf.network if n.name == name), None)


def calc_shape_size(shape: Any, batch_size: int) -> int:
    """The number of elements of a shape.

    Args:
        shape: Message `Shape`.
        batch_size: Size of what the shape leaves open.

    >>> from nnrs.utils.nnabla_pb2 import Shape
    >>> calc_shape_size(Shape(dim=[-1, 3]), 16)
    48
    """
    return math.prod(n if n >= 0 else batch_size for n in shape.dim)


def load_yaml_ordered(stream: Any, Loader: Any = None, object_pairs_hook: Any = OrderedDict) -> Any:
    """What a YAML text says, with mappings in their order.

    Args:
        stream: Text or open file.
        Loader: Loader class of PyYAML; by default its safe one, which runs no code.
        object_pairs_hook: What makes a mapping of pairs.

    Raises:
        ImportError: If the package PyYAML is not installed.
    """
    try:
        import yaml  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        text = message("load_yaml_ordered", None, "this needs the package PyYAML", hint="pip install pyyaml")
        raise MissingPackageError(text) from error

    class Ordered(Loader or yaml.SafeLoader):  # type: ignore[misc, unused-ignore]
        """The loader with mappings of that kind."""

    def mapping(loader: Any, node: Any) -> Any:
        loader.flatten_mapping(node)
        return object_pairs_hook(loader.construct_pairs(node))

    Ordered.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, mapping)
    return yaml.load(stream, Ordered)  # noqa: S506 (a loader of the caller's, or the safe one)


def func_set_import_nnp(nnp: Any) -> set[str]:
    """The types of the functions in the network that a file's first executor runs."""
    network = search_network(nnp, select_executor(nnp).network_name)
    return set() if network is None else {f.type for f in network.function}


def func_set_nnabla_support(version_spec: Any = None) -> set[str]:
    """The types of all functions.

    Args:
        version_spec: Those of another version: not there.

    >>> "Convolution" in func_set_nnabla_support()
    True
    """
    from ..cli.func_info import function_names

    if version_spec is not None:
        _not_here("func_set_nnabla_support", "there are no lists of other versions' functions")
    return set(function_names())


def func_set_import_config(config: str) -> set[str]:
    """The names at the beginnings of a file's lines, up to a comma; lines after ';' are left out.

    Args:
        config: Path.
    """
    try:
        with open(config, encoding="utf-8") as f:
            lines = [line.strip() for line in f]
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            message("func_set_import_config", "config", f"cannot read {config!r}: {reason(error, config)}")
        ) from error
    return {line.partition(",")[0].strip() for line in lines if not line.startswith(";")}


def func_dict_import_config(config: str) -> NoReturn:
    """Types of functions for an NNB file: not there."""
    _not_here("func_dict_import_config", _NNB)


def func_set_onnx_support() -> NoReturn:
    """What ONNX files can hold: not there."""
    _not_here("func_set_onnx_support", _ONNX)


def func_set_import_onnx_config(config: str) -> NoReturn:
    """What an ONNX file should hold: not there."""
    _not_here("func_set_import_onnx_config", _ONNX)


def func_set_import_onnx_opset(opset: str) -> NoReturn:
    """What a version of ONNX has: not there."""
    _not_here("func_set_import_onnx_opset", _ONNX)


def func_set_onnx_output_target_list(func_set: Any) -> NoReturn:
    """ONNX's names of functions: not there."""
    _not_here("func_set_onnx_output_target_list", _ONNX)


def func_set_exporter_funcs_opset_yaml(func_set: Any) -> NoReturn:
    """ONNX's names of functions as YAML: not there."""
    _not_here("func_set_exporter_funcs_opset_yaml", _ONNX)


def func_set_nncr_support() -> NoReturn:
    """What NNabla's C runtime can do: not there."""
    _not_here("func_set_nncr_support", _NNB)


def func_set_export_yaml(func_dict: Any, yaml_file: str) -> NoReturn:
    """Types of functions for an NNB file, as YAML: not there."""
    _not_here("func_set_export_yaml", _NNB)


def get_api_level_info() -> NoReturn:
    """Levels of NNB: not there."""
    _not_here("get_api_level_info", _NNB)


def get_category_info_string() -> NoReturn:
    """NNabla's table of functions as YAML: not there."""
    _not_here("get_category_info_string", _TABLE)


def get_category_info_version() -> NoReturn:
    """A checksum of NNabla's table of functions: not there."""
    _not_here("get_category_info_version", _TABLE)


def get_category_info() -> NoReturn:
    """NNabla's table of functions by category: not there."""
    _not_here("get_category_info", _TABLE)


def get_function_info() -> NoReturn:
    """NNabla's table of functions: not there."""
    _not_here("get_function_info", _TABLE)


_NNB = "nnrs writes no NNB files"
_ONNX = "nnrs reads and writes no ONNX files"
_TABLE = "nnrs has a table of functions of its own, not NNabla's"


def _not_here(function: str, why: str) -> NoReturn:
    hint = "nnrs.utils.cli.func_info.function_names() tells of all functions" if why is _TABLE else None
    raise UnsupportedError(message(function, None, why, hint=hint))
