"""A convolution with what mostly follows it, as a graph: batch normalization, a sum, an activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from ._core import NdArray, Variable
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    ShapeError,
    check_array,
    check_flag,
    check_integer,
    check_integers,
    check_list,
    check_number,
    describe,
    message,
)

A = TypeVar("A", Variable, NdArray)

_PLAIN = ("relu", "sigmoid", "tanh", "relu6")
_PAD_MODES = ("constant", "reflect", "repeat")
_BY_ALPHA = ("leaky_relu", "elu")
HERE = "fused_convolution"


def fused_convolution(
    x: A,
    weight: A,
    bias: A | None = None,
    beta: A | None = None,
    gamma: A | None = None,
    mean: A | None = None,
    variance: A | None = None,
    z: A | None = None,
    base_axis: int = 1,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    group: int = 1,
    channel_last: bool = False,
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    nonlinearity_args: Sequence[float] = [],  # noqa: B006 (NNabla's default)
    pad_mode: str = "constant",
    constant_value: float = 0,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> A:
    """Padding, convolution, batch normalization, sum and activation: `y = relu(batch_normalization(x * weight) + z)`.

    Args:
        x: Images of shape (.., C, spatial..) with base_axis leading axes; (.., spatial.., C) if channel_last.
        weight: Kernels of shape (O, C / group, kernel..); (O, kernel.., C / group) if channel_last.
        bias: Bias of shape (O,), where there is no batch normalization.
        beta: Shift of the batch normalization, of O elements at the channels' axis and size 1 elsewhere. This and the
            next three are given all, or none: then there is no batch normalization.
        gamma: Scale, of beta's shape.
        mean: Running mean, of beta's shape.
        variance: Running variance, of beta's shape.
        z: What is added before the activation, of y's shape.
        base_axis: Number of leading axes that only repeat the convolution.
        pad: What is put on both ends of each spatial axis: a number for each, or two for each of the last axes, as
            `F.pad` takes them; None: nothing.
        stride: Distance of windows on each spatial axis; None: 1.
        dilation: Distance of a kernel's elements on each spatial axis; None: 1.
        group: Number of groups of channels that are convolved apart.
        channel_last: Whether the channels are the last axis.
        decay_rate: How much of the running statistics each forward pass keeps.
        eps: Added to the variance.
        batch_stat: Normalize by the statistics of the batch and move the running ones; if not, by the running ones.
        nonlinearity: The activation: 'identity', 'relu', 'sigmoid', 'tanh', 'leaky_relu', 'elu' or 'relu6'.
        nonlinearity_args: For 'leaky_relu' and 'elu' [alpha].
        pad_mode: What images are padded with: 'constant', 'reflect' or 'repeat', see `pad`.
        constant_value: The constant.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Images of shape (.., O, new spatial..); channels last if channel_last.

    Raises:
        ValueError: For shapes that do not fit, bias beside a batch normalization, another activation or mode.

    Example:
        >>> import nnrs
        >>> x, w, b = nnrs.Variable((8, 3, 5, 5)), nnrs.Variable((4, 3, 3, 3)), nnrs.Variable((4,))
        >>> nnrs.functions.fused_convolution(x, w, b, pad=(1, 1), nonlinearity="tanh").shape
        (8, 4, 5, 5)
    """
    alpha = _alpha(nonlinearity, nonlinearity_args)
    _check_arrays(x=x, weight=weight, bias=bias, beta=beta, gamma=gamma, mean=mean, variance=variance, z=z)
    normalized = _is_normalized(bias, beta, gamma, mean, variance)
    outputs = _one_output(outputs)
    numbers = [check_number(HERE, "decay_rate", decay_rate), check_number(HERE, "eps", eps)]
    channel_last, batch_stat = (
        check_flag(HERE, name, v) for name, v in (("channel_last", channel_last), ("batch_stat", batch_stat))
    )
    base_axis = check_integer(HERE, "base_axis", base_axis)
    constant_value = check_number(HERE, "constant_value", constant_value)
    if not isinstance(pad_mode, str) or pad_mode not in _PAD_MODES:
        raise ArgumentError(message(HERE, "pad_mode", "'constant', 'reflect' or 'repeat'", describe(pad_mode)))
    made = _convolution(
        x, weight, bias, base_axis, pad, stride, dilation, group, channel_last, pad_mode, constant_value
    )
    # Before the normalization: a call that is refused does not move the running statistics.
    if z is not None and z.shape != made.shape:
        raise ShapeError(message(HERE, "z", f"y's shape {made.shape}", z.shape))
    for given in outputs or ():
        if given.shape != made.shape:
            raise ShapeError(message(HERE, "outputs", f"shape {made.shape}", given.shape))
    normalization = (beta, gamma, mean, variance) if normalized else None
    axis = len(made.shape) - 1 if channel_last else base_axis
    return _rest(made, normalization, [axis], numbers, batch_stat, z, nonlinearity, alpha, outputs)


def _convolution(
    x: Any,
    weight: Any,
    bias: Any,
    base_axis: int,
    pad: Any,
    stride: Any,
    dilation: Any,
    group: Any,
    channel_last: bool,
    pad_mode: str,
    constant_value: float,
) -> Any:
    """The convolution, of the padded images where the padding is not its own, zeros."""
    from . import functions as F

    if pad is not None:
        widths, is_own = _widths(x.shape, base_axis, pad, channel_last)
        if not is_own or pad_mode != "constant" or constant_value != 0:
            x, pad = F.pad(x, widths, pad_mode, constant_value), None
    return F.convolution(x, weight, bias, base_axis, pad, stride, dilation, group, channel_last)


def _rest(
    made: Any,
    normalization: Any,
    axes: list[int],
    numbers: list[float],
    batch_stat: bool,
    z: Any,
    nonlinearity: str,
    alpha: list[float],
    outputs: Any,
) -> Any:
    """What follows the convolution."""
    from . import functions as F

    if normalization is not None:
        beta, gamma, mean, variance = normalization
        decay_rate, eps = numbers
        made = F.batch_normalization(made, beta, gamma, mean, variance, axes, decay_rate, eps, batch_stat)
    if z is not None:
        made = F.add2(made, z)
    return getattr(F, nonlinearity or "identity")(made, *alpha, outputs=outputs)


def _check_arrays(**given: Any) -> None:
    for name, v in given.items():
        if v is not None or name in ("x", "weight"):
            check_array(HERE, name, v)


def _one_output(outputs: Any) -> list[NdArray] | None:
    given = None if outputs is None else check_list(HERE, "outputs", outputs, NdArray, "NdArray")
    if given is not None and len(given) != 1:
        raise ArgumentError(message(HERE, "outputs", "1 array", f"{len(given)}"))
    return given


def _alpha(nonlinearity: Any, given: Any) -> list[float]:
    """The arguments of the activation."""
    if not isinstance(nonlinearity, str) or nonlinearity not in (*_PLAIN, *_BY_ALPHA, "identity", ""):
        expected = ", ".join(repr(name) for name in ("identity", *_PLAIN[:3], *_BY_ALPHA)) + " or 'relu6'"
        raise ArgumentError(message(HERE, "nonlinearity", expected, describe(nonlinearity)))
    count = int(nonlinearity in _BY_ALPHA)
    expected = f"[alpha] for {nonlinearity!r}" if count else f"no numbers for {nonlinearity!r}"
    if given is None and not count:
        return []
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)) or np.ndim(given) == 0:
        raise ArgumentTypeError(message(HERE, "nonlinearity_args", expected, describe(given)))
    if len(given) != count:
        raise ArgumentError(message(HERE, "nonlinearity_args", expected, describe(given)))
    return [check_number(HERE, "nonlinearity_args", v) for v in given]


def _is_normalized(bias: Any, *own: Any) -> bool:
    """Whether there is a batch normalization."""
    names = ("beta", "gamma", "mean", "variance")
    absent = [name for name, v in zip(names, own, strict=True) if v is None]
    if absent and len(absent) < len(names):
        expected = "beta, gamma, mean and variance together, or none of them"
        raise ArgumentError(message(HERE, absent[0], expected, "None"))
    if bias is not None and not absent:
        expected = "None beside a batch normalization, whose beta it is"
        raise ArgumentError(message(HERE, "bias", expected, bias.shape))
    return not absent


def _widths(shape: Sequence[int], base_axis: int, pad: Any, channel_last: bool) -> tuple[list[int], bool]:
    """Widths for `F.pad`, which is about the last axes; whether a convolution can pad so itself."""
    if not -len(shape) <= base_axis < len(shape):
        raise ArgumentError(message(HERE, "base_axis", f"an axis of x {tuple(shape)}", base_axis))
    sizes = check_integers(HERE, "pad", pad, 0)
    axes = len(shape) - base_axis % len(shape) - 1
    if len(sizes) == axes:
        both = [n for p in sizes for n in (p, p)]
        return ([*both, 0, 0] if channel_last else both), True
    if len(sizes) % 2 or len(sizes) > 2 * len(shape):
        expected = f"{axes} numbers, one for each spatial axis, or two for each of the last axes"
        raise ArgumentError(message(HERE, "pad", expected, sizes))
    return sizes, False
