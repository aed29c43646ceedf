"""Functions with parameters of their own: layers that make, name and find their weights in the current scope.

Generated from the registry by tools/generate.py: do not edit.
"""

# ruff: noqa: E501
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core
from ._core import NdArray, Variable
from ._parametric_api import Apply, Initializer, Input, Level, ParamInit, Rng, parametric_function_api
from ._parametric_composites import sync_batch_normalization
from ._parametric_decompositions import cpd3_convolution, svd_affine, svd_convolution
from ._parametric_recurrent import LSTMCell

__all__ = [
    "LSTMCell",
    "affine",
    "batch_normalization",
    "binary_connect_affine",
    "binary_connect_convolution",
    "binary_weight_affine",
    "binary_weight_convolution",
    "convolution",
    "cpd3_convolution",
    "deconvolution",
    "deformable_convolution",
    "depthwise_convolution",
    "depthwise_deconvolution",
    "embed",
    "fixed_point_quantized_affine",
    "fixed_point_quantized_convolution",
    "fused_batch_normalization",
    "group_normalization",
    "gru",
    "inq_affine",
    "inq_convolution",
    "instance_normalization",
    "layer_normalization",
    "lstm",
    "lstm_cell",
    "mean_subtraction",
    "min_max_quantize",
    "min_max_quantized_affine",
    "min_max_quantized_convolution",
    "multi_head_attention",
    "parametric_function_api",
    "pow2_quantized_affine",
    "pow2_quantized_convolution",
    "prelu",
    "pruned_affine",
    "pruned_convolution",
    "rnn",
    "spectral_norm",
    "svd_affine",
    "svd_convolution",
    "sync_batch_normalization",
    "transformer",
    "transformer_decode",
    "transformer_encode",
    "weight_normalization",
]

_call = _core.parametric
_index = _core.parametric_index


def __getattr__(name: str) -> Any:
    from ._borrowed import borrowed

    return borrowed(__name__, name)


_AFFINE = _index('affine')


@parametric_function_api(
    'affine',
    [
        ('W', 'Weight matrix.', '(inmaps, *n_outmaps)', True),
        ('b', 'Bias.', 'n_outmaps', True),
    ],
)
def affine(inp: Input, n_outmaps: int | Sequence[int], base_axis: int = 1, w_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, apply_w: Apply = None, apply_b: Apply = None) -> Variable:
    """Affine layer (fully connected layer), `y = x W + b`.

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number; may count from the end.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        apply_w: Function applied to the weight before its use.
        apply_b: Function applied to the bias before its use.

    Returns:
        Variable of shape `inp.shape[:base_axis] + n_outmaps`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> affine(Variable((8, 3, 4)), 5, name="fc").shape
    (8, 5)
    >>> clear_parameters()
    """
    return _call(_AFFINE, (inp,), (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, apply_w, apply_b))


_BATCH_NORMALIZATION = _index('batch_normalization')


@parametric_function_api(
    'bn',
    [
        ('beta', 'Bias.', "<1, but inp's size at axes>", True),
        ('gamma', 'Scale.', "<1, but inp's size at axes>", True),
        ('mean', 'Running mean.', "<1, but inp's size at axes>", False),
        ('var', 'Running variance.', "<1, but inp's size at axes>", False),
    ],
)
def batch_normalization(inp: Input, axes: Sequence[int] = (1,), decay_rate: float = 0.9, eps: float = 1e-5, batch_stat: bool = True, output_stat: bool = False, fix_parameters: bool = False, param_init: ParamInit = None, no_scale: bool = False, no_bias: bool = False) -> Any:
    """Batch normalization: each channel is normalized over all other axes (Ioffe and Szegedy, 2015),
    `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        inp: Input.
        axes: Axes that keep statistics of their own (the channels).
        decay_rate: How much of the running statistics each step keeps.
        eps: Added to the variance.
        batch_stat: Use this batch's statistics (training), else the running ones.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name: 'beta', 'gamma', 'mean', 'var'; by default 0, 1, 0, 1.
        no_scale: Leave out the scale.
        no_bias: Leave out the bias.

    Returns:
        Variable of `inp`'s shape; with `output_stat` also batch mean and variance.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> batch_normalization(Variable((8, 3, 4, 4))).shape
    (8, 3, 4, 4)
    >>> clear_parameters()
    """
    return _call(_BATCH_NORMALIZATION, (inp,), (axes, decay_rate, eps, batch_stat, output_stat, fix_parameters, param_init, no_scale, no_bias))


_BINARY_CONNECT_AFFINE = _index('binary_connect_affine')


@parametric_function_api(
    'bicon_affine',
    [
        ('W', 'Weight matrix.', '(inmaps, *n_outmaps)', True),
        ('Wb', 'Its signs.', '(inmaps, *n_outmaps)', False),
        ('b', 'Bias.', 'n_outmaps', True),
    ],
)
def binary_connect_affine(inp: Input, n_outmaps: int | Sequence[int], base_axis: int = 1, quantize_zero_to: float = 1.0, w_init: Initializer = None, wb_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True) -> Variable:
    """An affine layer with the signs of its weight (BinaryConnect, Courbariaux et al., 2015).

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number; may count from the end.
        quantize_zero_to: The sign of 0.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        wb_init: What the array of signs holds before the first forward pass; by default as the weight.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape `inp.shape[:base_axis] + n_outmaps`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> binary_connect_affine(Variable((8, 3, 4)), 5).shape
    (8, 5)
    >>> clear_parameters()
    """
    return _call(_BINARY_CONNECT_AFFINE, (inp,), (n_outmaps, base_axis, quantize_zero_to, w_init, wb_init, b_init, fix_parameters, rng, with_bias))


_BINARY_CONNECT_CONVOLUTION = _index('binary_connect_convolution')


@parametric_function_api(
    'bicon_conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel)', True),
        ('Wb', 'Its signs.', '(outmaps, inmaps // group, *kernel)', False),
        ('b', 'Bias.', '(outmaps,)', True),
    ],
)
def binary_connect_convolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, quantize_zero_to: float = 1.0, w_init: Initializer = None, wb_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True) -> Variable:
    """A convolution with the signs of its weight (BinaryConnect, Courbariaux et al., 2015).

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        quantize_zero_to: The sign of 0.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        wb_init: What the array of signs holds before the first forward pass; by default as the weight.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> binary_connect_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    return _call(_BINARY_CONNECT_CONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, quantize_zero_to, w_init, wb_init, b_init, base_axis, fix_parameters, rng, with_bias))


_BINARY_WEIGHT_AFFINE = _index('binary_weight_affine')


@parametric_function_api(
    'bwn_affine',
    [
        ('W', 'Weight matrix.', '(inmaps, *n_outmaps)', True),
        ('Wb', 'Its signs.', '(inmaps, *n_outmaps)', False),
        ('alpha', 'The scales.', 'n_outmaps', False),
        ('b', 'Bias.', 'n_outmaps', True),
    ],
)
def binary_weight_affine(inp: Input, n_outmaps: int | Sequence[int], base_axis: int = 1, quantize_zero_to: float = 1.0, w_init: Initializer = None, wb_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True) -> Variable:
    """An affine layer with the signs of its weight and a scale for each output (XNOR-Net, Rastegari
    et al., 2016).

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number; may count from the end.
        quantize_zero_to: The sign of 0.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        wb_init: What the array of signs holds before the first forward pass; by default as the weight.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape `inp.shape[:base_axis] + n_outmaps`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> binary_weight_affine(Variable((8, 3, 4)), 5).shape
    (8, 5)
    >>> clear_parameters()
    """
    return _call(_BINARY_WEIGHT_AFFINE, (inp,), (n_outmaps, base_axis, quantize_zero_to, w_init, wb_init, b_init, fix_parameters, rng, with_bias))


_BINARY_WEIGHT_CONVOLUTION = _index('binary_weight_convolution')


@parametric_function_api(
    'bwn_conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel)', True),
        ('Wb', 'Its signs.', '(outmaps, inmaps // group, *kernel)', False),
        ('alpha', 'The scales.', '(outmaps,)', False),
        ('b', 'Bias.', '(outmaps,)', True),
    ],
)
def binary_weight_convolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, quantize_zero_to: float = 1.0, w_init: Initializer = None, wb_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True) -> Variable:
    """A convolution with the signs of its weight and a scale for each output (XNOR-Net, Rastegari
    et al., 2016).

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        quantize_zero_to: The sign of 0.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        wb_init: What the array of signs holds before the first forward pass; by default as the weight.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> binary_weight_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    return _call(_BINARY_WEIGHT_CONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, quantize_zero_to, w_init, wb_init, b_init, base_axis, fix_parameters, rng, with_bias))


