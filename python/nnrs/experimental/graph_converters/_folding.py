"""Batch normalization folded away: into the weights of a neighbour, or to one scale and shift."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import functions as F
from ..._core import Function, Variable
from ._modifier import NORMALIZATIONS, FunctionModifier, parts_of_batch_normalization

_CALLS: dict[str, Callable[..., Variable]] = {
    "Affine": F.affine,
    "Convolution": F.convolution,
    "Deconvolution": F.deconvolution,
}


def _is(f: Function | None, *types: str) -> bool:
    return f is not None and f.info.type_name in types


def _scale_and_shift(bn: Function) -> tuple[np.ndarray, np.ndarray]:
    """With its running statistics it is x times the first plus the second, both in its parameters' shape."""
    _, beta, gamma, mean, variance = parts_of_batch_normalization(bn.inputs, bn.info.args)
    scale = (1.0 if gamma is None else gamma.d) / np.sqrt(variance.d + bn.info.args["eps"])
    return scale, (0.0 if beta is None else beta.d) - mean.d * scale


def _channel_axis(f: Function, channel_last: bool) -> int:
    """The axis that holds the channels of a function's input and output."""
    return f.outputs[0].ndim - 1 if channel_last and f.info.type_name != "Affine" else 1


def _normalizes_channels(bn: Function, f: Function, channel_last: bool) -> bool:
    axes: list[int] = bn.info.args["axes"]
    axis = _channel_axis(f, channel_last)
    base = f.info.args["base_axis"]
    is_plain = _is(f, "Affine") and f.inputs[1].ndim == 2 and f.outputs[0].ndim == 2
    return len(axes) == 1 and axes[0] % bn.inputs[0].ndim == axis and (base == 1 and (is_plain or not _is(f, "Affine")))


class AddBiasModifier(FunctionModifier):
    """Affine, convolution and deconvolution without a bias get one of zeros ("b") beside a batch normalization."""

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        if not _is(f, *_CALLS) or len(inputs) == 3:
            return None
        if not _is(f.inputs[0].parent, *NORMALIZATIONS) and not any(
            _is(user, *NORMALIZATIONS) for user in f.outputs[0].function_references
        ):
            return None
        b = self.new_parameter(inputs[1], "b", np.zeros(_bias_shape(f)))
        return _CALLS[f.info.type_name](*inputs, b, **f.info.args)


def _bias_shape(f: Function) -> tuple[int, ...]:
    w = f.inputs[1].shape
    if _is(f, "Affine"):
        return w[1:]
    if _is(f, "Convolution"):
        return (w[0],)
    return ((w[-1] if f.info.args["channel_last"] else w[1]) * f.info.args["group"],)


class BatchNormalizationFoldingModifierInner(FunctionModifier):
    """Affine, convolution or deconvolution takes in the batch normalization behind it ("w-folded", "b-folded").

    Args:
        channel_last: Channels are in the last axis.
    """

    def __init__(self, channel_last: bool = False) -> None:
        super().__init__()
        self._channel_last = channel_last

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        if _is(f, *NORMALIZATIONS):
            return inputs[0] if self._takes_in(f.inputs[0].parent) else None
        if not self._takes_in(f):
            return None
        w, b = self._folded(f, f.outputs[0].function_references[0])
        folded = [
            self.new_parameter(inputs[1], "w-folded", w, inputs[1].need_grad),
            self.new_parameter(inputs[1], "b-folded", b, inputs[2].need_grad if len(inputs) == 3 else True),
        ]
        return _CALLS[f.info.type_name](inputs[0], *folded, **f.info.args)

    def _takes_in(self, f: Function | None) -> bool:
        if f is None or not _is(f, *_CALLS):
            return False
        users = f.outputs[0].function_references
        return (
            len(users) == 1 and _is(users[0], *NORMALIZATIONS) and _normalizes_channels(users[0], f, self._channel_last)
        )

    def _folded(self, f: Function, bn: Function) -> tuple[np.ndarray, np.ndarray]:
        scale, shift = (a.reshape(-1) for a in _scale_and_shift(bn))
        w = f.inputs[1].d
        b = scale * f.inputs[2].d.reshape(-1) + shift if len(f.inputs) == 3 else shift
        if _is(f, "Affine"):
            return w * scale, b
        if _is(f, "Convolution"):
            return w * scale.reshape(-1, *[1] * (w.ndim - 1)), b
        return _by_group(w, scale, f.info.args["group"], self._channel_last), b


def _by_group(w: np.ndarray, scale: np.ndarray, group: int, channel_last: bool) -> np.ndarray:
    """Weights of a deconvolution (in, out of a group, kernel) times a number for each output channel."""
    axis = w.ndim - 1 if channel_last else 1
    sizes = [1] * (w.ndim + 1)
    sizes[0], sizes[axis + 1] = group, w.shape[axis]
    return (w.reshape(group, -1, *w.shape[1:]) * scale.reshape(sizes)).reshape(w.shape)


