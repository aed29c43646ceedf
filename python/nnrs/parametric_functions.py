"""Functions with parameters of their own: layers that make, name and find their weights in the current scope."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from . import functions as F
from ._core import NdArray, Variable
from ._errors import ArgumentError, ArgumentTypeError, describe, message, missing_name
from ._parametric_api import parametric_function_api
from .initializer import ConstantInitializer, UniformInitializer, calc_uniform_lim_glorot
from .parameter import Deferred, Initializer, get_parameter_or_create

__all__ = [
    "affine",
    "batch_normalization",
    "convolution",
    "embed",
    "layer_normalization",
    "parametric_function_api",
]

# An NdArray is computed at once and gives an NdArray. The types tell of Variables: the decorator cannot tell which.
Input: TypeAlias = Variable | NdArray
Apply = Callable[[Variable], Variable] | None
Rng: TypeAlias = "np.random.RandomState | None"
ParamInit = dict[str, Initializer] | None

_LATER = (
    "binary_connect_affine binary_connect_convolution binary_weight_affine binary_weight_convolution cpd3_convolution "
    "deconvolution deformable_convolution depthwise_convolution depthwise_deconvolution fixed_point_quantized_affine "
    "fixed_point_quantized_convolution fused_batch_normalization group_normalization gru inq_affine inq_convolution "
    "instance_normalization lstm lstm_cell LSTMCell mean_subtraction min_max_quantize min_max_quantized_affine "
    "min_max_quantized_convolution multi_head_attention pow2_quantized_affine pow2_quantized_convolution prelu "
    "pruned_affine pruned_convolution rnn spectral_norm svd_affine svd_convolution sync_batch_normalization "
    "transformer transformer_decode transformer_encode weight_normalization"
)


def __getattr__(name: str) -> Any:
    raise missing_name(__name__, name, _LATER)


# --- what the layers share --------------------------------------------------------------------------------------------


def _sizes(function: str, argument: str, value: Any) -> list[int]:
    """A size or several as a list of integers."""
    values = list(value) if isinstance(value, (tuple, list, np.ndarray)) else [value]
    for n in values:
        if not isinstance(n, (int, float, np.number)) or not math.isfinite(n) or int(n) != n:
            raise ArgumentTypeError(message(function, argument, "an integer or a tuple of integers", describe(value)))
        if n < 0:
            raise ArgumentError(message(function, argument, "0 or more", describe(value)))
    return [int(n) for n in values]


def _size(function: str, argument: str, value: Any) -> int:
    sizes = _sizes(function, argument, value)
    if len(sizes) != 1 or isinstance(value, (tuple, list)):
        raise ArgumentTypeError(message(function, argument, "an integer", describe(value)))
    return sizes[0]


def _axis(function: str, argument: str, axis: Any, ndim: int) -> int:
    """An axis counted from the front."""
    if not isinstance(axis, (int, np.integer)):
        raise ArgumentTypeError(message(function, argument, "an axis as an integer", describe(axis)))
    if not -ndim <= axis < ndim:
        expected = f"an axis from {-ndim} to {ndim - 1} of an input with {ndim} dimensions"
        raise ArgumentError(message(function, argument, expected, int(axis)))
    return int(axis) % ndim


def _axes(function: str, argument: str, axes: Any, ndim: int) -> list[int]:
    several = axes if isinstance(axes, (tuple, list, np.ndarray)) else [axes]
    return [_axis(function, argument, axis, ndim) for axis in several]


def _input(function: str, inp: Any) -> Any:
    """The input as what it may be: parameters are Variables in either case."""
    hint = "Variable.from_numpy_array makes one from an array"
    if not isinstance(inp, (Variable, NdArray)):
        raise ArgumentTypeError(message(function, "inp", "a Variable or NdArray", describe(inp), hint))
    return inp


def _check_apply(function: str, **functions: Any) -> None:
    for argument, apply in functions.items():
        if apply is not None and not callable(apply):
            raise ArgumentTypeError(message(function, argument, "a function of a Variable, or None", describe(apply)))


def _parameter(name: str, shape: Sequence[int], init: Initializer, fixed: bool, apply: Apply = None) -> Variable:
    """A trained parameter as this call uses it: fixed or not, changed by `apply` or not."""
    param: Variable = get_parameter_or_create(name, tuple(shape), init, True, not fixed)
    return param if apply is None else apply(param)


def _glorot(inmaps: int, outmaps: int, kernel: tuple[int, ...], rng: Rng) -> Initializer:
    """The default initializer of weights; limits are worked out only if the weight is new."""
    return Deferred(lambda: UniformInitializer(calc_uniform_lim_glorot(inmaps, outmaps, kernel), rng=rng))


def _bias(shape: Sequence[int], init: Initializer, fixed: bool, apply: Apply) -> Variable:
    return _parameter("b", shape, ConstantInitializer() if init is None else init, fixed, apply)


def _by_name(function: str, param_init: ParamInit) -> Mapping[str, Any]:
    """Initial values by the names of parameters."""
    if param_init is not None and not isinstance(param_init, Mapping):
        expected = "initial values by name, as {'beta': 0.5}"
        raise ArgumentTypeError(message(function, "param_init", expected, describe(param_init)))
    return param_init or {}


def _beta_gamma(
    shape: list[int], given: Mapping[str, Any], fixed: bool, no_bias: bool, no_scale: bool
) -> tuple[Any, Any]:
    """Bias and scale of a normalization, each None where it is not wanted."""
    beta = None if no_bias else _parameter("beta", shape, given.get("beta", ConstantInitializer(0)), fixed)
    gamma = None if no_scale else _parameter("gamma", shape, given.get("gamma", ConstantInitializer(1)), fixed)
    return beta, gamma


# --- the layers -------------------------------------------------------------------------------------------------------


@parametric_function_api(
    "affine",
    [("W", "Weight matrix.", "(inmaps, *n_outmaps)", True), ("b", "Bias.", "n_outmaps", True)],
)
def affine(
    inp: Input,
    n_outmaps: int | Sequence[int],
    base_axis: int = 1,
    w_init: Initializer = None,
    b_init: Initializer = None,
    fix_parameters: bool = False,
    rng: Rng = None,
    with_bias: bool = True,
    apply_w: Apply = None,
    apply_b: Apply = None,
) -> Variable:
    """Affine layer (fully connected layer), `y = x W + b`.

    Args:
        inp: Input; its axes from `base_axis` on count as one.
        n_outmaps: Number of outputs, or the shape of them.
        base_axis: First axis that is not a sample's number.
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
        ValueError: If there is no such axis, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> affine(Variable((8, 3, 4)), 5, name="fc").shape
    (8, 5)
    >>> clear_parameters()
    """
    x = _input("affine", inp)
    _check_apply("affine", apply_w=apply_w, apply_b=apply_b)
    outmaps = _sizes("affine", "n_outmaps", n_outmaps)
    inmaps = math.prod(inp.shape[_axis("affine", "base_axis", base_axis, len(inp.shape)) :])
    if w_init is None:
        w_init = _glorot(inmaps, math.prod(outmaps), (1, 1), rng)
    w = _parameter("W", [inmaps, *outmaps], w_init, fix_parameters, apply_w)
    b = _bias(outmaps, b_init, fix_parameters, apply_b) if with_bias else None
    return cast(Variable, F.affine(x, w, b, base_axis))


@parametric_function_api(
    "conv",
    [
        ("W", "Filters.", "(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)", True),
        ("b", "Bias.", "(outmaps,)", True),
    ],
)
def convolution(
    inp: Input,
    outmaps: int,
    kernel: Sequence[int],
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    group: int = 1,
    channel_last: bool = False,
    w_init: Initializer = None,
    b_init: Initializer = None,
    base_axis: int = 1,
    fix_parameters: bool = False,
    rng: Rng = None,
    with_bias: bool = True,
    apply_w: Apply = None,
    apply_b: Apply = None,
) -> Variable:
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
        ValueError: If shapes do not fit, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> convolution(Variable((8, 3, 32, 32)), 16, (3, 3), pad=(1, 1), name="c1").shape
    (8, 16, 32, 32)
    >>> clear_parameters()
    """
    x = _input("convolution", inp)
    _check_apply("convolution", apply_w=apply_w, apply_b=apply_b)
    maps, window = _size("convolution", "outmaps", outmaps), _sizes("convolution", "kernel", kernel)
    if not all(window):
        raise ArgumentError(message("convolution", "kernel", "sizes of 1 or more", describe(kernel)))
    axis = _axis("convolution", "base_axis", base_axis, len(inp.shape))
    channels = inp.shape[-1 if channel_last else axis]
    _check_group(channels, maps, group)
    if w_init is None:
        w_init = _glorot(channels, maps, tuple(window), rng)
    depth = channels // group
    shape = [maps, *window, depth] if channel_last else [maps, depth, *window]
    w = _parameter("W", shape, w_init, fix_parameters, apply_w)
    b = _bias([maps], b_init, fix_parameters, apply_b) if with_bias else None
    return cast(Variable, F.convolution(x, w, b, base_axis, pad, stride, dilation, group, channel_last))