_CONVOLUTION = _index('convolution')


@parametric_function_api(
    'conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)', True),
        ('b', 'Bias.', '(outmaps,)', True),
    ],
)
def convolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, channel_last: bool = False, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, apply_w: Apply = None, apply_b: Apply = None) -> Variable:
    """N-D convolution with bias.

    Args:
        inp: Input of shape (samples..., channels, *sizes), with `channel_last` (samples..., *sizes, channels).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        channel_last: Whether channels are the last axis.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        apply_w: Function applied to the weight before its use.
        apply_b: Function applied to the bias before its use.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1), name="c1").shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    return _call(_CONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, apply_w, apply_b))


_DECONVOLUTION = _index('deconvolution')


@parametric_function_api(
    'deconv',
    [
        ('W', 'Filters.', '(inmaps, outmaps // group, *kernel), with channel_last (inmaps, *kernel, outmaps // group)', True),
        ('b', 'Bias.', '(outmaps,)', True),
    ],
)
def deconvolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, channel_last: bool = False, output_padding: Sequence[int] | None = None, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, apply_w: Apply = None, apply_b: Apply = None) -> Variable:
    """N-D transposed convolution with bias.

    Args:
        inp: Input of shape (samples..., channels, *sizes), with `channel_last` (samples..., *sizes, channels).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: What is cut from both ends of the output, one a spatial axis; by default 0.
        stride: Steps in the output, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        channel_last: Whether channels are the last axis.
        output_padding: Added to the end of each spatial axis of the output; by default 0.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        apply_w: Function applied to the weight before its use.
        apply_b: Function applied to the bias before its use.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> deconvolution(Variable((8, 3, 16, 16)), 6, (3, 3), name="d1").shape
    (8, 6, 18, 18)
    >>> clear_parameters()
    """
    return _call(_DECONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, channel_last, output_padding, w_init, b_init, base_axis, fix_parameters, rng, with_bias, apply_w, apply_b))


_DEFORMABLE_CONVOLUTION = _index('deformable_convolution')


@parametric_function_api(
    'deformable_conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)', True),
        ('b', 'Bias.', '(outmaps,)', True),
    ],
)
def deformable_convolution(inp: Input, outmaps: int, kernel: Sequence[int], offset: Input, mask: Input | None = None, pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, deformable_group: int = 1, channel_last: bool = False, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, apply_w: Apply = None, apply_b: Apply = None) -> Variable:
    """2-D deformable convolution with bias (Dai et al., 2017), with a mask version 2 of it (Zhu et al., 2018).

    Args:
        inp: Input of shape (N, channels, H, W), with `channel_last` (N, H, W, channels).
        outmaps: Number of output channels.
        kernel: Kernel size, height and width.
        offset: Distances, see `nnrs.functions.deformable_convolution`; mostly another convolution makes them.
        mask: Factors, likewise, or None.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        deformable_group: Number of groups of channels with distances of their own.
        channel_last: Whether channels are the last axis.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: Axis of the channels: 1.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        apply_w: Function applied to the weight before its use.
        apply_b: Function applied to the bias before its use.

    Returns:
        Variable of shape (N, outmaps, new H, new W), with `channel_last` channels last.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> x, offset = Variable((8, 3, 16, 16)), Variable((8, 18, 16, 16))
    >>> deformable_convolution(x, 6, (3, 3), offset, pad=(1, 1), name="d1").shape
    (8, 6, 16, 16)
    >>> clear_parameters()
    """
    return _call(_DEFORMABLE_CONVOLUTION, (inp,), (outmaps, kernel, offset, mask, pad, stride, dilation, group, deformable_group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, apply_w, apply_b))


_DEPTHWISE_CONVOLUTION = _index('depthwise_convolution')


@parametric_function_api(
    'depthwise_conv',
    [
        ('W', 'Filters.', '(inmaps * multiplier, *kernel)', True),
        ('b', 'Bias.', '(inmaps * multiplier,)', True),
    ],
)
def depthwise_convolution(inp: Input, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, multiplier: int = 1, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True) -> Variable:
    """N-D depthwise convolution with bias: each channel by itself (Chollet, Xception, 2016).

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        multiplier: Number of output channels for each input channel.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape (samples..., inmaps * multiplier, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> depthwise_convolution(Variable((8, 3, 16, 16)), (3, 3), multiplier=2, name="d1").shape
    (8, 6, 14, 14)
    >>> clear_parameters()
    """
    return _call(_DEPTHWISE_CONVOLUTION, (inp,), (kernel, pad, stride, dilation, multiplier, w_init, b_init, base_axis, fix_parameters, rng, with_bias))


_DEPTHWISE_DECONVOLUTION = _index('depthwise_deconvolution')


@parametric_function_api(
    'depthwise_deconv',
    [
        ('W', 'Filters.', '(inmaps, *kernel)', True),
        ('b', 'Bias.', '(inmaps // divisor,)', True),
    ],
)
def depthwise_deconvolution(inp: Input, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, divisor: int = 1, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True) -> Variable:
    """N-D transposed depthwise convolution with bias.

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        kernel: Kernel size, one a spatial axis.
        pad: What is cut from both ends of the output, one a spatial axis; by default 0.
        stride: Steps in the output, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        divisor: Number of input channels that are summed to an output channel.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape (samples..., inmaps // divisor, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> depthwise_deconvolution(Variable((8, 6, 16, 16)), (3, 3), divisor=2, name="d1").shape
    (8, 3, 18, 18)
    >>> clear_parameters()
    """
    return _call(_DEPTHWISE_DECONVOLUTION, (inp,), (kernel, pad, stride, dilation, divisor, w_init, b_init, base_axis, fix_parameters, rng, with_bias))


_EMBED = _index('embed')


@parametric_function_api(
    'embed',
    [
        ('W', 'One row of features for each index.', '(n_inputs, n_features)', True),
    ],
)
def embed(inp: Input, n_inputs: int, n_features: int, initializer: Initializer = None, fix_parameters: bool = False, apply_w: Apply = None) -> Variable:
    """Rows of a table of features, looked up by index.

    Args:
        inp: Indices from 0 to `n_inputs - 1`, of any shape.
        n_inputs: Number of rows (words, say).
        n_features: Number of features of each.
        initializer: Initial table; by default uniform from -sqrt(3) to sqrt(3).
        fix_parameters: Whether the table stays as it is in training.
        apply_w: Function applied to the table before its use.

    Returns:
        Variable of shape `inp.shape + (n_features,)`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> embed(Variable((2, 3)), 10, 4).shape
    (2, 3, 4)
    >>> clear_parameters()
    """
    return _call(_EMBED, (inp,), (n_inputs, n_features, initializer, fix_parameters, apply_w))


_FIXED_POINT_QUANTIZED_AFFINE = _index('fixed_point_quantized_affine')


@parametric_function_api(
    'fp_quantized_affine',
    [
        ('W', 'Weight matrix.', '(inmaps, *n_outmaps)', True),
        ('b', 'Bias.', 'n_outmaps', True),
        ('W_q', 'The weight as it is used.', '(inmaps, *n_outmaps)', False),
        ('b_q', 'The bias as it is used.', 'n_outmaps', False),
    ],
)
def fixed_point_quantized_affine(inp: Input, n_outmaps: int | Sequence[int], base_axis: int = 1, w_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, quantize_w: bool = True, sign_w: bool = True, n_w: int = 8, delta_w: float = 0.0625, ste_fine_grained_w: bool = True, quantize_b: bool = True, sign_b: bool = True, n_b: int = 8, delta_b: float = 0.0625, ste_fine_grained_b: bool = True) -> Variable:
    """An affine layer whose weight and bias are used as fixed-point numbers, see `fixed_point_quantize`.

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number; may count from the end.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        quantize_w: Whether the weight is quantized.
        sign_w: Whether there are negative numbers in the weight.
        n_w: Bits of a number of the weight.
        delta_w: Step of the weight.
        ste_fine_grained_w: Whether numbers of the weight beyond the limits have gradient 0.
        quantize_b: Whether the bias is quantized.
        sign_b: Whether there are negative numbers in the bias.
        n_b: Bits of a number of the bias.
        delta_b: Step of the bias.
        ste_fine_grained_b: Whether numbers of the bias beyond the limits have gradient 0.

    Returns:
        Variable of shape `inp.shape[:base_axis] + n_outmaps`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> fixed_point_quantized_affine(Variable((8, 3, 4)), 5).shape
    (8, 5)
    >>> clear_parameters()
    """
    return _call(_FIXED_POINT_QUANTIZED_AFFINE, (inp,), (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, quantize_w, sign_w, n_w, delta_w, ste_fine_grained_w, quantize_b, sign_b, n_b, delta_b, ste_fine_grained_b))


_FIXED_POINT_QUANTIZED_CONVOLUTION = _index('fixed_point_quantized_convolution')


@parametric_function_api(
    'fp_quantized_conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)', True),
        ('b', 'Bias.', '(outmaps,)', True),
        ('W_q', 'The weight as it is used.', '(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)', False),
        ('b_q', 'The bias as it is used.', '(outmaps,)', False),
    ],
)
def fixed_point_quantized_convolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, channel_last: bool = False, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, quantize_w: bool = True, sign_w: bool = True, n_w: int = 8, delta_w: float = 0.0625, ste_fine_grained_w: bool = True, quantize_b: bool = True, sign_b: bool = True, n_b: int = 8, delta_b: float = 0.0625, ste_fine_grained_b: bool = True) -> Variable:
    """A convolution whose weight and bias are used as fixed-point numbers, see `fixed_point_quantize`.

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        channel_last: Whether channels are the last axis.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        quantize_w: Whether the weight is quantized.
        sign_w: Whether there are negative numbers in the weight.
        n_w: Bits of a number of the weight.
        delta_w: Step of the weight.
        ste_fine_grained_w: Whether numbers of the weight beyond the limits have gradient 0.
        quantize_b: Whether the bias is quantized.
        sign_b: Whether there are negative numbers in the bias.
        n_b: Bits of a number of the bias.
        delta_b: Step of the bias.
        ste_fine_grained_b: Whether numbers of the bias beyond the limits have gradient 0.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> fixed_point_quantized_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    return _call(_FIXED_POINT_QUANTIZED_CONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, quantize_w, sign_w, n_w, delta_w, ste_fine_grained_w, quantize_b, sign_b, n_b, delta_b, ste_fine_grained_b))


_GROUP_NORMALIZATION = _index('group_normalization')


@parametric_function_api(
    'group_normalization',
    [
        ('beta', 'Bias.', "<1, but inp's size at channel_axis>", True),
        ('gamma', 'Scale.', "<1, but inp's size at channel_axis>", True),
    ],
)
def group_normalization(inp: Input, num_groups: int, channel_axis: int = 1, batch_axis: int | Sequence[int] = (0,), eps: float = 1e-5, output_stat: bool = False, fix_parameters: bool = False, param_init: ParamInit = None, no_scale: bool = False, no_bias: bool = False) -> Any:
    """Group normalization: groups of channels of each sample are normalized by themselves (Wu and He, 2018),
    `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        inp: Input.
        num_groups: Number of groups, a divisor of the number of channels.
        channel_axis: Axis of the channels.
        batch_axis: Axis or axes that number the samples.
        eps: Added to the variance.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name: 'beta', 'gamma'; by default 0 and 1.
        no_scale: Leave out the scale.
        no_bias: Leave out the bias.

    Returns:
        Variable of `inp`'s shape; with `output_stat` also mean and variance.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> group_normalization(Variable((8, 6, 4)), 3).shape
    (8, 6, 4)
    >>> clear_parameters()
    """
    return _call(_GROUP_NORMALIZATION, (inp,), (num_groups, channel_axis, batch_axis, eps, output_stat, fix_parameters, param_init, no_scale, no_bias))


_INQ_AFFINE = _index('inq_affine')


@parametric_function_api(
    'inq_affine',
    [
        ('W', 'Weight matrix.', '(inmaps, *n_outmaps)', True),
        ('I', '1 where the weight is fixed, else 0.', '(inmaps, *n_outmaps)', False),
        ('b', 'Bias.', 'n_outmaps', True),
    ],
)
def inq_affine(inp: Input, n_outmaps: int | Sequence[int], base_axis: int = 1, num_bits: int = 4, inq_iterations: Sequence[int] = (), selection_algorithm: str = 'random', seed: int = -1, w_init: Initializer = None, i_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True) -> Variable:
    """An affine layer whose weights become powers of two by and by (INQ, Zhou et al., 2017).

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number; may count from the end.
        num_bits: Bits of a weight, 2 or more: one for the sign, one for zero.
        inq_iterations: Numbers of the forward passes, from 0, that fix half of the weights; the last one fixes
                all.
        selection_algorithm: Which half is fixed: 'largest_abs' or 'random'.
        seed: Seed of the random choice; -1: the global random stream.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        i_init: Initial indicators; by default zeros: no weight is fixed.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape `inp.shape[:base_axis] + n_outmaps`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> inq_affine(Variable((8, 3, 4)), 5).shape
    (8, 5)
    >>> clear_parameters()
    """
    return _call(_INQ_AFFINE, (inp,), (n_outmaps, base_axis, num_bits, inq_iterations, selection_algorithm, seed, w_init, i_init, b_init, fix_parameters, rng, with_bias))


_INQ_CONVOLUTION = _index('inq_convolution')


@parametric_function_api(
    'inq_conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel)', True),
        ('I', '1 where the weight is fixed, else 0.', '(outmaps, inmaps // group, *kernel)', False),
        ('b', 'Bias.', '(outmaps,)', True),
    ],
)
def inq_convolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, num_bits: int = 4, inq_iterations: Sequence[int] = (), selection_algorithm: str = 'random', seed: int = -1, w_init: Initializer = None, i_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True) -> Variable:
    """A convolution whose weights become powers of two by and by (INQ, Zhou et al., 2017).

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        num_bits: Bits of a weight, 2 or more: one for the sign, one for zero.
        inq_iterations: Numbers of the forward passes, from 0, that fix half of the weights; the last one fixes
                all.
        selection_algorithm: Which half is fixed: 'largest_abs' or 'random'.
        seed: Seed of the random choice; -1: the global random stream.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        i_init: Initial indicators; by default zeros: no weight is fixed.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> inq_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    return _call(_INQ_CONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, num_bits, inq_iterations, selection_algorithm, seed, w_init, i_init, b_init, base_axis, fix_parameters, rng, with_bias))


_INSTANCE_NORMALIZATION = _index('instance_normalization')


@parametric_function_api(
    'instance_normalization',
    [
        ('beta', 'Bias.', "<1, but inp's size at channel_axis>", True),
        ('gamma', 'Scale.', "<1, but inp's size at channel_axis>", True),
    ],
)
def instance_normalization(inp: Input, channel_axis: int = 1, batch_axis: int | Sequence[int] = (0,), eps: float = 1e-5, output_stat: bool = False, fix_parameters: bool = False, param_init: ParamInit = None, no_scale: bool = False, no_bias: bool = False) -> Any:
    """Instance normalization: each channel of each sample is normalized by itself (Ulyanov et al., 2016),
    `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        inp: Input.
        channel_axis: Axis of the channels.
        batch_axis: Axis or axes that number the samples.
        eps: Added to the variance.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name: 'beta', 'gamma'; by default 0 and 1.
        no_scale: Leave out the scale.
        no_bias: Leave out the bias.

    Returns:
        Variable of `inp`'s shape; with `output_stat` also mean and variance.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> instance_normalization(Variable((8, 6, 4))).shape
    (8, 6, 4)
    >>> clear_parameters()
    """
    return _call(_INSTANCE_NORMALIZATION, (inp,), (channel_axis, batch_axis, eps, output_stat, fix_parameters, param_init, no_scale, no_bias))


_LAYER_NORMALIZATION = _index('layer_normalization')


@parametric_function_api(
    'layer_normalization',
    [
        ('beta', 'Bias.', "<inp's size, but 1 at batch_axis>", True),
        ('gamma', 'Scale.', "<inp's size, but 1 at batch_axis>", True),
    ],
)
def layer_normalization(inp: Input, batch_axis: int | Sequence[int] = (0,), eps: float = 1e-5, output_stat: bool = False, fix_parameters: bool = False, param_init: ParamInit = None, no_scale: bool = False, no_bias: bool = False) -> Any:
    """Layer normalization: each sample is normalized over all its other axes (Ba et al., 2016),
    `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        inp: Input.
        batch_axis: Axis or axes that number the samples.
        eps: Added to the variance.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name: 'beta', 'gamma'; by default 0 and 1.
        no_scale: Leave out the scale.
        no_bias: Leave out the bias.

    Returns:
        Variable of `inp`'s shape; with `output_stat` also mean and variance.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> layer_normalization(Variable((8, 3, 4))).shape
    (8, 3, 4)
    >>> clear_parameters()
    """
    return _call(_LAYER_NORMALIZATION, (inp,), (batch_axis, eps, output_stat, fix_parameters, param_init, no_scale, no_bias))


_MIN_MAX_QUANTIZE = _index('min_max_quantize')


@parametric_function_api(
    'min_max_quantize',
    [
        ('ql_min', 'Least level, where a number is given.', '(1, ..)', False),
        ('ql_max', 'Largest level, where a number is given.', '(1, ..)', False),
        ('qr_min', 'Least number of the range; not trained with x_min_max and ema.', 'ql_min.shape', True),
        ('qr_max', 'Largest number of the range; not trained with x_min_max and ema.', 'ql_min.shape', True),
    ],
)
def min_max_quantize(x: Input, ql_min: Level = 0, ql_max: Level = 255, decay: float = 0.999, x_min_max: bool = False, ema: bool = False, ste_fine_grained: bool = True, eps: float = 0.01, qr_min_init: Initializer = None, qr_max_init: Initializer = None, fix_parameters: bool = False, outputs: list[NdArray] | None = None) -> Variable:
    """Numbers of a range as levels (Jacob et al., 2018), see `functions.min_max_quantize`; the range is learned, or follows
    the data.

    Args:
        x: N-D array.
        ql_min: Least level: a number, or a variable of a shape that broadcasts to x's.
        ql_max: Largest level, likewise.
        decay: How much of the range each forward pass keeps, with x_min_max and ema.
        x_min_max: Take the range from x.
        ema: The range is a moving average.
        ste_fine_grained: Whether x beyond the range has gradient 0.
        eps: The least size of the range.
        qr_min_init: Initial least number of the range; by default -6.
        qr_max_init: Initial largest number of the range; by default 6.
        fix_parameters: Whether the range stays as it is in training.
        outputs: Arrays for the outputs' data.

    Returns:
        Variable of `x`'s shape.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> min_max_quantize(Variable((8, 3))).shape
    (8, 3)
    >>> clear_parameters()
    """
    return _call(_MIN_MAX_QUANTIZE, (x,), (ql_min, ql_max, decay, x_min_max, ema, ste_fine_grained, eps, qr_min_init, qr_max_init, fix_parameters, outputs))


_MIN_MAX_QUANTIZED_AFFINE = _index('min_max_quantized_affine')


@parametric_function_api(
    'min_max_quantized_affine',
    [
        ('W', 'Weight matrix.', '(inmaps, *n_outmaps)', True),
        ('b', 'Bias.', 'n_outmaps', True),
        ('W_q', 'The weight as it is used.', '(inmaps, *n_outmaps)', False),
        ('b_q', 'The bias as it is used.', 'n_outmaps', False),
        ('min_max_quantize_w/min_max_quantize/qr_min', "Least number of the weight's range.", '(1, ..)', True),
        ('min_max_quantize_w/min_max_quantize/qr_max', "Largest number of the weight's range.", '(1, ..)', True),
    ],
)
def min_max_quantized_affine(inp: Input, n_outmaps: int | Sequence[int], base_axis: int = 1, w_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, quantize_w: bool = True, ql_min_w: Level = 0, ql_max_w: Level = 255, w_min_max: bool = False, qr_min_w_init: Initializer = None, qr_max_w_init: Initializer = None, ste_fine_grained_w: bool = True, quantize_b: bool = True, ql_min_b: Level = 0, ql_max_b: Level = 255, b_min_max: bool = False, qr_min_b_init: Initializer = None, qr_max_b_init: Initializer = None, ste_fine_grained_b: bool = True, eps: float = 0.01) -> Variable:
    """An affine layer whose weight and bias are used as levels of a range, see `min_max_quantize`.

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number; may count from the end.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        quantize_w: Whether the weight is quantized.
        ql_min_w: Least level of the weight.
        ql_max_w: Largest level of the weight.
        w_min_max: Whether the range is that of the weight; if not, it is learned.
        qr_min_w_init: Initial least number of the weight's range; by default -2.
        qr_max_w_init: Initial largest number of the weight's range; by default 2.
        ste_fine_grained_w: Whether numbers of the weight beyond the limits have gradient 0.
        quantize_b: Whether the bias is quantized.
        ql_min_b: Least level of the bias.
        ql_max_b: Largest level of the bias.
        b_min_max: Whether the range is that of the bias; if not, it is learned.
        qr_min_b_init: Initial least number of the bias's range; by default -6.
        qr_max_b_init: Initial largest number of the bias's range; by default 6.
        ste_fine_grained_b: Whether numbers of the bias beyond the limits have gradient 0.
        eps: The least size of a range.

    Returns:
        Variable of shape `inp.shape[:base_axis] + n_outmaps`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> min_max_quantized_affine(Variable((8, 3, 4)), 5).shape
    (8, 5)
    >>> clear_parameters()
    """
    return _call(_MIN_MAX_QUANTIZED_AFFINE, (inp,), (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, quantize_w, ql_min_w, ql_max_w, w_min_max, qr_min_w_init, qr_max_w_init, ste_fine_grained_w, quantize_b, ql_min_b, ql_max_b, b_min_max, qr_min_b_init, qr_max_b_init, ste_fine_grained_b, eps))


_MIN_MAX_QUANTIZED_CONVOLUTION = _index('min_max_quantized_convolution')


@parametric_function_api(
    'min_max_quantized_conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)', True),
        ('b', 'Bias.', '(outmaps,)', True),
        ('W_q', 'The weight as it is used.', '(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)', False),
        ('b_q', 'The bias as it is used.', '(outmaps,)', False),
        ('min_max_quantize_w/min_max_quantize/qr_min', "Least number of the weight's range.", '(1, ..)', True),
        ('min_max_quantize_w/min_max_quantize/qr_max', "Largest number of the weight's range.", '(1, ..)', True),
    ],
)
def min_max_quantized_convolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, channel_last: bool = False, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, quantize_w: bool = True, ql_min_w: Level = 0, ql_max_w: Level = 255, w_min_max: bool = False, qr_min_w_init: Initializer = None, qr_max_w_init: Initializer = None, ste_fine_grained_w: bool = True, quantize_b: bool = True, ql_min_b: Level = 0, ql_max_b: Level = 255, b_min_max: bool = False, qr_min_b_init: Initializer = None, qr_max_b_init: Initializer = None, ste_fine_grained_b: bool = True, eps: float = 0.01) -> Variable:
    """A convolution whose weight and bias are used as levels of a range, see `min_max_quantize`.

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        channel_last: Whether channels are the last axis.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        quantize_w: Whether the weight is quantized.
        ql_min_w: Least level of the weight.
        ql_max_w: Largest level of the weight.
        w_min_max: Whether the range is that of the weight; if not, it is learned.
        qr_min_w_init: Initial least number of the weight's range; by default -2.
        qr_max_w_init: Initial largest number of the weight's range; by default 2.
        ste_fine_grained_w: Whether numbers of the weight beyond the limits have gradient 0.
        quantize_b: Whether the bias is quantized.
        ql_min_b: Least level of the bias.
        ql_max_b: Largest level of the bias.
        b_min_max: Whether the range is that of the bias; if not, it is learned.
        qr_min_b_init: Initial least number of the bias's range; by default -6.
        qr_max_b_init: Initial largest number of the bias's range; by default 6.
        ste_fine_grained_b: Whether numbers of the bias beyond the limits have gradient 0.
        eps: The least size of a range.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> min_max_quantized_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    return _call(_MIN_MAX_QUANTIZED_CONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, quantize_w, ql_min_w, ql_max_w, w_min_max, qr_min_w_init, qr_max_w_init, ste_fine_grained_w, quantize_b, ql_min_b, ql_max_b, b_min_max, qr_min_b_init, qr_max_b_init, ste_fine_grained_b, eps))


