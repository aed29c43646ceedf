"""Modifiers that take out, replace or fix what stands in a graph, function by function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ... import functions as F
from ..._core import Function, Variable
from ..._errors import ShapeError, check_number, message
from ...parameter import get_parameters
from ._modifier import NORMALIZATIONS, FunctionModifier, batch_normalization, parts_of_batch_normalization


class IdentityModifier(FunctionModifier):
    """The same graph, over other inputs.

    Args:
        inputs: What stands in the place of inputs of the graph.
        copy_value: Copy data and gradient of those that are replaced.

    >>> import nnrs as nn
    >>> from nnrs.experimental.graph_converters import GraphConverter
    >>> x, other = nn.Variable((2, 3)), nn.Variable((5, 3))
    >>> GraphConverter([IdentityModifier({x: other})]).convert(F.relu(x)).shape
    (5, 3)
    """

    def __init__(self, inputs: Mapping[Variable, Variable] | None = None, copy_value: bool = False) -> None:
        super().__init__()
        for old, new in (inputs or {}).items():
            if copy_value:
                _copy(old, new)
            self.replace_leaf(old, new)


def _copy(old: Variable, new: Variable) -> None:
    if old.shape != new.shape:
        expected = f"an input of shape {old.shape}, as copy_value=True needs"
        raise ShapeError(message("IdentityModifier", "inputs", expected, f"shape {new.shape}"))
    new.d = old.d
    new.g = old.g


class NoGradModifier(FunctionModifier):
    """The same graph over the same parameters, which get no gradients there."""

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        parameters = {p.data for p in get_parameters(grad_only=False).values()}
        for i, v in enumerate(inputs):
            if v.data in parameters:
                inputs[i] = v.get_unlinked_variable(need_grad=False)
        return None


class RemoveFunctionModifier(FunctionModifier):
    """Functions of some types go; their first input stands in the place of their output.

    Args:
        rm_funcs: Types of functions, as `["Dropout"]`.
    """

    def __init__(self, rm_funcs: Sequence[str] = ()) -> None:
        super().__init__()
        self._rm_funcs = list(rm_funcs)

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        return inputs[0] if f.info.type_name in self._rm_funcs else None


class BatchNormBatchStatModifier(FunctionModifier):
    """Batch normalization, synchronized too, uses the running mean and variance, as it does when a network is used."""

    def modify(self, f: Function, inputs: list[Variable]) -> Any:
        if f.info.type_name not in NORMALIZATIONS:
            return None
        args = f.info.args
        y = batch_normalization(inputs, args, batch_stat=False)
        if len(f.outputs) == 1:
            return y
        *_, mean, variance = parts_of_batch_normalization(inputs, args)
        return [y, F.identity(mean), F.identity(variance)]


class TestModeModifier:
    """The modifiers for a network that is used: running statistics, and functions of some types go.

    Args:
        rm_funcs: Types of functions that go, as `["Dropout"]`.

    >>> [type(m).__name__ for m in TestModeModifier(["Dropout"])]
    ['BatchNormBatchStatModifier', 'RemoveFunctionModifier']
    """

    __test__ = False  # for pytest

    def __new__(cls, rm_funcs: Sequence[str] = ()) -> list[FunctionModifier]:  # type: ignore[misc]
        return [BatchNormBatchStatModifier(), RemoveFunctionModifier(rm_funcs)]


_PRUNED: dict[str, tuple[Callable[..., Variable], int]] = {
    "Affine": (F.affine, 1),
    "Convolution": (F.convolution, 0),
    "Deconvolution": (F.deconvolution, 1),
    "DepthwiseConvolution": (F.depthwise_convolution, 0),
    "DepthwiseDeconvolution": (F.depthwise_deconvolution, 0),
}


class PruningModifier(FunctionModifier):
    """Output channels whose weights are small become zero, in parameters of their own ("w-pruned", "b-pruned").

    Args:
        pruning_threshold: Channels go whose sum of squared weights is not above this.
        functions_to_prune: Types of functions.
        channel_last: Deconvolutions have their channels in the last axis.
    """

    def __init__(
        self, pruning_threshold: float, functions_to_prune: Sequence[str] = tuple(_PRUNED), channel_last: bool = False
    ) -> None:
        super().__init__()
        self._threshold = check_number("PruningModifier", "pruning_threshold", pruning_threshold)
        self._functions = {name: _PRUNED[name] for name in functions_to_prune if name in _PRUNED}
        self._channel_last = channel_last

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        name = f.info.type_name
        if name not in self._functions:
            return None
        call, axis = self._functions[name]
        w = inputs[1]
        axis = w.ndim - 1 if name == "Deconvolution" and self._channel_last else axis
        kept = np.sum(w.d**2, axis=tuple(i for i in range(w.ndim) if i != axis), keepdims=True) > self._threshold
        pruned = [self.new_parameter(w, "w-pruned", w.d * kept)]
        if len(inputs) == 3:
            pruned.append(self.new_parameter(w, "b-pruned", _of_channels(inputs[2].d, kept)))
        return call(inputs[0], *pruned, **f.info.args)


def _of_channels(b: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Biases of the channels that are kept; where several groups share a row of weights they share its fate."""
    mask = kept.reshape(-1)
    if b.ndim > 1:  # an affine's outputs in several axes: the first has the channels
        return b * mask.reshape(-1, *[1] * (b.ndim - 1))
    return b * np.tile(mask, b.size // mask.size)
