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
from ._parametric_composites import (
    fused_batch_normalization,
    spectral_norm,
    sync_batch_normalization,
    weight_normalization,
)
from ._parametric_recurrent import LSTMCell, gru, lstm, lstm_cell, rnn

__all__ = [
    "LSTMCell",
    "affine",
    "batch_normalization",
    "binary_connect_affine",
    "binary_connect_convolution",
    "binary_weight_affine",
    "binary_weight_convolution",
    "convolution",
    "deconvolution",
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
    "min_max_quantize",
    "min_max_quantized_affine",
    "min_max_quantized_convolution",
    "parametric_function_api",
    "pow2_quantized_affine",
    "pow2_quantized_convolution",
    "prelu",
    "pruned_affine",
    "pruned_convolution",
    "rnn",
    "spectral_norm",
    "sync_batch_normalization",
    "weight_normalization",
]

_call = _core.parametric
_index = _core.parametric_index


def __getattr__(name: str) -> Any:
    from ._missing import missing_name

    raise missing_name(__name__, name)


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
    return _call(_AFFINE, inp, (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, apply_w, apply_b))


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
    return _call(_BATCH_NORMALIZATION, inp, (axes, decay_rate, eps, batch_stat, output_stat, fix_parameters, param_init, no_scale, no_bias))


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
    return _call(_BINARY_CONNECT_AFFINE, inp, (n_outmaps, base_axis, quantize_zero_to, w_init, wb_init, b_init, fix_parameters, rng, with_bias))


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
    return _call(_BINARY_CONNECT_CONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, quantize_zero_to, w_init, wb_init, b_init, base_axis, fix_parameters, rng, with_bias))


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
    return _call(_BINARY_WEIGHT_AFFINE, inp, (n_outmaps, base_axis, quantize_zero_to, w_init, wb_init, b_init, fix_parameters, rng, with_bias))


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
    return _call(_BINARY_WEIGHT_CONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, quantize_zero_to, w_init, wb_init, b_init, base_axis, fix_parameters, rng, with_bias))


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
    return _call(_CONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, apply_w, apply_b))


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
    return _call(_DECONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, channel_last, output_padding, w_init, b_init, base_axis, fix_parameters, rng, with_bias, apply_w, apply_b))


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
    return _call(_EMBED, inp, (n_inputs, n_features, initializer, fix_parameters, apply_w))


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
    return _call(_FIXED_POINT_QUANTIZED_AFFINE, inp, (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, quantize_w, sign_w, n_w, delta_w, ste_fine_grained_w, quantize_b, sign_b, n_b, delta_b, ste_fine_grained_b))


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
    return _call(_FIXED_POINT_QUANTIZED_CONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, quantize_w, sign_w, n_w, delta_w, ste_fine_grained_w, quantize_b, sign_b, n_b, delta_b, ste_fine_grained_b))


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
    return _call(_GROUP_NORMALIZATION, inp, (num_groups, channel_axis, batch_axis, eps, output_stat, fix_parameters, param_init, no_scale, no_bias))


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
    return _call(_INQ_AFFINE, inp, (n_outmaps, base_axis, num_bits, inq_iterations, selection_algorithm, seed, w_init, i_init, b_init, fix_parameters, rng, with_bias))


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
    return _call(_INQ_CONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, num_bits, inq_iterations, selection_algorithm, seed, w_init, i_init, b_init, base_axis, fix_parameters, rng, with_bias))


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
    return _call(_INSTANCE_NORMALIZATION, inp, (channel_axis, batch_axis, eps, output_stat, fix_parameters, param_init, no_scale, no_bias))


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
    return _call(_LAYER_NORMALIZATION, inp, (batch_axis, eps, output_stat, fix_parameters, param_init, no_scale, no_bias))


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
    return _call(_MIN_MAX_QUANTIZE, x, (ql_min, ql_max, decay, x_min_max, ema, ste_fine_grained, eps, qr_min_init, qr_max_init, fix_parameters, outputs))


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
    return _call(_MIN_MAX_QUANTIZED_AFFINE, inp, (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, quantize_w, ql_min_w, ql_max_w, w_min_max, qr_min_w_init, qr_max_w_init, ste_fine_grained_w, quantize_b, ql_min_b, ql_max_b, b_min_max, qr_min_b_init, qr_max_b_init, ste_fine_grained_b, eps))


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
    return _call(_MIN_MAX_QUANTIZED_CONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, quantize_w, ql_min_w, ql_max_w, w_min_max, qr_min_w_init, qr_max_w_init, ste_fine_grained_w, quantize_b, ql_min_b, ql_max_b, b_min_max, qr_min_b_init, qr_max_b_init, ste_fine_grained_b, eps))


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
    return _call(_POW2_QUANTIZED_AFFINE, inp, (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, quantize_w, sign_w, with_zero_w, n_w, m_w, ste_fine_grained_w, quantize_b, sign_b, with_zero_b, n_b, m_b, ste_fine_grained_b))


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
    return _call(_POW2_QUANTIZED_CONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, w_init, b_init, base_axis, fix_parameters, rng, with_bias, quantize_w, with_zero_w, sign_w, n_w, m_w, ste_fine_grained_w, quantize_b, with_zero_b, sign_b, n_b, m_b, ste_fine_grained_b))


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
    return _call(_PRELU, inp, (base_axis, shared, fix_parameters, slope_init))


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
    return _call(_PRUNED_AFFINE, inp, (n_outmaps, base_axis, w_init, b_init, fix_parameters, rng, with_bias, prune_w, rate_w, prune_b, rate_b))


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
    return _call(_PRUNED_CONVOLUTION, inp, (outmaps, kernel, pad, stride, dilation, group, channel_last, w_init, b_init, base_axis, fix_parameters, rng, with_bias, prune_w, rate_w, prune_b, rate_b))