_POW2_QUANTIZED_AFFINE = _index('pow2_quantized_affine')


@parametric_function_api(
    'pow2_quantized_affine',
    [
        ('W', 'Weight matrix.', '(inmaps, *n_outmaps)', True),
        ('b', 'Bias.', 'n_outmaps', True),
        ('W_q', 'The weight as it is used.', '(inmaps, *n_outmaps)', False),
        ('b_q', 'The bias as it is used.', 'n_outmaps', False),
    ],
)
def pow2_quantized_affine(inp: Input, n_outmaps: int | Sequence[int], base_axis: int = 1, w_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, quantize_w: bool = True, sign_w: bool = True, with_zero_w: bool = False, n_w: int = 8, m_w: int = 2, ste_fine_grained_w: bool = True, quantize_b: bool = True, sign_b: bool = True, with_zero_b: bool = False, n_b: int = 8, m_b: int = 2, ste_fine_grained_b: bool = True) -> Variable:
    """An affine layer whose weight and bias are used as powers of two, see `pow2_quantize`.

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number; may count from the end.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        quantize_w: Whether the weight is quantized.
        sign_w: Whether there are negative numbers in the weight.
        with_zero_w: Whether 0 is one of the numbers of the weight.
        n_w: Bits of a number of the weight.
        m_w: The largest number of the weight is 2 to the power of this.
        ste_fine_grained_w: Whether numbers of the weight beyond the limits have gradient 0.
        quantize_b: Whether the bias is quantized.
        sign_b: Whether there are negative numbers in the bias.
        with_zero_b: Whether 0 is one of the numbers of the bias.
        n_b: Bits of a number of the bias.
        m_b: The largest number of the bias is 2 to the power of this.
        ste_fine_grained_b: Whether numbers of the bias beyond the limits have gradient 0.

    Returns:
        Variable of shape `inp.shape[:base_axis] + n_outmaps`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> pow2_quantized_affine(Variable((8, 3, 4)), 5).shape
    (8, 5)
    >>> clear_parameters()
    """
    return _call(_POW2_QUANTIZED_AFFINE, (inp,), (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, quantize_w, sign_w, with_zero_w, n_w, m_w, ste_fine_grained_w, quantize_b, sign_b, with_zero_b, n_b, m_b, ste_fine_grained_b))


