"""Graphs with their channels in the last axis made of such with channels in axis 1, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import functions as F
from ..._core import Function, Variable
from ..._errors import ShapeError, check_list, message
from ._modifier import NORMALIZATIONS, FunctionModifier, batch_normalization, parts_of_batch_normalization

_POOLING = ("MaxPooling", "AveragePooling", "SumPooling", "Unpooling", "Interpolate")


class _LayoutModifier(FunctionModifier):
    """What both directions share.

    Args:
        inputs: The graph's inputs, of 4 axes.
        moved: What stands in their place; None: new variables with the same values.
    """

    _name = ""
    _channel_last = False
    _axes: tuple[int, int, int, int] = (0, 1, 2, 3)
    _ending = ""

    def __init__(self, inputs: Sequence[Variable], moved: Sequence[Variable] | None) -> None:
        super().__init__()
        olds = check_list(self._name, "inputs", inputs, Variable, "Variables")
        news = [self._moved_input(v) for v in olds] if moved is None else list(moved)
        if len(olds) != len(news):
            raise ShapeError(message(self._name, "inputs", f"{len(news)} variables, as the others", len(olds)))
        for old, new in zip(olds, news, strict=True):
            self.replace_leaf(old, new)
        self._moved = news

    def _moved_input(self, v: Variable) -> Variable:
        if v.ndim != 4:
            raise ShapeError(message(self._name, "inputs", "variables of 4 axes", f"shape {v.shape}"))
        return Variable.from_numpy_array(v.d.transpose(self._axes), need_grad=v.need_grad)

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        name, args = f.info.type_name, f.info.args
        if inputs and inputs[0].ndim != 4:
            return None
        if name in ("Convolution", "Deconvolution"):
            return self._convolution(name, inputs, args)
        if name in NORMALIZATIONS:
            return self._normalization(inputs, args)
        if name in _POOLING:
            found: Variable = self._call_function(name, inputs, {**args, "channel_last": self._channel_last})
            return found
        if name == "Concatenate":
            return self._concatenation(inputs, args)
        return self._affine(inputs, args) if name == "Affine" and args["base_axis"] == 1 else None

    def _convolution(self, name: str, inputs: list[Variable], args: dict[str, Any]) -> Variable:
        w = self.new_parameter(inputs[1], f"W_{self._ending}", inputs[1].d.transpose(self._axes), inputs[1].need_grad)
        call: Callable[..., Variable] = F.convolution if name == "Convolution" else F.deconvolution
        return call(inputs[0], w, *inputs[2:], **{**args, "channel_last": self._channel_last})

    def _normalization(self, inputs: list[Variable], args: dict[str, Any]) -> Variable | None:
        if args["axes"] != [self._old_axis]:
            return None
        x, *parts = parts_of_batch_normalization(inputs, args)
        names = ("beta", "gamma", "mean", "var")
        moved = [None if p is None else self._moved_part(p, name) for p, name in zip(parts, names, strict=True)]
        given = [x, *(p for p in moved if p is not None)]
        found: Variable = batch_normalization(given, args, axes=[self._new_axis])
        return found

    def _moved_part(self, p: Variable, name: str) -> Variable:
        return self.new_parameter(p, f"{name}_{self._ending}", p.d.transpose(self._axes), p.need_grad)

    def _concatenation(self, inputs: list[Variable], args: dict[str, Any]) -> Variable | None:
        axis = self._axes.index(args["axis"] % 4)
        found: Variable = F.concatenate(*inputs, axis=axis)
        return found

    def _affine(self, inputs: list[Variable], args: dict[str, Any]) -> Variable:
        """Rows of the weights in the order in which the moved array lies in memory."""
        w, shape = inputs[1], inputs[0].shape
        before = tuple(shape[self._axes.index(i)] for i in range(1, 4))
        rows = np.arange(w.shape[0]).reshape(before).transpose([i - 1 for i in self._axes[1:]]).reshape(-1)
        moved = self.new_parameter(w, f"w_{self._ending}", w.d[rows], w.need_grad)
        call: Callable[..., Variable] = F.affine
        return call(inputs[0], moved, *inputs[2:], **args)

    @property
    def _old_axis(self) -> int:
        return 1 if self._channel_last else 3

    @property
    def _new_axis(self) -> int:
        return 3 if self._channel_last else 1


class ChannelLastModifier(_LayoutModifier):
    """A graph of images (batch, channel, height, width) becomes one of images (batch, height, width, channel).

    Convolution, deconvolution, batch normalization, pooling, interpolation, concatenation and affine change, with
    parameters of their own (W_cl, beta_cl, ...); other functions stay as they are.

    Args:
        inputs: The graph's inputs.
        inputs_cl: What stands in their place; None: new variables with the same values, which are `inputs_cl` then.
    """

    _name, _channel_last, _axes, _ending = "ChannelLastModifier", True, (0, 2, 3, 1), "cl"

    def __init__(self, inputs: Sequence[Variable], inputs_cl: Sequence[Variable] | None = None) -> None:
        super().__init__(inputs, inputs_cl)
        self.inputs_cl = self._moved


class ChannelFirstModifier(_LayoutModifier):
    """The opposite of `ChannelLastModifier`; its parameters are called W_cf, beta_cf, ...

    Args:
        inputs: The graph's inputs.
        inputs_cf: What stands in their place; None: new variables with the same values, which are `inputs_cf` then.
    """

    _name, _channel_last, _axes, _ending = "ChannelFirstModifier", False, (0, 3, 1, 2), "cf"

    def __init__(self, inputs: Sequence[Variable], inputs_cf: Sequence[Variable] | None = None) -> None:
        super().__init__(inputs, inputs_cf)
        self.inputs_cf = self._moved
