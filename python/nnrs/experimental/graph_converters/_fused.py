"""Batch normalization, addition and ReLU as one function and as three: nnrs runs both as the same fused loop."""

from __future__ import annotations

from collections.abc import Callable

from ... import functions as F
from ..._core import Function, Variable
from ._modifier import FunctionModifier, key_of, parts_of_batch_normalization


class FusedBatchNormalizationModifier(FunctionModifier):
    """Blocks of BatchNormalization, Add2 and ReLU become `F.fused_batch_normalization` with the same parameters."""

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        block = _block(f)
        if block is None:
            return None
        add, bn = block
        # What stands in the place of the block's own inputs: `inputs[0]` is made of them.
        made = inputs[0].parent
        if made is None or made.info.type_name != "Add2":
            return None
        place = [key_of(v) for v in add.inputs].index(key_of(bn.outputs[0]))
        normalized, z = made.inputs[place].parent, made.inputs[1 - place]
        if normalized is None or normalized.info.type_name != "BatchNormalization":
            return None
        args = normalized.info.args
        x, beta, gamma, mean, variance = parts_of_batch_normalization(normalized.inputs, args)
        kept = {name: args[name] for name in ("axes", "decay_rate", "eps", "batch_stat")}
        found: Variable = F.fused_batch_normalization(x, beta, gamma, mean, variance, z, nonlinearity="relu", **kept)
        return found


def _block(f: Function) -> tuple[Function, Function] | None:
    """Addition and normalization before a ReLU, if nothing else reads what they give."""
    if f.info.type_name != "ReLU":
        return None
    add = f.inputs[0].parent
    if add is None or add.info.type_name != "Add2" or len(add.outputs[0].function_references) != 1:
        return None
    for v in add.inputs:
        bn = v.parent
        if bn is not None and bn.info.type_name == "BatchNormalization" and len(v.function_references) == 1:
            return add, bn
    return None


class UnfusedBatchNormalizationModifier(FunctionModifier):
    """Functions of type FusedBatchNormalization become batch normalization, addition and ReLU.

    nnrs makes `F.fused_batch_normalization` of those three from the start, so that its graphs have none: they stay as
    they are. What else has that type is called through `F.fused_batch_normalization`.
    """

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        if f.info.type_name != "FusedBatchNormalization":
            return None
        args = {name: v for name, v in f.info.args.items() if name not in ("no_scale", "no_bias")}
        call: Callable[..., Variable] = F.fused_batch_normalization
        return call(*inputs, **args)
