"""A convolution with what mostly follows it, as a graph: batch normalization, a sum, an activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ._core import NdArray, Variable
from ._errors import ArgumentError, ShapeError, check_type, message

A = TypeVar("A", Variable, NdArray)

_PLAIN = ("relu", "sigmoid", "tanh", "relu6")
_PAD_MODES = ("constant", "reflect", "repeat")
_BY_ALPHA = ("leaky_relu", "elu")


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
        pad: What is put on both ends of each spatial axis; None: nothing.
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
    from . import functions as F

    for v, name in ((x, "x"), (weight, "weight")):
        check_type("fused_convolution", name, v, (Variable, NdArray), "a Variable or NdArray")
    alpha = _alpha(nonlinearity, nonlinearity_args)
    normalized = _is_normalized(bias, beta, gamma, mean, variance)
    if pad_mode not in _PAD_MODES:
        expected = "'constant', 'reflect' or 'repeat'"
        raise ArgumentError(message("fused_convolution", "pad_mode", expected, repr(pad_mode)))
    inner: Any = x
    if pad is not None and (pad_mode != "constant" or constant_value != 0):
        inner, pad = F.pad(x, _widths(x.shape, base_axis, pad, channel_last), pad_mode, constant_value), None
    made: Any = F.convolution(inner, weight, bias, base_axis, pad, stride, dilation, group, channel_last)
    if normalized:
        axis = len(made.shape) - 1 if channel_last else base_axis
        made = F.batch_normalization(made, beta, gamma, mean, variance, [axis], decay_rate, eps, batch_stat)
    if z is not None:
        if z.shape != made.shape:
            raise ShapeError(message("fused_convolution", "z", f"y's shape {made.shape}", z.shape))
        made = F.add2(made, z)
    last: Any = getattr(F, nonlinearity or "identity")
    return last(made, *alpha, outputs=outputs)  # type: ignore[no-any-return]


def _alpha(nonlinearity: str, given: Any) -> list[float]:
    """The arguments of the activation."""
    if nonlinearity in _BY_ALPHA:
        if len(given) != 1:
            expected = f"[alpha] for {nonlinearity!r}"
            raise ArgumentError(message("fused_convolution", "nonlinearity_args", expected, list(given)))
        return [float(given[0])]
    if nonlinearity not in (*_PLAIN, "identity", ""):
        expected = ", ".join(repr(name) for name in ("identity", *_PLAIN[:3], *_BY_ALPHA)) + " or 'relu6'"
        raise ArgumentError(message("fused_convolution", "nonlinearity", expected, repr(nonlinearity)))
    return []


def _is_normalized(bias: Any, *own: Any) -> bool:
    """Whether there is a batch normalization."""
    names = ("beta", "gamma", "mean", "variance")
    absent = [name for name, v in zip(names, own, strict=True) if v is None]
    if absent and len(absent) < len(names):
        expected = "beta, gamma, mean and variance together, or none of them"
        raise ArgumentError(message("fused_convolution", absent[0], expected, "None"))
    if bias is not None and not absent:
        expected = "None beside a batch normalization, whose beta it is"
        raise ArgumentError(message("fused_convolution", "bias", expected, bias.shape))
    return not absent


def _widths(shape: Sequence[int], base_axis: int, pad: Sequence[int], channel_last: bool) -> list[int]:
    """Widths for `pad`, which is about the last axes."""
    base = base_axis + len(shape) if base_axis < 0 else base_axis
    sizes = [int(p) for p in pad]
    if len(sizes) != len(shape) - base - 1:
        expected = f"{len(shape) - base - 1} numbers, one for each spatial axis"
        raise ArgumentError(message("fused_convolution", "pad", expected, list(pad)))
    both = [n for p in sizes for n in (p, p)]
    return [*both, 0, 0] if channel_last else both
