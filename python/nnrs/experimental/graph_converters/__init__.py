"""Networks rebuilt: batch normalization folded away, functions removed, layouts changed, quantization put in.

`GraphConverter` makes a new graph over the same parameters; modifiers say what changes. One of your own is a subclass
of `FunctionModifier`.
"""

from __future__ import annotations

from ._folding import (
    AddBiasModifier,
    BatchNormalizationFoldingModifier,
    BatchNormalizationFoldingModifierInner,
    BatchNormalizationFoldingOppositeModifierInner,
    BatchNormalizationSelfFoldingModifier,
)
from ._fused import FusedBatchNormalizationModifier, UnfusedBatchNormalizationModifier
from ._layout import ChannelFirstModifier, ChannelLastModifier
from ._modifier import FunctionModifier, GraphConverter
from ._quantize import QuantizeNonQNNToRecordingModifier, QuantizeRecordingToTrainingModifier
from ._simple import (
    BatchNormBatchStatModifier,
    IdentityModifier,
    NoGradModifier,
    PruningModifier,
    RemoveFunctionModifier,
    TestModeModifier,
)

__all__ = [
    "AddBiasModifier",
    "BatchNormBatchStatModifier",
    "BatchNormalizationFoldingModifier",
    "BatchNormalizationFoldingModifierInner",
    "BatchNormalizationFoldingOppositeModifierInner",
    "BatchNormalizationSelfFoldingModifier",
    "ChannelFirstModifier",
    "ChannelLastModifier",
    "FunctionModifier",
    "FusedBatchNormalizationModifier",
    "GraphConverter",
    "IdentityModifier",
    "NoGradModifier",
    "PruningModifier",
    "QuantizeNonQNNToRecordingModifier",
    "QuantizeRecordingToTrainingModifier",
    "RemoveFunctionModifier",
    "TestModeModifier",
    "UnfusedBatchNormalizationModifier",
]
