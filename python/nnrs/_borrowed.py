"""Names that NNabla's modules have only because they import them, and modules of NNabla's that are parts of one here.

Scripts take `PF.get_parameter_or_create`, or `nnabla.models.imagenet.resnet`. They are looked up when they are first
asked for, so that a module need not import what it does not use.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from ._missing import missing_name

_INITIALIZERS = "initializer.ConstantInitializer initializer.UniformInitializer initializer.calc_uniform_lim_glorot"
_MODELS = (
    "logger.logger models.utils.get_model_home models.utils.get_model_url_base "
    "models.utils.get_model_url_base_from_env utils.download.get_data_home utils.nnp_graph.NnpLoader"
)
_FILES = "utils.get_file_handle.load_files utils.get_file_handle.save_files utils.get_file_handle.FileHandlerContext"

# For each module where its names come from.
_NAMES = {
    "core.module": "core.graph_def.current_graph_builder core.graph_def.module_scope",
    "experimental.framework.data": "utils.data_iterator.data_iterator utils.data_source.DataSource",
    "experimental.framework.worker": "logger.logger",
    "experimental.parametric_function_class.affine": _INITIALIZERS,
    "experimental.parametric_function_class.batch_normalization": "initializer.ConstantInitializer",
    "experimental.parametric_function_class.convolution": _INITIALIZERS,
    "experimental.parametric_function_class.deconvolution": _INITIALIZERS,
    "experimental.parametric_function_class.embed": "initializer.UniformInitializer",
    "functions": "auto_forward.get_auto_forward context.get_current_context dtypes function_bases.function_api "
    "normalization_functions.BatchNormalizationInOutAdapter",
    "logger": "config.nnabla_config",
    "models.imagenet.base": _MODELS,
    "models.object_detection.base": _MODELS,
    "models.object_detection.yolov2": "utils.nnp_graph.NnpNetworkPass",
    "models.semantic_segmentation.base": _MODELS,
    "models.semantic_segmentation.deeplabv3plus": "utils.nnp_graph.NnpNetworkPass",
    "models.utils": "utils.download.get_data_home",
    "parameter": f"{_FILES} utils.get_file_handle.get_file_handle_save utils.get_file_handle.get_parameter_file_loader "
    "utils.get_file_handle.get_parameter_file_savers utils.nnabla_pb2",
    "parametric_functions": f"{_INITIALIZERS} initializer.NormalInitializer "
    "initializer.WeightNormalizationScaleInitializer parameter.get_parameter parameter.get_parameter_or_create",
    "solver": "utils.nnabla_pb2",
    "solvers": "solver.solver_api utils.nnabla_pb2",
    "utils.create_cache": "config.nnabla_config logger.logger utils.communicator_util.single_or_rankzero "
    "utils.data_source_loader.FileReader utils.progress.progress",
    "utils.data_iterator": "logger.logger",
    "utils.data_source": "config.nnabla_config logger.logger utils.communicator_util.single_or_rankzero "
    "utils.progress.progress",
    "utils.data_source_implements": "config.nnabla_config logger.logger utils.communicator_util.current_communicator "
    "utils.data_source_loader.FileReader utils.data_source_loader.load",
    "utils.data_source_loader": "logger.logger utils.audio_utils.auread utils.audio_utils.auresize "
    "utils.image_utils.imread utils.image_utils.imresize",
    "utils.get_file_handle": "utils.nnabla_pb2 utils.nnp_format.nnp_version",
    "utils.load": "core.graph_optimizer.IdentityRemover initializer.ConstantInitializer initializer.NormalInitializer "
    "initializer.RangeInitializer initializer.UniformInitializer utils.communicator_util.current_communicator "
    "utils.communicator_util.single_or_rankzero utils.create_cache.CreateCache utils.data_iterator.data_iterator_cache "
    "utils.data_iterator.data_iterator_csv_dataset utils.get_file_handle.get_initial_file_loader "
    "utils.get_file_handle.load_files utils.learning_rate_scheduler.CosineScheduler "
    "utils.learning_rate_scheduler.ExponentialScheduler utils.learning_rate_scheduler.LinearWarmupScheduler "
    "utils.learning_rate_scheduler.PolynomialScheduler utils.learning_rate_scheduler.StepScheduler utils.nnabla_pb2",
    "utils.qnn": "function.PythonFunction initializer.ConstantInitializer",
    "utils.save": "utils.get_file_handle.FileHandlerContext utils.get_file_handle.get_default_file_savers "
    "utils.get_file_handle.save_files utils.nnabla_pb2",
}

# For each package the modules that NNabla has in it, with their names.
_PARTS = {
    "experimental": {"parametric_function_classes": ""},
    "experimental.graph_converters": {
        "batch_norm_batchstat": "BatchNormBatchStatModifier FunctionModifier",
        "batch_normalization_folding": "AddBiasModifier BatchNormalizationFoldingModifier "
        "BatchNormalizationFoldingModifierInner BatchNormalizationFoldingOppositeModifierInner FunctionModifier",
        "batch_normalization_self_folding": "BatchNormalizationSelfFoldingModifier FunctionModifier",
        "channel_first": "ChannelFirstModifier FunctionModifier",
        "channel_last": "ChannelLastModifier FunctionModifier",
        "fused_batch_normalization": "FunctionModifier FusedBatchNormalizationModifier",
        "graph_converter": "FunctionModifier GraphConverter",
        "identity": "FunctionModifier IdentityModifier",
        "no_grad": "FunctionModifier NoGradModifier",
        "prune": "FunctionModifier PruningModifier",
        "quantize": "BatchNormalizationFoldingModifier BatchNormalizationSelfFoldingModifier FunctionModifier "
        "QuantizeNonQNNToRecordingModifier QuantizeRecordingToTrainingModifier RemoveFunctionModifier",
        "remove_function": "FunctionModifier RemoveFunctionModifier",
        "test_mode": "TestModeModifier",
        "unfused_batch_normalization": "FunctionModifier UnfusedBatchNormalizationModifier",
    },
    "models.imagenet": {
        "alexnet": "AlexNet",
        "densenet": "DenseNet",
        "googlenet": "GoogLeNet",
        "inception": "InceptionV3",
        "mobilenet": "MobileNet MobileNetV2",
        "nin": "NIN",
        "resnet": "ResNet ResNet18 ResNet34 ResNet50 ResNet101 ResNet152",
        "resnext": "ResNeXt ResNeXt50 ResNeXt101",
        "senet": "SENet",
        "shufflenet": "ShuffleNet ShuffleNet05 ShuffleNet10 ShuffleNet20",
        "squeezenet": "SqueezeNet SqueezeNetV10 SqueezeNetV11",
        "vgg": "VGG VGG11 VGG13 VGG16",
        "xception": "Xception",
    },
}


def borrowed(module: str, name: str) -> Any:
    """What NNabla's module of that name has from another one.

    Args:
        module: The module's whole name, as in `sys.modules`.
        name: What it was asked for.

    Raises:
        AttributeError: If it has no such name; with the nearest ones.

    >>> import nnrs.parametric_functions as PF
    >>> PF.get_parameter_or_create.__module__
    'nnrs.parameter'
    """
    package, _, own = module.partition(".")
    for source in _NAMES.get(own, "").split():
        if source.rpartition(".")[2] == name:
            return _found(package, source)
    raise missing_name(module, name)


def _found(package: str, source: str) -> Any:
    where, _, name = source.rpartition(".")
    holder = importlib.import_module(f"{package}.{where}" if where else package)
    return getattr(holder, name)


def borrower(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has names of others."""
    return lambda name: borrowed(module, name)


class _Parts(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds NNabla's modules whose names are in one module here, and makes them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        known = _PARTS.get(package.removeprefix("nnrs."), {}) if package.startswith("nnrs.") else {}
        return importlib.machinery.ModuleSpec(fullname, self) if name in known else None

    def exec_module(self, module: ModuleType) -> None:
        package, _, name = module.__name__.rpartition(".")
        holder = sys.modules[package]
        for part in _PARTS[package.removeprefix("nnrs.")][name].split():
            setattr(module, part, getattr(holder, part))


sys.meta_path.append(_Parts())
