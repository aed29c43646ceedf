"""Modifiers for quantization-aware training: recorders of value ranges, then quantization by what they recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ... import functions as F
from ..._core import Function, Variable
from ..._errors import ArgumentTypeError, UnsupportedError, describe, message
from ...parameter import get_parameter_or_create, parameter_scope
from ._modifier import NORMALIZATIONS, FunctionModifier, key_of

_TWO_INPUTS = ("Add2", "Sub2", "Mul2", "Div2", "Pow2")
_ALL_INPUTS = ("Concatenate", "Stack")
_SHARED = ("Add2", "Concatenate")
_WITH_BIAS = ("Affine", "Convolution", "Deconvolution", "DepthwiseConvolution", "DepthwiseDeconvolution")
_NEVER = ("Sink", *NORMALIZATIONS)
Ranks = Mapping[Function, int]


def _data_inputs(f: Function, inputs: list[Variable]) -> int:
    """How many inputs are data; those behind them are parameters."""
    name = f.info.type_name
    return len(inputs) if name in _ALL_INPUTS else 2 if name in _TWO_INPUTS else 1


def _scope(ranks: Ranks, f: Function) -> str:
    """Where the parameters of a function's recorders lie, as Convolution-3."""
    return f"{f.info.type_name}-{ranks.get(f, -1)}"


def _axes(config: Any) -> list[int]:
    return [3] if config.channel_last else [1]


def _reached(start: Function, neighbours: Callable[[Function], Iterable[Function]]) -> set[str]:
    """The types of all functions that are reached from one."""
    seen: set[Function] = set()
    ahead = list(neighbours(start))
    while ahead:
        f = ahead.pop()
        if f not in seen:
            seen.add(f)
            ahead += neighbours(f)
    return {f.info.type_name for f in seen}


def _users(f: Function) -> list[Function]:
    """What reads a function's output; the end of the graph first, so that a loss behind it makes no difference."""
    return sorted(f.outputs[0].function_references, key=lambda user: user.info.type_name != "Sink")


def _before(f: Function) -> list[Function]:
    return [v.parent for v in f.inputs if v.parent is not None]


def _behind(f: Function) -> list[Function]:
    return f.outputs[0].function_references


class QuantizeNonQNNToRecordingModifier(FunctionModifier):
    """Recorders of value ranges at the inputs of functions.

    Args:
        functions_ranks: A number for each function, which names the scope of its recorders' parameters.
        config: `nnrs.utils.qnn.QATConfig` or one of your own.
        training: Whether the recorders record.
    """

    def __init__(self, functions_ranks: Ranks, config: Any = None, training: bool = True) -> None:
        super().__init__()
        self.functions_ranks = functions_ranks
        self._config = config
        self._training = training

    def modify(self, f: Function, inputs: list[Variable]) -> Any:
        if not self._is_recorded(f):
            return None
        recorded = self._shared(f, inputs, self._recorded(f, inputs))
        h = self._modify_as_same(f, recorded)
        users = _users(f)
        if isinstance(h, Variable) and users and self._config.recorder_position == self._config.RecorderPosition.BOTH:
            return self._record(self._config.recorder_activation, h, _scope(self.functions_ranks, users[0]), "x0")
        return h

    def _is_recorded(self, f: Function) -> bool:
        name, only = f.info.type_name, self._config.record_layers
        return name not in _NEVER and (not only or name in only) and not self._is_skipped(f)

    def _is_skipped(self, f: Function) -> bool:
        """Whether it is the first, or last, of the types that are not quantized there."""
        name, first, last = f.info.type_name, self._config.skip_inputs_layers, self._config.skip_outputs_layers
        if name in first and not _reached(f, _before).intersection(first):
            return True
        return name in last and not _reached(f, _behind).intersection(last)

    def _record(self, recorder: Any, x: Variable, scope: str, name: str) -> Variable:
        with parameter_scope(scope):
            y: Variable = recorder()(x, axes=_axes(self._config), training=self._training, name=name)
        return y

    def _recorded(self, f: Function, inputs: list[Variable]) -> list[Variable]:
        scope, data = _scope(self.functions_ranks, f), _data_inputs(f, inputs)
        found = [self._recorded_data(x, scope, f"x{i}") for i, x in enumerate(inputs[:data])]
        weight = self._config.recorder_weight
        return found + [self._record(weight, w, scope, f"w{i}") for i, w in enumerate(inputs[data:])]

    def _recorded_data(self, x: Variable, scope: str, name: str) -> Variable:
        """x behind a recorder: the one that is there, or a new one."""
        recorder = self._config.recorder_activation
        kind = recorder().name()
        users = x.function_references
        if users and users[0].info.type_name == kind:
            return users[0].outputs[0]
        if x.parent is not None and x.parent.info.type_name == kind:
            return x
        return self._record(recorder, x, scope, name)

    def _shared(self, f: Function, inputs: list[Variable], recorded: list[Variable]) -> list[Variable]:
        """What is added or joined has one range: that of the input which is computed first."""
        if f.info.type_name not in _SHARED:
            return recorded
        ranks = [inputs[0].rank, *(v.rank for v in recorded[1:])]
        first = ranks.index(min(ranks))
        made = recorded[first].parent
        scope = "" if made is None else self.get_parameter_scope(made.inputs[1])
        for i, v in enumerate(recorded):
            if i != first and v.parent is not None:
                recorded[i] = self._record(self._config.recorder_activation, v.parent.inputs[0], scope, "x0")
        return recorded