def _check_group(channels: int, outmaps: int, group: Any) -> None:
    if _size("convolution", "group", group) < 1 or channels % group or outmaps % group:
        expected = f"a divisor of the {channels} input channels and of outmaps={outmaps}"
        raise ArgumentError(message("convolution", "group", expected, group))


@parametric_function_api(
    "bn",
    [
        ("beta", "Bias.", "<1, but inp's size at axes>", True),
        ("gamma", "Scale.", "<1, but inp's size at axes>", True),
        ("mean", "Running mean.", "<1, but inp's size at axes>", False),
        ("var", "Running variance.", "<1, but inp's size at axes>", False),
    ],
)
def batch_normalization(
    inp: Input,
    axes: Sequence[int] = [1],
    decay_rate: float = 0.9,
    eps: float = 1e-5,
    batch_stat: bool = True,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: ParamInit = None,
    no_scale: bool = False,
    no_bias: bool = False,
) -> Any:
    r"""Batch normalization: each channel is normalized over all other axes (Ioffe and Szegedy, 2015).

    .. math:: y = \gamma (x - \mu) / \sqrt{\sigma^2 + \epsilon} + \beta

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
        ValueError: If there is no such axis, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters, get_parameters
    >>> batch_normalization(Variable((8, 3, 4, 4))).shape, get_parameters()["bn/gamma"].shape
    ((8, 3, 4, 4), (1, 3, 1, 1))
    >>> clear_parameters()
    """
    x = _input("batch_normalization", inp)
    kept = _axes("batch_normalization", "axes", axes, len(inp.shape))
    shape = [n if i in kept else 1 for i, n in enumerate(inp.shape)]
    given = _by_name("batch_normalization", param_init)
    beta, gamma = _beta_gamma(shape, given, fix_parameters, no_bias, no_scale)
    mean = get_parameter_or_create("mean", tuple(shape), given.get("mean", ConstantInitializer(0)), False)
    var = get_parameter_or_create("var", tuple(shape), given.get("var", ConstantInitializer(1)), False)
    return F.batch_normalization(x, beta, gamma, mean, var, kept, decay_rate, eps, batch_stat, output_stat)


