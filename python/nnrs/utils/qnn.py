"""Quantization-aware training: a network trains as usual, then records the ranges of its values, then trains quantized.

`QATScheduler` rebuilds the graphs that were registered when `step` has been called often enough: batch normalization
is folded away and recorders are put in; later functions that quantize and dequantize by the recorded ranges take their
place. Gradients pass straight through all of these.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from .._borrowed import borrower
from .._core import Function, Variable
from .._errors import ArgumentError, StateError, UnsupportedError, message
from .._visits import functions_in_order
from ..experimental import graph_converters as GC
from ..experimental.graph_converters._quantize import rounding_of
from ..logger import logger
from ..parameter import get_parameters
from ._recorders import (
    AbsMaxRecorder,
    AbsMaxRecorderCallback,
    MaxMaxRecorder,
    MaxMaxRecorderCallback,
    MaxMvaRecorder,
    MaxMvaRecorderCallback,
    MinMaxMinMaxRecorder,
    MinMaxMinMaxRecorderCallback,
    MinMaxMvaRecorder,
    MinMaxMvaRecorderCallback,
    abs_max_recorder,
    max_max_recorder,
    max_mva_recorder,
    minmax_minmax_recorder,
    minmax_mva_recorder,
)

__all__ = [
    "AbsMaxRecorder",
    "AbsMaxRecorderCallback",
    "FunctionsRankRecorder",
    "MaxMaxRecorder",
    "MaxMaxRecorderCallback",
    "MaxMvaRecorder",
    "MaxMvaRecorderCallback",
    "MinMaxMinMaxRecorder",
    "MinMaxMinMaxRecorderCallback",
    "MinMaxMvaRecorder",
    "MinMaxMvaRecorderCallback",
    "PrecisionMode",
    "QATConfig",
    "QATScheduler",
    "QATTensorRTConfig",
    "QNNState",
    "abs_max_recorder",
    "max_max_recorder",
    "max_mva_recorder",
    "minmax_minmax_recorder",
    "minmax_mva_recorder",
]

__getattr__ = borrower(__name__)


class PrecisionMode(Enum):
    """How a quantized network computes: SIM_QNN, with floats that are rounded, is the only one there is."""

    QNN = 0
    SIM_QNN = 1
    MIXED_QNN = 2


class QNNState(Enum):
    """How far a scheduler is."""

    NON_QNN = 0
    RECORDING = 1
    TRAINING = 2
    DEPLOYMENT = 3


class QATConfig:
    """What `QATScheduler` does, and when. Set what differs on an instance or in a subclass."""

    class RoundingMethod(Enum):
        """How a scale is rounded to a power of two."""

        CEIL = "CEIL"
        ROUND = "ROUND"
        FLOOR = "FLOOR"
        NOTROUND = "NOTROUND"

    class RecorderPosition(Enum):
        """Where recorders are: before a function, or behind it, too."""

        BEFORE = 0
        BOTH = 1

    ext_name: str = "cudnn"
    """Extension in which the network runs; its memory cache is emptied when graphs are rebuilt."""
    zero_point: bool = False
    """Not used: zero points are 0."""
    dtype: Any = np.int8
    """Type of quantized values."""
    precision_mode: PrecisionMode = PrecisionMode.SIM_QNN
    channel_last: bool = False
    """Whether channels are in the last axis."""
    channel_wise: bool = False
    """Not used: there is one scale for all channels."""
    niter_to_recording: int = 0
    """Calls of `step` before recording begins."""
    niter_to_training: int = -1
    """Calls of `step` before quantized training begins."""
    pow2: RoundingMethod = RoundingMethod.ROUND
    """How scales become powers of two."""
    narrow_range: bool = False
    """Whether the least value of the type is left out."""
    round_mode: str = "HALF_TO_EVEN"
    """How values are rounded: HALF_TO_EVEN or HALF_AWAY_FROM_ZERO."""
    bn_folding: bool = False
    """Fold batch normalization into the weights beside it."""
    bn_self_folding: bool = False
    """Make a scale and a shift of the batch normalizations that are left."""
    recorder_weight: Any = MinMaxMinMaxRecorderCallback
    recorder_activation: Any = MaxMvaRecorderCallback
    record_layers: Sequence[str] = ()
    """Types of functions that are quantized; none: all."""
    recorder_position: RecorderPosition = RecorderPosition.BEFORE
    skip_inputs_layers: Sequence[str] = ("Convolution", "Deconvolution")
    """Types of functions that are left as they are where the network begins."""
    skip_outputs_layers: Sequence[str] = ("Affine",)
    """Types of functions that are left as they are where the network ends."""
    learning_rate_scale: float = 0.1
    """What the learning rate is multiplied with for quantized training, once for each registered graph."""
    skip_bias: bool = False
    """Leave biases as they are."""


class QATTensorRTConfig(QATConfig):
    """What TensorRT can run: batch normalization is folded, and these functions are quantized."""

    pow2 = QATConfig.RoundingMethod.ROUND
    bn_folding = True
    bn_self_folding = True
    record_layers: Sequence[str] = ("Convolution", "Deconvolution", "Affine", "BatchMatmul", "ReLU")
    record_position: QATConfig.RecorderPosition = QATConfig.RecorderPosition.BEFORE


qat_default_config = QATTensorRTConfig()


class FunctionsRankRecorder:
    """A visitor that numbers functions, as `functions_ranks`.

    Args:
        functions_only_for_training: Types of functions that get no number, so that graphs for training and for
            evaluation have the same ones.
    """

    def __init__(self, functions_only_for_training: Sequence[str] = ("ImageAugmentation", "Dropout")) -> None:
        self.functions_only_for_training = list(functions_only_for_training)
        self.rank = 0
        self.functions_ranks: dict[Function, int] = {}

    def __call__(self, f: Function) -> None:
        if f.info.type_name not in self.functions_only_for_training:
            self.functions_ranks[f] = self.rank
            self.rank += 1


class QATScheduler:
    """Rebuilds graphs for quantization-aware training as it goes on.

    Call it with each graph's output, then `step` once an iteration, before the update. The variable that was registered
    stays: the new graph is put behind it.

    Args:
        config: When and how; `niter_to_training` has to be set, above `niter_to_recording`.
        solver: Gets the new parameters when graphs are rebuilt, and a smaller learning rate for quantized training.

    >>> import nnrs as nn, nnrs.parametric_functions as PF
    >>> config = QATConfig()
    >>> config.niter_to_recording, config.niter_to_training = 1, 3
    >>> config.skip_outputs_layers = []
    >>> y = PF.affine(Variable.from_numpy_array(np.ones((2, 3))), 4, name="qat")
    >>> scheduler = QATScheduler(config)
    >>> scheduler(y)
    >>> for _ in range(4):
    ...     y.forward()
    ...     scheduler.step()
    >>> scheduler.state, y.parent.inputs[0].parent.info.type_name
    (<QNNState.TRAINING: 2>, 'DequantizeLinear')
    """

    def __init__(self, config: QATConfig = qat_default_config, solver: Any = None) -> None:
        if config.niter_to_recording < 0 or config.niter_to_training <= config.niter_to_recording:
            expected = "niter_to_recording of 0 or more and niter_to_training above it"
            given = f"{config.niter_to_recording} and {config.niter_to_training}"
            raise ArgumentError(message("QATScheduler", "config", expected, given))
        rounding_of("QATScheduler", config)
        self.config = config
        self.solver = solver
        self.counter = 0
        self.state = QNNState.NON_QNN
        self.registry: list[tuple[Variable, bool]] = []

    def __call__(self, pred: Variable, training: bool = True) -> None:
        """Register a graph by its output; `training=False`: for evaluation, its recorders record nothing."""
        self.registry.append((pred, training))

    def step(self) -> None:
        """Count an iteration; when it is time, rebuild all registered graphs."""
        if self.counter == self.config.niter_to_recording:
            self._begin(QNNState.RECORDING, self._to_recording)
        elif self.counter == self.config.niter_to_training:
            self._begin(QNNState.TRAINING, self._to_training)
        self.counter += 1

    def _begin(self, state: QNNState, rebuild: Callable[[Variable, bool], None]) -> None:
        if self.config.ext_name in ("cuda", "cudnn"):
            _clear_memory_cache()
        for pred, training in self.registry:
            rebuild(pred, training)
            self._register_parameters()
            if state == QNNState.TRAINING and self.solver is not None:
                self.solver.set_learning_rate(self.solver.learning_rate() * self.config.learning_rate_scale)
            logger.info("QATScheduler: %s -> %s: %s", self.state.name, state.name, pred)
        self.state = state

    def _register_parameters(self) -> None:
        if self.solver is not None and (self.config.bn_folding or self.config.bn_self_folding):
            self.solver.set_parameters(get_parameters(grad_only=True))

    def _to_recording(self, pred: Variable, training: bool) -> None:
        c = self.config
        modifiers: list[Any] = []
        if c.bn_folding:
            modifiers += [GC.BatchNormalizationFoldingModifier(opposite, c.channel_last) for opposite in (False, True)]
        if c.bn_self_folding:
            modifiers.append(GC.BatchNormalizationSelfFoldingModifier())
        if modifiers:
            _rebuild(pred, [GC.UnfusedBatchNormalizationModifier(), *modifiers])
        _rebuild(pred, [GC.QuantizeNonQNNToRecordingModifier(_ranks(pred), c, training)])
        pred.need_grad = False

    def _to_training(self, pred: Variable, training: bool) -> None:
        c = self.config
        _rebuild(pred, [GC.RemoveFunctionModifier([c.recorder_activation().name(), c.recorder_weight().name()])])
        _rebuild(pred, [GC.QuantizeRecordingToTrainingModifier(_ranks(pred), c)])

    def save(
        self,
        fname: str | os.PathLike[str],
        inputs: Any,
        batch_size: int = 1,
        net_name: str = "net",
        deploy: bool = False,
    ) -> None:
        """Save the graphs for evaluation, those registered with `training=False`, as a `.nnp` file; the last one stays.

        Args:
            fname: Path of the file.
            inputs: Variable, or list of such: the network's inputs, called x0, x1, ... in the file.
            batch_size: The network's batch size.
            net_name: The network's name.
            deploy: For networks of integers, which are not there yet.
        """
        if deploy:
            raise UnsupportedError(message("QATScheduler.save", "deploy", "networks of integers are not there yet"))
        graphs = [pred for pred, training in self.registry if not training]
        if not graphs:
            why = "no graph was registered with training=False"
            raise StateError(message("QATScheduler.save", None, why))
        save = importlib.import_module("nnrs.utils.save").save
        names = {f"x{i}": v for i, v in enumerate(inputs if isinstance(inputs, (list, tuple)) else [inputs])}
        network = {"name": net_name, "batch_size": batch_size, "outputs": {"y0": graphs[-1]}, "names": names}
        executor = {"name": "runtime", "network": net_name, "data": list(names), "output": ["y0"]}
        save(fname, {"networks": [network], "executors": [executor]})


def _ranks(pred: Variable) -> dict[Function, int]:
    recorder = FunctionsRankRecorder()
    for f in functions_in_order(pred):
        recorder(f)
    return recorder.functions_ranks


def _rebuild(pred: Variable, modifiers: list[Any]) -> None:
    """Put what the modifiers make of a graph behind its output."""
    made = GC.GraphConverter(modifiers).convert(pred)
    if made is not pred:
        pred.rewire_on(made)


def _clear_memory_cache() -> None:
    """Empty the GPU's, if there is one: the default configuration speaks of cudnn."""
    from ..ext import cuda

    with contextlib.suppress(UnsupportedError):
        cuda.clear_memory_cache()
