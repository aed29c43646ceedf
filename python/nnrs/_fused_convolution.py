"""A convolution with what mostly follows it, batch normalization, a sum, an activation: the engine puts it together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from . import _core
from ._core import NdArray, Variable
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    check_array,
    check_flag,
    check_integers,
    check_number,
    check_one_output,
    describe,
    message,
)

A = TypeVar("A", Variable, NdArray)

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
    if not isinstance(nonlinearity, str) or not isinstance(pad_mode, str):
        name, value = ("pad_mode", pad_mode) if isinstance(nonlinearity, str) else ("nonlinearity", nonlinearity)
        raise ArgumentTypeError(message(HERE, name, "a str", describe(value)))
    alpha = _numbers(nonlinearity_args)
    given = {"x": x, "weight": weight, "bias": bias, "beta": beta, "gamma": gamma, "mean": mean}
    given |= {"variance": variance, "z": z}
    _check_arrays(**given)
    _check_together(beta=beta, gamma=gamma, mean=mean, variance=variance)
    output = check_one_output(HERE, outputs)
    pads, strides, dilations = _whole("pad", pad), _whole("stride", stride), _whole("dilation", dilation)
    (base_axis,), (group,) = _whole("base_axis", [base_axis]), _whole("group", [group])
    return _core.fused_convolution(  # type: ignore[no-any-return]
        list(given.values()),
        (base_axis, pads, strides, dilations, group, check_flag(HERE, "channel_last", channel_last)),
        (
            check_number(HERE, "decay_rate", decay_rate),
            check_number(HERE, "eps", eps),
            check_flag(HERE, "batch_stat", batch_stat),
        ),
        (nonlinearity, alpha),
        (pad_mode, check_number(HERE, "constant_value", constant_value)),
        output[0] if output else None,
    )


def _check_arrays(**given: Any) -> None:
    for name, v in given.items():
        if v is not None or name in ("x", "weight"):
            check_array(HERE, name, v)


def _check_together(**given: Any) -> None:
    absent = [name for name, v in given.items() if v is None]
    if absent and len(absent) < len(given):
        expected = "beta, gamma, mean and variance together, or none of them"
        raise ArgumentError(message(HERE, absent[0], expected, "None"))


def _whole(name: str, given: Any) -> Any:
    """Numbers of 64 bits; None for None."""
    found = None if given is None else check_integers(HERE, name, given)
    for n in found or ():
        if not -(2**63) <= n < 2**63:
            raise ArgumentError(message(HERE, name, "an int of 64 bits", n))
    return found


def _numbers(given: Any) -> list[float]:
    """The arguments of the activation."""
    if given is None:
        return []
    if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)) or np.ndim(given) == 0:
        raise ArgumentTypeError(message(HERE, "nonlinearity_args", "a list of numbers", describe(given)))
    return [check_number(HERE, "nonlinearity_args", v) for v in given]
