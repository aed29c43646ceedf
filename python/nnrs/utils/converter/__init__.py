"""NNabla's converter of files, as far as files are NNabla's own. `nnrs convert` and `nnrs dump` are the same.

>>> extensions.import_name, formats.export_name
(['.nnp', '.nntxt', '.prototxt', '.protobuf', '.h5'], ['NNP'])
"""

from __future__ import annotations

from .commands import convert_files, dump_files, nnb_template
from .supported_info import extensions, formats
from .utils import (
    calc_shape_size,
    func_dict_import_config,
    func_set_export_yaml,
    func_set_exporter_funcs_opset_yaml,
    func_set_import_config,
    func_set_import_nnp,
    func_set_import_onnx_config,
    func_set_import_onnx_opset,
    func_set_nnabla_support,
    func_set_nncr_support,
    func_set_onnx_output_target_list,
    func_set_onnx_support,
    get_api_level_info,
    get_category_info,
    get_category_info_string,
    get_category_info_version,
    get_function_info,
    load_yaml_ordered,
    search_network,
    select_executor,
    type_to_pack_format,
)

__all__ = [
    "calc_shape_size",
    "convert_files",
    "dump_files",
    "extensions",
    "formats",
    "func_dict_import_config",
    "func_set_export_yaml",
    "func_set_exporter_funcs_opset_yaml",
    "func_set_import_config",
    "func_set_import_nnp",
    "func_set_import_onnx_config",
    "func_set_import_onnx_opset",
    "func_set_nnabla_support",
    "func_set_nncr_support",
    "func_set_onnx_output_target_list",
    "func_set_onnx_support",
    "get_api_level_info",
    "get_category_info",
    "get_category_info_string",
    "get_category_info_version",
    "get_function_info",
    "load_yaml_ordered",
    "nnb_template",
    "search_network",
    "select_executor",
    "type_to_pack_format",
]
