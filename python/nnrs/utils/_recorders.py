"""Recorders of value ranges: functions that hand on their input and note its statistics in parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from .. import functions as F
from .._core import Context, NdArray, Variable
from .._errors import ArgumentError, ShapeError, message
from .._modes import get_current_context
from ..function import PythonFunction
from ..initializer import ConstantInitializer
from ..parameter import get_parameter, get_parameter_or_create

_BITS = 8
_LEAST = 1e-24
_ROUND: dict[str, Callable[[np.ndarray], np.ndarray]] = {"CEIL": np.ceil, "ROUND": np.round, "FLOOR": np.floor}


class _Recorder(PythonFunction):
    """Its input, unchanged; when it runs, the statistics of the input go into the parameters behind it."""

    _parameters = 1

    def __init__(self, ctx: Context, training: bool = True) -> None:
        super().__init__(ctx)
        self.training = training

    @property
    def name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs: list[Variable], outputs: list[Variable]) -> None:
        x, *statistics = inputs
        if len(statistics) != self._parameters:
            raise ArgumentError(message(self.name, "inputs", f"data and {self._parameters} statistics", len(inputs)))
        for v in statistics:
            if v.ndim != x.ndim or v.size != 1:
                raise ShapeError(message(self.name, "inputs", f"a statistic of {x.ndim} axes of 1", f"shape {v.shape}"))
        outputs[0].reset_shape(x.shape, True)

    def forward_impl(self, inputs: list[Variable], outputs: list[Variable]) -> None:
        x, *statistics = (v.data for v in inputs)
        outputs[0].data.copy_from(x)
        if self.training:
            self._record(x, *statistics)

    def _record(self, x: NdArray, *statistics: NdArray) -> None:
        raise NotImplementedError

    def backward_impl(
        self, inputs: list[Variable], outputs: list[Variable], propagate_down: list[bool], accum: list[bool]
    ) -> None:
        if not propagate_down[0]:
            return
        dx, dy = inputs[0].grad, outputs[0].grad
        if accum[0]:
            dx += dy
        else:
            dx.copy_from(dy)

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        return False

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        return False


class _MovingRecorder(_Recorder):
    """A recorder of moving averages."""

    def __init__(self, ctx: Context, decay: float = 0.99, training: bool = True) -> None:
        super().__init__(ctx, training)
        self.decay = decay

    def _move(self, average: NdArray, now: NdArray) -> None:
        F.identity(self.decay * average + (1 - self.decay) * now, outputs=[average])


class MinMaxMinMaxRecorder(_Recorder):
    """Records the least and greatest values so far; called with data, least and greatest."""

    _parameters = 2

    def _record(self, x: NdArray, *statistics: NdArray) -> None:
        low, high = statistics
        F.minimum2(low, F.min(x, keepdims=True), outputs=[low])
        F.maximum2(high, F.max(x, keepdims=True), outputs=[high])


class MinMaxMvaRecorder(_MovingRecorder):
    """Records moving averages of the least and greatest values; called with data, least and greatest."""

    _parameters = 2

    def _record(self, x: NdArray, *statistics: NdArray) -> None:
        self._move(statistics[0], F.min(x, keepdims=True))
        self._move(statistics[1], F.max(x, keepdims=True))


class AbsMaxRecorder(_Recorder):
    """Records the greatest absolute value so far; called with data and that value."""

    def _record(self, x: NdArray, *statistics: NdArray) -> None:
        F.maximum2(statistics[0], F.max(F.abs(x), keepdims=True), outputs=[statistics[0]])


class MaxMaxRecorder(_Recorder):
    """Records the greatest value so far; called with data and that value."""

    def _record(self, x: NdArray, *statistics: NdArray) -> None:
        F.maximum2(statistics[0], F.max(x, keepdims=True), outputs=[statistics[0]])


class MaxMvaRecorder(_MovingRecorder):
    """Records a moving average of the greatest value; called with data and that average."""

    def _record(self, x: NdArray, *statistics: NdArray) -> None:
        self._move(statistics[0], F.max(x, keepdims=True))


def minmax_minmax_recorder(x: Variable, m: Variable, M: Variable, training: bool = True) -> Variable:
    """x, with its least and greatest values so far recorded in m and M.

    >>> x = Variable.from_numpy_array([[-1.0, 3.0]])
    >>> m, M = Variable.from_numpy_array([[0.0]]), Variable.from_numpy_array([[0.0]])
    >>> minmax_minmax_recorder(x, m, M).forward()
    >>> m.d.item(), M.d.item()
    (-1.0, 3.0)
    """
    return _applied(MinMaxMinMaxRecorder(get_current_context(), training), x, m, M)


def minmax_mva_recorder(x: Variable, m: Variable, M: Variable, decay: float = 0.99, training: bool = True) -> Variable:
    """x, with moving averages of its least and greatest values recorded in m and M."""
    return _applied(MinMaxMvaRecorder(get_current_context(), decay, training), x, m, M)


def abs_max_recorder(x: Variable, M: Variable, training: bool = True) -> Variable:
    """x, with its greatest absolute value so far recorded in M."""
    return _applied(AbsMaxRecorder(get_current_context(), training), x, M)


def max_max_recorder(x: Variable, M: Variable, training: bool = True) -> Variable:
    """x, with its greatest value so far recorded in M."""
    return _applied(MaxMaxRecorder(get_current_context(), training), x, M)


def max_mva_recorder(x: Variable, M: Variable, decay: float = 0.99, training: bool = True) -> Variable:
    """x, with a moving average of its greatest value recorded in M."""
    return _applied(MaxMvaRecorder(get_current_context(), decay, training), x, M)


def _applied(recorder: _Recorder, *inputs: Variable) -> Variable:
    y: Variable = recorder(*inputs)
    return y


def _scale_and_zero_point(
    x: Variable, name: str, is_pair: bool, narrow_range: bool, round_method: str
) -> tuple[Variable | None, Variable | None]:
    """The parameters scale-<name> and zeropoint-<name>, made of the statistics in this scope; None without these."""
    if all(get_parameter(f"{letter}-{name}") is None for letter in ("mM" if is_pair else "M")):
        return None, None
    shape = (1,) * x.ndim
    high = get_parameter_or_create(f"M-{name}", shape).d
    width = high - get_parameter_or_create(f"m-{name}", shape).d if is_pair else 2 * high
    scale = np.maximum(width, _LEAST) / (2**_BITS - (2 if narrow_range else 1))
    rounded = _ROUND.get(round_method)
    scale = scale if rounded is None else 2 ** rounded(np.log(scale) / np.log(2))
    zero_point = get_parameter_or_create(f"zeropoint-{name}", shape, np.zeros(shape), False)
    return get_parameter_or_create(f"scale-{name}", shape, scale, False), zero_point


class _Callback:
    """Makes a recorder with parameters for its statistics, and scale and zero point of these."""

    _function: ClassVar[Callable[..., Variable]]
    _is_pair = False

    def name(self) -> str:
        """The type of function that it puts in."""
        return type(self).__name__.removesuffix("Callback")

    def __call__(self, x: Variable, axes: Sequence[int] = (1,), training: bool = True, name: str = "") -> Variable:
        """x behind a recorder with the parameters M-<name>, and m-<name>, of this scope. `axes` is not used."""
        shape = (1,) * x.ndim
        letters = "mM" if self._is_pair else "M"
        statistics = [get_parameter_or_create(f"{letter}-{name}", shape, ConstantInitializer()) for letter in letters]
        return type(self)._function(x, *statistics, training=training)


class MinMaxMinMaxRecorderCallback(_Callback):
    """Puts in a `MinMaxMinMaxRecorder`."""

    _function: ClassVar[Callable[..., Variable]] = staticmethod(minmax_minmax_recorder)
    _is_pair = True

    @staticmethod
    def get_scale_zeropoint(
        x: Variable,
        axes: Sequence[int] = (1,),
        narrow_range: bool = False,
        round_method: str = "NOTROUND",
        name: str = "",
    ) -> tuple[Variable | None, Variable | None]:
        """Scale and zero point of the range from m-<name> to M-<name> in this scope; None where it was not recorded."""
        return _scale_and_zero_point(x, name, True, narrow_range, round_method)


class MinMaxMvaRecorderCallback(MinMaxMinMaxRecorderCallback):
    """Puts in a `MinMaxMvaRecorder`."""

    _function: ClassVar[Callable[..., Variable]] = staticmethod(minmax_mva_recorder)


class AbsMaxRecorderCallback(_Callback):
    """Puts in an `AbsMaxRecorder`."""

    _function: ClassVar[Callable[..., Variable]] = staticmethod(abs_max_recorder)

    @staticmethod
    def get_scale_zeropoint(
        x: Variable,
        axes: Sequence[int] = (1,),
        narrow_range: bool = False,
        round_method: str = "NOTROUND",
        name: str = "",
    ) -> tuple[Variable | None, Variable | None]:
        """Scale and zero point of the range from -M to M, of M-<name> in this scope; None where it was not recorded."""
        return _scale_and_zero_point(x, name, False, narrow_range, round_method)


class MaxMaxRecorderCallback(AbsMaxRecorderCallback):
    """Puts in a `MaxMaxRecorder`."""

    _function: ClassVar[Callable[..., Variable]] = staticmethod(max_max_recorder)


class MaxMvaRecorderCallback(AbsMaxRecorderCallback):
    """Puts in a `MaxMvaRecorder`."""

    _function: ClassVar[Callable[..., Variable]] = staticmethod(max_mva_recorder)