def rounding_of(function: str, config: Any) -> str:
    """How a configuration wants scales rounded to powers of two: the text of its `pow2`."""
    method = getattr(config.pow2, "value", None)
    if method not in ("CEIL", "ROUND", "FLOOR", "NOTROUND"):
        expected, hint = "pow2 of QATConfig.RoundingMethod", "RoundingMethod.ROUND for powers of two, NOTROUND for none"
        raise ArgumentTypeError(message(function, "config", expected, describe(config.pow2), hint))
    return str(method)


class QuantizeRecordingToTrainingModifier(FunctionModifier):
    """Quantization and dequantization (`QuantizeLinear`, `DequantizeLinear`) by the ranges that were recorded.

    Args:
        functions_ranks: The numbers with which the recorders were made.
        config: `nnrs.utils.qnn.QATConfig` or one of your own; its `precision_mode` is SIM_QNN.
    """

    def __init__(self, functions_ranks: Ranks, config: Any = None) -> None:
        super().__init__()
        self.functions_ranks = functions_ranks
        self._config = config
        self._rounding = rounding_of("QuantizeRecordingToTrainingModifier", config)
        if config.precision_mode.name != "SIM_QNN":
            here, expected = "QuantizeRecordingToTrainingModifier", "precision_mode SIM_QNN, the only one there is"
            raise UnsupportedError(message(here, "config", expected, config.precision_mode))

    def modify(self, f: Function, inputs: list[Variable]) -> Any:
        quantized = self._with_bias(f, self._quantized_inputs(f, inputs))
        given = self._with_shared_range(f, [self._dequantized(v) for v in quantized])
        h = self._modify_as_same(f, given)
        return h if f.info.type_name == "Sink" or not isinstance(h, Variable) else self._quantized_output(f, h)

    def _range(self, recorder: Any, x: Variable, scope: str, name: str) -> tuple[Variable | None, Variable | None]:
        c = self._config
        with parameter_scope(scope):
            found: tuple[Variable | None, Variable | None] = recorder.get_scale_zeropoint(
                x, axes=_axes(c), narrow_range=c.narrow_range, round_method=self._rounding, name=name
            )
        return found

    def _quantize(self, x: Variable, scale: Variable | None, zero_point: Variable | None) -> Variable:
        if scale is None or zero_point is None:
            return x
        c = self._config
        y: Variable = F.quantize_linear(x, scale, zero_point, c.round_mode, c.narrow_range, c.dtype)
        return y

    def _quantized_inputs(self, f: Function, inputs: list[Variable]) -> list[Variable]:
        scope, data = _scope(self.functions_ranks, f), _data_inputs(f, inputs)
        found = []
        for i, v in enumerate(inputs):
            if i >= data:
                v = self._quantize(v, *self._range(self._config.recorder_weight, v, scope, f"w{i - data}"))
            elif v.rank == 0:
                v = self._quantize(v, *self._range(self._config.recorder_activation, v, scope, f"x{i}"))
            found.append(v)
        return found

    def _with_bias(self, f: Function, inputs: list[Variable]) -> list[Variable]:
        """A bias has the scale of what it is added to: that of data times that of weights."""
        if f.info.type_name not in _WITH_BIAS or len(inputs) != 3:
            return inputs
        x, w, b = (_quantizer(v) for v in inputs)
        if x is None or w is None:
            return inputs
        with parameter_scope(_scope(self.functions_ranks, f)):
            scale = _constant("scale-b", x.inputs[1].d.reshape(1) * w.inputs[1].d.reshape(1))
            zero_point = _constant("zeropoint-b", x.inputs[2].d.reshape(1))
        if b is None:
            return inputs
        plain = b.inputs[0]
        return [*inputs[:2], plain if self._config.skip_bias else self._quantize(plain, scale, zero_point)]

    def _dequantized(self, v: Variable) -> Variable:
        for user in v.function_references:
            if user.info.type_name == "DequantizeLinear":
                return user.outputs[0]
        made = _quantizer(v)
        if made is None:
            return v
        y: Variable = F.dequantize_linear(v, made.inputs[1], made.inputs[2])
        return y

    def _with_shared_range(self, f: Function, inputs: list[Variable]) -> list[Variable]:
        """What is added or joined is quantized with the range of the input that is computed first."""
        if f.info.type_name not in _SHARED:
            return inputs
        made = [_maker(v, "DequantizeLinear") for v in inputs]
        first = min(range(len(inputs)), key=lambda i: inputs[i].rank if i == 0 or made[i] is not None else np.inf)
        source = made[first]
        scale, zero_point = (None, None) if source is None else source.inputs[1:3]
        for i, f_i in enumerate(made):
            if i != first:
                quantizer = None if f_i is None else _quantizer(f_i.inputs[0])
                plain = inputs[i] if quantizer is None else quantizer.inputs[0]
                inputs[i] = self._there_and_back(plain, scale, zero_point)
        return inputs

    def _there_and_back(self, x: Variable, scale: Variable | None, zero_point: Variable | None) -> Variable:
        if scale is None or zero_point is None:
            return x
        y: Variable = F.dequantize_linear(self._quantize(x, scale, zero_point), scale, zero_point)
        return y

    def _quantized_output(self, f: Function, h: Variable) -> Variable:
        """h with the range that was recorded at the first function which reads it."""
        key = key_of(f.outputs[0])
        for user in _users(f):
            if user.info.type_name == "Sink":
                return h
            place = 0
            if user.info.type_name in _TWO_INPUTS:
                place = max(i for i, v in enumerate(user.inputs) if key_of(v) == key)
            scope = _scope(self.functions_ranks, user)
            scale, zero_point = self._range(self._config.recorder_activation, h, scope, f"x{place}")
            if scale is not None:
                return self._quantize(h, scale, zero_point)
        return h


def _maker(v: Variable, kind: str) -> Function | None:
    return v.parent if v.parent is not None and v.parent.info.type_name == kind else None


def _quantizer(v: Variable) -> Function | None:
    return _maker(v, "QuantizeLinear")


def _constant(name: str, values: np.ndarray) -> Variable:
    return get_parameter_or_create(name, values.shape, values, False)