_POW2_QUANTIZED_CONVOLUTION = _index('pow2_quantized_convolution')


@parametric_function_api(
    'pow2_quantized_conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel)', True),
        ('b', 'Bias.', '(outmaps,)', True),
        ('W_q', 'The weight as it is used.', '(outmaps, inmaps // group, *kernel)', False),
        ('b_q', 'The bias as it is used.', '(outmaps,)', False),
    ],
)
def pow2_quantized_convolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, quantize_w: bool = True, with_zero_w: bool = False, sign_w: bool = True, n_w: int = 8, m_w: int = 2, ste_fine_grained_w: bool = True, quantize_b: bool = True, with_zero_b: bool = False, sign_b: bool = True, n_b: int = 8, m_b: int = 2, ste_fine_grained_b: bool = True) -> Variable:
    """A convolution whose weight and bias are used as powers of two, see `pow2_quantize`.

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        quantize_w: Whether the weight is quantized.
        with_zero_w: Whether 0 is one of the numbers of the weight.
        sign_w: Whether there are negative numbers in the weight.
        n_w: Bits of a number of the weight.
        m_w: The largest number of the weight is 2 to the power of this.
        ste_fine_grained_w: Whether numbers of the weight beyond the limits have gradient 0.
        quantize_b: Whether the bias is quantized.
        with_zero_b: Whether 0 is one of the numbers of the bias.
        sign_b: Whether there are negative numbers in the bias.
        n_b: Bits of a number of the bias.
        m_b: The largest number of the bias is 2 to the power of this.
        ste_fine_grained_b: Whether numbers of the bias beyond the limits have gradient 0.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> pow2_quantized_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    return _call(_POW2_QUANTIZED_CONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, w_init, b_init, base_axis, fix_parameters, rng, with_bias, quantize_w, with_zero_w, sign_w, n_w, m_w, ste_fine_grained_w, quantize_b, with_zero_b, sign_b, n_b, m_b, ste_fine_grained_b))


_MEAN_SUBTRACTION = _index('mean_subtraction')


@parametric_function_api(
    'mean_subtraction',
    [
        ('mean', 'Running mean.', 'inp.shape[base_axis:]', False),
        ('t', 'Number of batches that it is of.', '(1,)', False),
    ],
)
def mean_subtraction(inp: Input, base_axis: int = 1, update_running_mean: bool = True, fix_parameters: bool = False) -> Variable:
    """Subtracts the running mean of all samples so far: the mean over the axes before `base_axis`.

    Args:
        inp: Input.
        base_axis: The axes before it number the samples.
        update_running_mean: Move the running mean in each forward pass.
        fix_parameters: Ignored: the running mean is no trained parameter.

    Returns:
        Variable of `inp`'s shape.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> mean_subtraction(Variable((8, 3, 4))).shape
    (8, 3, 4)
    >>> clear_parameters()
    """
    return _call(_MEAN_SUBTRACTION, (inp,), (base_axis, update_running_mean, fix_parameters))


_PRELU = _index('prelu')


@parametric_function_api(
    'prelu',
    [
        ('slope', 'Slopes for negative values.', '() if shared else (inp.shape[base_axis],)', True),
    ],
)
def prelu(inp: Input, base_axis: int = 1, shared: bool = True, fix_parameters: bool = False, slope_init: Initializer = None) -> Variable:
    """Parametric rectified linear unit, `y = max(x, 0) + slope min(x, 0)` with learned slopes (He et al., 2015).

    Args:
        inp: N-D array.
        base_axis: The axis with slopes of its own, where they are not shared.
        shared: Whether there is one slope for all.
        fix_parameters: Whether the slopes stay as they are in training.
        slope_init: Initial slopes; by default 0.25.

    Returns:
        Variable of `inp`'s shape.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> prelu(Variable((8, 3, 4)), shared=False).shape
    (8, 3, 4)
    >>> clear_parameters()
    """
    return _call(_PRELU, (inp,), (base_axis, shared, fix_parameters, slope_init))


_FUSED_BATCH_NORMALIZATION = _index('fused_batch_normalization')


@parametric_function_api(
    'bn',
    [
        ('beta', 'Bias.', "<1, but inp's size at axes>", True),
        ('gamma', 'Scale.', "<1, but inp's size at axes>", True),
        ('mean', 'Running mean.', "<1, but inp's size at axes>", False),
        ('var', 'Running variance.', "<1, but inp's size at axes>", False),
    ],
)
def fused_batch_normalization(inp: Input, z: Input | None = None, axes: Sequence[int] = (1,), decay_rate: float = 0.9, eps: float = 1e-5, batch_stat: bool = True, nonlinearity: str = 'relu', output_stat: bool = False, fix_parameters: bool = False, param_init: ParamInit = None, no_scale: bool = False, no_bias: bool = False) -> Any:
    """Batch normalization, the sum with another array, and an activation: `relu(batch_normalization(inp) + z)`.

    Args:
        inp: Input.
        z: What is added, of the input's shape, or None.
        axes: Axes that keep statistics of their own (the channels).
        decay_rate: How much of the running statistics each step keeps.
        eps: Added to the variance.
        batch_stat: Use this batch's statistics (training), else the running ones.
        nonlinearity: The activation: "relu".
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name: 'beta', 'gamma', 'mean', 'var'; by default 0, 1, 0, 1.
        no_scale: Leave out the scale.
        no_bias: Leave out the bias.

    Returns:
        Variable of `inp`'s shape; with `output_stat` also batch mean and variance.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> x = Variable((8, 3, 4, 4))
    >>> fused_batch_normalization(x, x).shape
    (8, 3, 4, 4)
    >>> clear_parameters()
    """
    return _call(_FUSED_BATCH_NORMALIZATION, (inp,), (z, axes, decay_rate, eps, batch_stat, nonlinearity, output_stat, fix_parameters, param_init, no_scale, no_bias))


_SPECTRAL_NORM = _index('spectral_norm')


@parametric_function_api(
    'spectral-norm',
    [
        ('u', 'Singular vector.', '(w.shape[dim],)', False),
    ],
)
def spectral_norm(w: Input, dim: int = 0, itr: int = 1, eps: float = 1e-12, test: bool = False, u_init: Initializer = None, fix_parameters: bool = True) -> Variable:
    """Spectral normalization (Miyato et al., 2018): a weight over its largest singular value.

    Args:
        w: Weight.
        dim: Axis of the outputs, counted from 0.
        itr: Steps of the power iteration that each forward pass makes, 1 to 10000.
        eps: Added before the root of the vectors' lengths.
        test: Leave the vector as it is.
        u_init: What the iteration begins with; by default normal.
        fix_parameters: Not used; NNabla's. The vector is not trained.

    Returns:
        Variable of `w`'s shape.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> spectral_norm(Variable((8, 3, 4, 4))).shape
    (8, 3, 4, 4)
    >>> clear_parameters()
    """
    return _call(_SPECTRAL_NORM, (w,), (dim, itr, eps, test, u_init, fix_parameters))


_WEIGHT_NORMALIZATION = _index('weight_normalization')


@parametric_function_api(
    'wn',
    [
        ('g', 'Scale.', '(w.shape[dim],)', True),
    ],
)
def weight_normalization(w: Input, dim: int = 0, eps: float = 1e-12, g_init: Initializer = None, fix_parameters: bool = False) -> Variable:
    """Weight normalization (Salimans and Kingma, 2016): `g w / |w|`, with a norm and a scale for each index of `dim`.

    Args:
        w: Weight; with its values at the first call begins the scale.
        dim: Axis of the outputs.
        eps: Added before the root of the norm.
        g_init: Initial scale; by default the norm, so that the weight does not change at first.
        fix_parameters: Whether the scale stays as it is in training.

    Returns:
        Variable of `w`'s shape.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> weight_normalization(Variable((8, 3, 4, 4))).shape
    (8, 3, 4, 4)
    >>> clear_parameters()
    """
    return _call(_WEIGHT_NORMALIZATION, (w,), (dim, eps, g_init, fix_parameters))


_RNN = _index('rnn')


@parametric_function_api(
    'rnn',
    [
        ('weight_l0', 'Weights of the first layer.', '(D, H, I + H)', True),
        ('weight', 'Weights of the other layers.', '(L - 1, D, H, D * H + H)', True),
        ('bias', 'Biases.', '(L, D, H)', True),
    ],
)
def rnn(x: Input, h: Input, w0_init: Initializer = None, w_init: Initializer = None, b_init: Initializer = None, num_layers: int = 1, nonlinearity: str = 'tanh', dropout: float = 0.0, bidirectional: bool = False, training: bool = True, rng: Rng = None, with_bias: bool = True, fix_parameters: bool = False) -> Any:
    """Recurrent layers (Elman, 1990); T steps, B samples, I inputs, L layers, D directions, H hidden units.

    Args:
        x: Sequences of shape (T, B, I).
        h: States before the first step, of shape (L, D, B, H).
        w0_init: Initial weights of the first layer; by default uniform with the limits of
                `calc_uniform_lim_glorot`, of the inputs' and the states' columns each.
        w_init: Initial weights of the other layers, likewise.
        b_init: Initial biases; by default zeros.
        num_layers: Not used, as in NNabla: there are as many layers as `h` has.
        nonlinearity: 'tanh' or 'relu'.
        dropout: Share of the numbers between layers that are dropped in training.
        bidirectional: Whether D is 2.
        training: Whether there is dropout, and a gradient.
        rng: Random generator of the initial weights.
        with_bias: Whether there are biases.
        fix_parameters: Whether weights and biases stay as they are in training.

    Returns:
        y of shape (T, B, D * H), and the states after the last step, of h's shape.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> y, h_n = rnn(Variable((5, 2, 3)), Variable((1, 1, 2, 4)))
    >>> y.shape, h_n.shape
    ((5, 2, 4), (1, 1, 2, 4))
    >>> clear_parameters()
    """
    return _call(_RNN, (x, h), (w0_init, w_init, b_init, num_layers, nonlinearity, dropout, bidirectional, training, rng, with_bias, fix_parameters))


_LSTM = _index('lstm')


@parametric_function_api(
    'lstm',
    [
        ('weight_l0', 'Weights of the first layer.', '(D, 4, H, I + H)', True),
        ('weight', 'Weights of the other layers.', '(L - 1, D, 4, H, D * H + H)', True),
        ('bias', 'Biases.', '(L, D, 4, H)', True),
    ],
)
def lstm(x: Input, h: Input, c: Input, w0_init: Initializer = None, w_init: Initializer = None, b_init: Initializer = None, num_layers: int = 1, dropout: float = 0.0, bidirectional: bool = False, training: bool = True, rng: Rng = None, with_bias: bool = True, fix_parameters: bool = False) -> Any:
    """Long short-term memory (Hochreiter and Schmidhuber, 1997); letters as of `rnn`.

    Args:
        x: Sequences of shape (T, B, I).
        h: States before the first step, of shape (L, D, B, H).
        c: States c before the first step, of h's shape.
        w0_init: Initial weights of the first layer, as of `rnn`; the gates are i, f, n, o.
        w_init: Initial weights of the other layers, likewise.
        b_init: Initial biases; by default zeros.
        num_layers: Not used, as in NNabla: there are as many layers as `h` has.
        dropout: Share of the numbers between layers that are dropped in training.
        bidirectional: Whether D is 2.
        training: Whether there is dropout, and a gradient.
        rng: Random generator of the initial weights.
        with_bias: Whether there are biases.
        fix_parameters: Whether weights and biases stay as they are in training.

    Returns:
        y of shape (T, B, D * H), and the states h and c after the last step, of h's shape.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> from nnrs.parameter import get_parameters
    >>> state = Variable((2, 1, 2, 4))
    >>> y, h_n, c_n = lstm(Variable((5, 2, 3)), state, state)
    >>> {name: v.shape for name, v in get_parameters().items()}
    {'lstm/weight_l0': (1, 4, 4, 7), 'lstm/weight': (1, 1, 4, 4, 8), 'lstm/bias': (2, 1, 4, 4)}
    >>> clear_parameters()
    """
    return _call(_LSTM, (x, h, c), (w0_init, w_init, b_init, num_layers, dropout, bidirectional, training, rng, with_bias, fix_parameters))


_GRU = _index('gru')


@parametric_function_api(
    'gru',
    [
        ('weight_l0', 'Weights of the first layer.', '(D, 3, H, I + H)', True),
        ('weight', 'Weights of the other layers.', '(L - 1, D, 3, H, D * H + H)', True),
        ('bias', 'Biases.', '(L, D, 4, H)', True),
    ],
)
def gru(x: Input, h: Input, w0_init: Initializer = None, w_init: Initializer = None, b_init: Initializer = None, num_layers: int = 1, dropout: float = 0.0, bidirectional: bool = False, training: bool = True, rng: Rng = None, with_bias: bool = True, fix_parameters: bool = False) -> Any:
    """Gated recurrent units (Cho et al., 2014); letters as of `rnn`.

    Args:
        x: Sequences of shape (T, B, I).
        h: States before the first step, of shape (L, D, B, H).
        w0_init: Initial weights of the first layer, as of `rnn`; the gates are r, z, n.
        w_init: Initial weights of the other layers, likewise.
        b_init: Initial biases, of which the fourth is the state's in n; by default zeros.
        num_layers: Not used, as in NNabla: there are as many layers as `h` has.
        dropout: Share of the numbers between layers that are dropped in training.
        bidirectional: Whether D is 2.
        training: Whether there is dropout, and a gradient.
        rng: Random generator of the initial weights.
        with_bias: Whether there are biases.
        fix_parameters: Whether weights and biases stay as they are in training.

    Returns:
        y of shape (T, B, D * H), and the states after the last step, of h's shape.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> y, h_n = gru(Variable((5, 2, 3)), Variable((1, 2, 2, 4)), bidirectional=True)
    >>> y.shape
    (5, 2, 8)
    >>> clear_parameters()
    """
    return _call(_GRU, (x, h), (w0_init, w_init, b_init, num_layers, dropout, bidirectional, training, rng, with_bias, fix_parameters))


_LSTM_CELL = _index('lstm_cell')


@parametric_function_api(
    'lstm',
    [
        ('affine/W', 'Weights of all gates.', '(inputs + state_size, 4, state_size)', True),
        ('affine/b', 'Biases of all gates.', '(4, state_size)', True),
    ],
)
def lstm_cell(x: Input, h: Input, c: Input, state_size: int, w_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False) -> Any:
    """One step of long short-term memory (Hochreiter and Schmidhuber, 1997), as a graph; its gates are i, o, f, n.

    Args:
        x: Input of shape (batch, inputs).
        h: State h of shape (batch, state_size).
        c: State c of shape (batch, state_size).
        state_size: Size of the states.
        w_init: Initial weights; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial biases; by default zeros.
        fix_parameters: Whether weights and biases stay as they are in training.

    Returns:
        The states h and c after the step.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> state = Variable((2, 4))
    >>> h, c = lstm_cell(Variable((2, 3)), state, state, 4)
    >>> h.shape, c.shape
    ((2, 4), (2, 4))
    >>> clear_parameters()
    """
    return _call(_LSTM_CELL, (x, h, c), (state_size, w_init, b_init, fix_parameters))


_MULTI_HEAD_ATTENTION = _index('multi_head_attention')


@parametric_function_api(
    'multi_head_attention',
    [
        ('q_weight', 'Weights of queries.', '(D_q, E)', True),
        ('k_weight', 'Weights of keys.', '(D_k, E)', True),
        ('v_weight', 'Weights of values.', '(D_v, E_v)', True),
        ('out_weight', 'Weights of the outputs.', '(E_v, out_dim)', True),
        ('q_bias', 'Bias of queries.', '(E,)', True),
        ('k_bias', 'Bias of keys.', '(E,)', True),
        ('v_bias', 'Bias of values.', '(E_v,)', True),
        ('out_bias', 'Bias of the outputs.', '(out_dim,)', True),
        ('attn_bias_k', 'The key that is learned.', '(1, 1, E)', True),
        ('attn_bias_v', 'The value that is learned.', '(1, 1, E_v)', True),
    ],
)
def multi_head_attention(query: Input, key: Input, value: Input, num_heads: int = 12, dropout: float = 0.0, k_embed_dim: int | None = None, v_embed_dim: int | None = None, out_dim: int | None = None, rng: Rng = None, with_bias: bool = True, add_attn_bias: bool = False, additive_mask: Input | None = None, key_padding_mask: Input | None = None, fix_parameters: bool = False, param_init: ParamInit = None) -> Any:
    """Attention of several heads (Vaswani et al., 2017): for each query the mean of all values, weighted by how well their
    keys match, `softmax(q k' / sqrt(E / num_heads)) v`, of each head with its own part of the embeddings.

    L_T queries and L_S keys and values, B sequences side by side; E is the embedding's size, E_v that of values.

    Args:
        query: Array of shape (L_T, B, D_q).
        key: Array of shape (L_S, B, D_k).
        value: Array of shape (L_S, B, D_v).
        num_heads: Number of heads, a divisor of E and of E_v.
        dropout: Share of the weights of attention that are dropped, at least 0 and less than 1.
        k_embed_dim: E; by default D_q.
        v_embed_dim: E_v; by default D_v.
        out_dim: Size of the outputs; by default E_v.
        rng: Random generator of the initial weights.
        with_bias: Whether there are biases.
        add_attn_bias: Whether a key and a value are learned beside those that are given.
        additive_mask: What is added to the scores before the softmax, of shape (L_T, L_S).
        key_padding_mask: 1 where a key is not to be seen, else 0; of shape (B, L_S).
        fix_parameters: Whether weights and biases stay as they are in training.
        param_init: Initial values by the parameters' names; by default uniform with the limits of
                `calc_uniform_lim_glorot`, and zeros for the biases.

    Returns:
        Outputs of shape (L_T, B, out_dim), and the weights of attention, of shape (B * num_heads, L_T, L_S), L_S with the one that is learned.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> x = Variable((5, 2, 12))
    >>> y, weights = multi_head_attention(x, x, x, num_heads=4)
    >>> y.shape, weights.shape
    ((5, 2, 12), (8, 5, 5))
    >>> clear_parameters()
    """
    return _call(_MULTI_HEAD_ATTENTION, (query, key, value), (num_heads, dropout, k_embed_dim, v_embed_dim, out_dim, rng, with_bias, add_attn_bias, additive_mask, key_padding_mask, fix_parameters, param_init))


_TRANSFORMER = _index('transformer')


@parametric_function_api(
    'transformer',
    [
        ('encoder{number}', 'Parameters of an encoder, `encoder00` and so on.', 'see transformer_encode', True),
        ('decoder{number}', 'Parameters of a decoder.', 'see transformer_decode', True),
    ],
)
def transformer(src: Input, tgt: Input, embed_dim: int = 512, num_heads: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Apply = None, src_additive_mask: Input | None = None, tgt_additive_mask: Input | None = None, memory_additive_mask: Input | None = None, src_key_padding_mask: Input | None = None, tgt_key_padding_mask: Input | None = None, memory_key_padding_mask: Input | None = None, rng: Rng = None, add_attn_bias: bool = False, fix_parameters: bool = False) -> Variable:
    """A transformer (Vaswani et al., 2017): encoders read the source, decoders the target and what the encoders have made of
    the source. L_S and L_T steps of source and target, B sequences side by side, E numbers each.

    Args:
        src: Source of shape (L_S, B, E).
        tgt: Target of shape (L_T, B, E).
        embed_dim: E.
        num_heads: Number of heads of attention, a divisor of E.
        num_encoder_layers: Number of encoders, at most 10,000.
        num_decoder_layers: Number of decoders, at most 10,000.
        dim_feedforward: Size of the layer between, after each attention.
        dropout: Share of the numbers that are dropped after each part of a layer, at least 0 and less than 1.
        activation: Activation of the layer between; by default `relu`.
        src_additive_mask: Added to the source's scores of itself, of shape (L_S, L_S).
        tgt_additive_mask: Added to the target's scores of itself, of shape (L_T, L_T).
        memory_additive_mask: Added to the target's scores of the source, of shape (L_T, L_S).
        src_key_padding_mask: 1 where the source is not to be seen by itself, else 0; of shape (B, L_S).
        tgt_key_padding_mask: 1 where the target is not to be seen by itself, else 0; of shape (B, L_T).
        memory_key_padding_mask: 1 where the source is not to be seen by the target, else 0; of shape (B, L_S).
        rng: Not used, as in NNabla: initial values come from the global generator.
        add_attn_bias: Whether each attention learns a key and a value beside those that it is given.
        fix_parameters: Whether all parameters stay as they are in training.

    Returns:
        Variable of shape (L_T, B, E).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> src, tgt = Variable((5, 2, 8)), Variable((4, 2, 8))
    >>> transformer(src, tgt, 8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16).shape
    (4, 2, 8)
    >>> clear_parameters()
    """
    return _call(_TRANSFORMER, (src, tgt), (embed_dim, num_heads, num_encoder_layers, num_decoder_layers, dim_feedforward, dropout, activation, src_additive_mask, tgt_additive_mask, memory_additive_mask, src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask, rng, add_attn_bias, fix_parameters))


_TRANSFORMER_ENCODE = _index('transformer_encode')


@parametric_function_api(
    'transformer_encode',
    [
        ('src_self_attn', 'Parameters of attention.', 'see multi_head_attention', True),
        ('enc_layer_norm1', 'Parameters of the first normalization.', 'see layer_normalization', True),
        ('enc_affine1', 'Parameters of the layer between.', 'see affine', True),
        ('enc_affine2', 'Parameters of the layer after it.', 'see affine', True),
        ('enc_layer_norm2', 'Parameters of the second normalization.', 'see layer_normalization', True),
    ],
)
def transformer_encode(src: Input, embed_dim: int, num_heads: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Apply = None, src_additive_mask: Input | None = None, src_key_padding_mask: Input | None = None, rng: Rng = None, add_attn_bias: bool = False, fix_parameters: bool = False) -> Variable:
    """An encoder of a transformer (Vaswani et al., 2017): attention of a sequence to itself, then two layers at each step. Around
    each part goes a sum with its input, and a layer normalization.

    Args:
        src: Sequences of shape (L_S, B, E).
        embed_dim: E.
        num_heads: Number of heads of attention, a divisor of E.
        dim_feedforward: Size of the layer between.
        dropout: Share of the numbers that are dropped after each part, at least 0 and less than 1.
        activation: Activation of the layer between; by default `relu`.
        src_additive_mask: Added to the scores, of shape (L_S, L_S).
        src_key_padding_mask: 1 where a step is not to be seen, else 0; of shape (B, L_S).
        rng: Not used, as in NNabla: initial values come from the global generator.
        add_attn_bias: Whether attention learns a key and a value beside those that it is given.
        fix_parameters: Whether all parameters stay as they are in training.

    Returns:
        Variable of shape (L_S, B, E).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> transformer_encode(Variable((5, 2, 8)), 8, 2, dim_feedforward=16).shape
    (5, 2, 8)
    >>> clear_parameters()
    """
    return _call(_TRANSFORMER_ENCODE, (src,), (embed_dim, num_heads, dim_feedforward, dropout, activation, src_additive_mask, src_key_padding_mask, rng, add_attn_bias, fix_parameters))


_TRANSFORMER_DECODE = _index('transformer_decode')


@parametric_function_api(
    'transformer_decode',
    [
        ('tgt_self_attn', 'Parameters of attention to itself.', 'see multi_head_attention', True),
        ('dec_layer_norm1', 'Parameters of the first normalization.', 'see layer_normalization', True),
        ('tgt_memory_attn', 'Parameters of attention to memory.', 'see multi_head_attention', True),
        ('dec_layer_norm2', 'Parameters of the second normalization.', 'see layer_normalization', True),
        ('dec_affine1', 'Parameters of the layer between.', 'see affine', True),
        ('dec_affine2', 'Parameters of the layer after it.', 'see affine', True),
        ('dec_layer_norm3', 'Parameters of the third normalization.', 'see layer_normalization', True),
    ],
)
def transformer_decode(tgt: Input, memory: Input, embed_dim: int, num_heads: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: Apply = None, tgt_additive_mask: Input | None = None, memory_additive_mask: Input | None = None, tgt_key_padding_mask: Input | None = None, memory_key_padding_mask: Input | None = None, rng: Rng = None, add_attn_bias: bool = False, fix_parameters: bool = False) -> Variable:
    """A decoder of a transformer (Vaswani et al., 2017): attention of a sequence to itself, then to the source, then two layers
    at each step. Around each part goes a sum with its input, and a layer normalization.

    Args:
        tgt: Sequences of shape (L_T, B, E).
        memory: What the encoders give, of shape (L_S, B, E).
        embed_dim: E.
        num_heads: Number of heads of attention, a divisor of E.
        dim_feedforward: Size of the layer between.
        dropout: Share of the numbers that are dropped after each part, at least 0 and less than 1.
        activation: Activation of the layer between; by default `relu`.
        tgt_additive_mask: Added to the scores of itself, of shape (L_T, L_T).
        memory_additive_mask: Added to the scores of memory, of shape (L_T, L_S).
        tgt_key_padding_mask: 1 where a step is not to be seen, else 0; of shape (B, L_T).
        memory_key_padding_mask: 1 where memory is not to be seen, else 0; of shape (B, L_S).
        rng: Not used, as in NNabla: initial values come from the global generator.
        add_attn_bias: Whether each attention learns a key and a value beside those that it is given.
        fix_parameters: Whether all parameters stay as they are in training.

    Returns:
        Variable of shape (L_T, B, E).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> transformer_decode(Variable((4, 2, 8)), Variable((5, 2, 8)), 8, 2, dim_feedforward=16).shape
    (4, 2, 8)
    >>> clear_parameters()
    """
    return _call(_TRANSFORMER_DECODE, (tgt, memory), (embed_dim, num_heads, dim_feedforward, dropout, activation, tgt_additive_mask, memory_additive_mask, tgt_key_padding_mask, memory_key_padding_mask, rng, add_attn_bias, fix_parameters))


_PRUNED_AFFINE = _index('pruned_affine')


@parametric_function_api(
    'pruned_affine',
    [
        ('W', 'Weight matrix.', '(inmaps, *n_outmaps)', True),
        ('b', 'Bias.', 'n_outmaps', True),
        ('W_q', 'The weight as it is used.', '(inmaps, *n_outmaps)', False),
        ('b_q', 'The bias as it is used.', 'n_outmaps', False),
    ],
)
def pruned_affine(inp: Input, n_outmaps: int | Sequence[int], base_axis: int = 1, w_init: Initializer = None, b_init: Initializer = None, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, prune_w: bool = True, rate_w: float = 0.9, prune_b: bool = True, rate_b: float = 0.9) -> Variable:
    """An affine layer whose weight and bias are used as zeros where the magnitude is small, see `prune`.

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number; may count from the end.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        prune_w: Whether the weight is pruned.
        rate_w: Share of the weight that becomes 0.
        prune_b: Whether the bias is pruned.
        rate_b: Share of the bias that becomes 0.

    Returns:
        Variable of shape `inp.shape[:base_axis] + n_outmaps`.

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> pruned_affine(Variable((8, 3, 4)), 5).shape
    (8, 5)
    >>> clear_parameters()
    """
    return _call(_PRUNED_AFFINE, (inp,), (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, prune_w, rate_w, prune_b, rate_b))


_PRUNED_CONVOLUTION = _index('pruned_convolution')


@parametric_function_api(
    'pruned_conv',
    [
        ('W', 'Filters.', '(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)', True),
        ('b', 'Bias.', '(outmaps,)', True),
        ('W_q', 'The weight as it is used.', '(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)', False),
        ('b_q', 'The bias as it is used.', '(outmaps,)', False),
    ],
)
def pruned_convolution(inp: Input, outmaps: int, kernel: Sequence[int], pad: Sequence[int] | None = None, stride: Sequence[int] | None = None, dilation: Sequence[int] | None = None, group: int = 1, channel_last: bool = False, w_init: Initializer = None, b_init: Initializer = None, base_axis: int = 1, fix_parameters: bool = False, rng: Rng = None, with_bias: bool = True, prune_w: bool = True, rate_w: float = 0.9, prune_b: bool = True, rate_b: float = 0.9) -> Variable:
    """A convolution whose weight and bias are used as zeros where the magnitude is small, see `prune`.

    Args:
        inp: Input of shape (samples..., channels, *sizes).
        outmaps: Number of output channels.
        kernel: Kernel size, one a spatial axis.
        pad: Zeros put around, one a spatial axis; by default 0.
        stride: Steps, one a spatial axis; by default 1.
        dilation: Distance of the kernel's points, one a spatial axis; by default 1.
        group: Number of groups of channels that do not mix.
        channel_last: Whether channels are the last axis.
        w_init: Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.
        b_init: Initial bias; by default zeros.
        base_axis: First axis that is not a sample's number.
        fix_parameters: Whether weight and bias stay as they are in training.
        rng: Random generator of the initial weight.
        with_bias: Whether there is a bias.
        prune_w: Whether the weight is pruned.
        rate_w: Share of the weight that becomes 0.
        prune_b: Whether the bias is pruned.
        rate_b: Share of the bias that becomes 0.

    Returns:
        Variable of shape (samples..., outmaps, *sizes).

    Raises:
        ValueError: If arguments do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> pruned_convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1)).shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    return _call(_PRUNED_CONVOLUTION, (inp,), (outmaps, kernel, pad, stride, dilation, group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, prune_w, rate_w, prune_b, rate_b))
