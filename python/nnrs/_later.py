"""NNabla's modules that are still to come: importing one is a ModuleNotFoundError that says so."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType

from ._errors import MissingModuleError

# NNabla 1.39's modules; those that nnrs has are found before this list is asked.
_MODULES = """
_arithmetic_ops _array _computation_graph _init callback communicator contrib.context core.graph_def core.graph_optimizer core.module core.modules
core.sequential core.variable_batch_size experimental.framework.data experimental.framework.evaluator
experimental.framework.trainer experimental.framework.updater experimental.framework.worker
experimental.graph_converters
experimental.parametric_function_class.affine experimental.parametric_function_class.batch_normalization
experimental.parametric_function_class.convolution experimental.parametric_function_class.deconvolution
experimental.parametric_function_class.embed experimental.parametric_function_class.module experimental.viewers
function_bases lms logger models.object_detection.base models.object_detection.draw_utils
models.object_detection.utils models.object_detection.yolov2 models.semantic_segmentation.base
models.semantic_segmentation.deeplabv3plus models.semantic_segmentation.image_preprocess
models.semantic_segmentation.utils models.imagenet models.utils monitor normalization_functions
numpy_compat_functions parameter random recompute solver solvers testing.clear_called_flag_recorder
utils.audio_utils utils.callback utils.cli utils.communicator_util utils.converter utils.create_cache
utils.data_iterator utils.data_source utils.data_source_implements utils.data_source_loader utils.dlpack
utils.download utils.factorization.cpd utils.function_profile utils.get_file_handle utils.image_utils
utils.inspection.base utils.inspection.pretty_print utils.inspection.profile utils.inspection.value_trace
utils.learning_rate_scheduler utils.load utils.nnp_format utils.nnp_graph utils.nvml utils.profiler utils.progress
utils.qnn utils.rnn utils.save utils.signature_utils
"""


def _with_packages(names: list[str]) -> frozenset[str]:
    """The names and those of the packages that they lie in."""
    parts = [name.split(".") for name in names]
    return frozenset(".".join(p[:i]) for p in parts for i in range(1, len(p) + 1))


MODULES = _with_packages(_MODULES.split())
"""NNabla's modules by name, without the package's own."""


class _Later(importlib.abc.MetaPathFinder):
    """The last finder to be asked: what it is asked for is not there."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package == "nnrs" and name in MODULES:
            text = f"{fullname} is not in this version of nnrs yet; NNabla 1.39 has it"
            raise MissingModuleError(text, name=fullname)
        return None


def install() -> None:
    """Let imports of these modules say so."""
    sys.meta_path.append(_Later())
