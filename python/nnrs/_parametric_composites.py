"""Parametric functions that are written in Python: those that take a communicator, which is an object of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import functions as F
from . import initializer as I
from ._core import Variable
from ._errors import ArgumentError, message
from ._parametric_api import Apply, Initializer, Input, ParamInit, Rng, parametric_function_api
from .parameter import get_parameter_or_create

_AT_AXES = "<1, but inp's size at axes>"
_BATCH = [
    ("beta", "Bias.", _AT_AXES, True),
    ("gamma", "Scale.", _AT_AXES, True),
    ("mean", "Running mean.", _AT_AXES, False),
    ("var", "Running variance.", _AT_AXES, False),
]


def _batch_parameters(
    inp: Input,
    axes: int | Sequence[int],
    fix_parameters: bool,
    param_init: ParamInit,
    no_scale: bool,
    no_bias: bool,
) -> tuple[Any, Any, Any, Any]:
    """beta, gamma, running mean and variance of a batch normalization."""
    kept = {_axis(inp, a, "batch_normalization", "axes") for a in (axes if isinstance(axes, Sequence) else [axes])}
    shape = tuple(n if i in kept else 1 for i, n in enumerate(inp.shape))
    init = param_init or {}

    def make(name: str, usual: float, is_trained: bool) -> Variable:
        first = init.get(name)
        first = I.ConstantInitializer(usual) if first is None else first
        return get_parameter_or_create(name, shape, first, is_trained, is_trained and not fix_parameters)

    beta = None if no_bias else make("beta", 0, True)
    gamma = None if no_scale else make("gamma", 1, True)
    return beta, gamma, make("mean", 0, False), make("var", 1, False)


def _axis(x: Input, axis: int, function: str, name: str) -> int:
    if not -len(x.shape) <= axis < len(x.shape):
        raise ArgumentError(message(function, name, f"an axis of {x.shape}", axis))
    return int(axis) % len(x.shape)


@parametric_function_api("bn", _BATCH)
def sync_batch_normalization(
    inp: Input,
    comm: Any,
    group: str = "world",
    axes: Sequence[int] = [1],  # noqa: B006 (NNabla's default)
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: bool = False,
    fix_parameters: bool = False,
    param_init: ParamInit = None,
    no_scale: bool = False,
    no_bias: bool = False,
) -> Any:
    """Batch normalization by the statistics of the batches of all processes of a communicator together.

    Args:
        inp: Input, this process's batch.
        comm: Communicator, see `nnrs.functions.sync_batch_normalization`.
        group: The communicator's group of processes.
        axes: Axes that keep statistics of their own (the channels).
        decay_rate: How much of the running statistics each step keeps.
        eps: Added to the variance.
        batch_stat: Use the batches' statistics (training), else the running ones.
        output_stat: Return mean and variance as well.
        fix_parameters: Whether bias and scale stay as they are in training.
        param_init: Initial values by name: 'beta', 'gamma', 'mean', 'var'; by default 0, 1, 0, 1.
        no_scale: Leave out the scale.
        no_bias: Leave out the bias.

    Returns:
        Variable of `inp`'s shape; with `output_stat` also mean and variance.
    """
    x: Any = inp
    own = _batch_parameters(inp, axes, fix_parameters, param_init, no_scale, no_bias)
    return F.sync_batch_normalization(x, *own, comm, group, axes, decay_rate, eps, batch_stat, output_stat)


@parametric_function_api(
    "deformable_conv",
    [
        ("W", "Filters.", "(outmaps, inmaps // group, *kernel), with channel_last (outmaps, *kernel, ...)", True),
        ("b", "Bias.", "(outmaps,)", True),
    ],
)
def deformable_convolution(
    inp: Input,
    outmaps: int,
    kernel: Sequence[int],
    offset: Input,
    mask: Input | None = None,
    pad: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dilation: Sequence[int] | None = None,
    group: int = 1,
    deformable_group: int = 1,
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

    >>> from nnrs.parameter import clear_parameters
    >>> x, offset = Variable((8, 3, 16, 16)), Variable((8, 18, 16, 16))
    >>> deformable_convolution(x, 6, (3, 3), offset, pad=(1, 1), name="d1").shape
    (8, 6, 16, 16)
    >>> clear_parameters()
    """
    x: Any = inp
    channels = x.shape[-1 if channel_last else _axis(inp, base_axis, "deformable_convolution", "base_axis")]
    if group < 1 or channels % group:
        expected = f"a divisor of the {channels} input channels"
        raise ArgumentError(message("deformable_convolution", "group", expected, group))
    each = channels // group
    shape = (outmaps, *kernel, each) if channel_last else (outmaps, each, *kernel)
    if w_init is None:
        w_init = I.UniformInitializer(I.calc_uniform_lim_glorot(channels, outmaps, tuple(kernel)), rng=rng)
    w: Any = get_parameter_or_create("W", shape, w_init, True, not fix_parameters)
    w = w if apply_w is None else apply_w(w)
    b: Any = None
    if with_bias:
        b = get_parameter_or_create(
            "b", (outmaps,), b_init if b_init is not None else I.ConstantInitializer(), True, not fix_parameters
        )
        b = b if apply_b is None else apply_b(b)
    distances: Any = offset
    factors: Any = mask
    last = (pad, stride, dilation, group, deformable_group, channel_last)
    made: Variable = F.deformable_convolution(x, w, distances, factors, b, base_axis, *last)
    return made