@parametric_function_api(
    "layer_normalization",
    [
        ("beta", "Bias.", "<inp's size, but 1 at batch_axis>", True),
        ("gamma", "Scale.", "<inp's size, but 1 at batch_axis>", True),
    ],
)
def layer_normalization(
    inp: Input,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: ParamInit = None,
    no_scale: bool = False,
    no_bias: bool = False,
) -> Any:
    r"""Layer normalization: each sample is normalized over all its other axes (Ba et al., 2016).

    .. math:: y = \gamma (x - \mu) / \sqrt{\sigma^2 + \epsilon} + \beta

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
        ValueError: If there is no such axis, or a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> layer_normalization(Variable((8, 3, 4))).shape
    (8, 3, 4)
    >>> clear_parameters()
    """
    x = _input("layer_normalization", inp)
    batch = _axes("layer_normalization", "batch_axis", batch_axis, len(inp.shape))
    shape = [1 if i in batch else n for i, n in enumerate(inp.shape)]
    given = _by_name("layer_normalization", param_init)
    beta, gamma = _beta_gamma(shape, given, fix_parameters, no_bias, no_scale)
    return F.layer_normalization(x, beta, gamma, batch_axis, eps, output_stat)


@parametric_function_api("embed", [("W", "One row of features for each index.", "(n_inputs, n_features)", True)])
def embed(
    inp: Input,
    n_inputs: int,
    n_features: int,
    initializer: Initializer = None,
    fix_parameters: bool = False,
    apply_w: Apply = None,
) -> Variable:
    r"""Rows of a table of features, looked up by index.

    Args:
        inp: Indices from 0 to `n_inputs - 1`, of any shape.
        n_inputs: Number of rows (words, say).
        n_features: Number of features of each.
        initializer: Initial table; by default uniform from :math:`-\sqrt 3` to :math:`\sqrt 3`.
        fix_parameters: Whether the table stays as it is in training.
        apply_w: Function applied to the table before its use.

    Returns:
        Variable of shape `inp.shape + (n_features,)`.

    Raises:
        ValueError: If a parameter of another shape is there already.

    >>> from nnrs.parameter import clear_parameters
    >>> embed(Variable((2, 3)), 10, 4).shape
    (2, 3, 4)
    >>> clear_parameters()
    """
    x = _input("embed", inp)
    _check_apply("embed", apply_w=apply_w)
    shape = [_size("embed", "n_inputs", n_inputs), _size("embed", "n_features", n_features)]
    if initializer is None:
        initializer = UniformInitializer((-math.sqrt(3.0), math.sqrt(3.0)))
    return cast(Variable, F.embed(x, _parameter("W", shape, initializer, fix_parameters, apply_w)))