class BatchNormalizationFoldingOppositeModifierInner(FunctionModifier):
    """Affine, convolution or deconvolution takes in the batch normalization before it ("w-folded", "b-folded").

    Only where that is exact: all that reads the normalization takes it in, without padding and groups.

    Args:
        channel_last: Channels are in the last axis.
    """

    def __init__(self, channel_last: bool = False) -> None:
        super().__init__()
        self._channel_last = channel_last

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        if _is(f, *NORMALIZATIONS):
            return inputs[0] if self._is_taken_in(f) else None
        bn = f.inputs[0].parent if f.inputs else None
        if bn is None or not _is(f, *_CALLS) or not self._is_taken_in(bn):
            return None
        w, b = self._folded(f, bn)
        folded = [
            self.new_parameter(inputs[1], "w-folded", w, inputs[1].need_grad),
            self.new_parameter(inputs[1], "b-folded", b, inputs[2].need_grad if len(inputs) == 3 else True),
        ]
        return _CALLS[f.info.type_name](inputs[0], *folded, **f.info.args)

    def _is_taken_in(self, bn: Function) -> bool:
        users = bn.outputs[0].function_references if _is(bn, *NORMALIZATIONS) else []
        return bool(users) and all(self._takes_in(f, bn) for f in users)

    def _takes_in(self, f: Function, bn: Function) -> bool:
        if not _is(f, *_CALLS) or f.inputs[0].parent != bn:
            return False
        args = f.info.args
        if _is(f, "Affine"):
            return len(bn.info.args["axes"]) == 1 and args["base_axis"] == 1 and f.inputs[1].ndim == 2
        # A deconvolution's output is not the sum of all its weights at its border, nor between strides.
        is_exact = _is(f, "Convolution") and not any(args["pad"]) and args["group"] == 1
        return is_exact and _normalizes_channels(bn, f, self._channel_last)

    def _folded(self, f: Function, bn: Function) -> tuple[np.ndarray, np.ndarray]:
        scale, shift = _scale_and_shift(bn)
        w = f.inputs[1].d
        if _is(f, "Affine"):
            one = np.ones((1, *bn.inputs[0].shape[1:]))
            factor, offset = ((one * a).reshape(-1, 1) for a in (scale, shift))
        else:
            sizes = [1] * w.ndim
            sizes[w.ndim - 1 if self._channel_last else 1] = -1
            factor, offset = scale.reshape(sizes), shift.reshape(sizes)
        rest = 0 if _is(f, "Affine") else tuple(range(1, w.ndim))
        b = np.sum(w * offset, axis=rest)
        return w * factor, b + f.inputs[2].d.reshape(b.shape) if len(f.inputs) == 3 else b


class BatchNormalizationFoldingModifier:
    """The modifiers that fold batch normalization, with its running statistics, into the weights beside it.

    Args:
        opposite: Into what stands behind it; else into what stands before it.
        channel_last: Channels are in the last axis.

    >>> import nnrs as nn, nnrs.parametric_functions as PF
    >>> from nnrs.experimental.graph_converters import GraphConverter
    >>> y = PF.batch_normalization(PF.convolution(nn.Variable((1, 3, 8, 8)), 4, (3, 3)), batch_stat=False)
    >>> GraphConverter(BatchNormalizationFoldingModifier()).convert(y).parent.info.type_name
    'Convolution'
    """

    def __new__(cls, opposite: bool = False, channel_last: bool = False) -> list[FunctionModifier]:  # type: ignore[misc]
        if opposite:
            return [AddBiasModifier(), BatchNormalizationFoldingOppositeModifierInner(channel_last)]
        return [AddBiasModifier(), BatchNormalizationFoldingModifierInner(channel_last)]


class BatchNormalizationSelfFoldingModifier(FunctionModifier):
    """Batch normalization, with its running statistics, becomes `c0 * x + c1` with two parameters.

    Args:
        name: Scope of the parameters, which are called c0-<name>-<number> and c1-<name>-<number>.
    """

    def __init__(self, name: str = "bn-self-folding") -> None:
        super().__init__()
        self._name = name
        self._count = 0

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        if not _is(f, *NORMALIZATIONS):
            return None
        scale, shift = _scale_and_shift(f)
        number, self._count = self._count, self._count + 1
        c0 = self.parameter_in(self._name, f"c0-{self._name}-{number}", scale)
        c1 = self.parameter_in(self._name, f"c1-{self._name}-{number}", shift)
        found: Variable = c0 * inputs[0] + c1
        return found

    def __finish__(self) -> None:
        self._count = 0
