"""Functions with parameters of their own: layers that make, name and find their weights in the current scope.

Generated from the registry by tools/generate.py: do not edit.
"""

# ruff: noqa: E501
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _core
from ._core import Variable
from ._parametric_api import Apply, Initializer, Input, ParamInit, Rng, parametric_function_api
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
    "convolution",
    "deconvolution",
    "embed",
    "fused_batch_normalization",
    "group_normalization",
    "gru",
    "instance_normalization",
    "layer_normalization",
    "lstm",
    "lstm_cell",
    "mean_subtraction",
    "parametric_function_api",
    "prelu",
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
    return _call(_MEAN_SUBTRACTION, inp, (base_axis, update_running_mean, fix_parameters))


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
