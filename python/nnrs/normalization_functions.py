"""Normalization as NNabla has it in Python: scale, shift and statistics may be None. `nnrs.functions` has all of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal, TypeVar, cast, overload

import numpy as np

from . import _core
from ._calls import check_functions
from ._core import NdArray, Variable
from ._errors import ArgumentError, ShapeError, check_flag, message
from ._fused_batch_normalization import fused_batch_normalization
from ._missing import missing_name
from ._sync_normalization import sync_batch_normalization

__all__ = [
    "BatchNormalizationInOutAdapter",
    "batch_normalization",
    "fused_batch_normalization",
    "group_normalization",
    "instance_normalization",
    "layer_normalization",
    "norm_normalization",
    "spectral_norm",
    "sync_batch_normalization",
    "tensor_normalization",
    "weight_standardization",
]

A = TypeVar("A", Variable, NdArray)
_BATCH = _core.function_index("batch_normalization")
_LAYER = _core.function_index("layer_normalization")
_GROUP = _core.function_index("group_normalization")
_INSTANCE = _core.function_index("instance_normalization")
_TENSOR = _core.function_index("tensor_normalization")
_WEIGHT = _core.function_index("weight_standardization")
_NORM = _core.function_index("norm_normalization")
_SPECTRAL = _core.function_index("spectral_norm")


def _call(index: int | None, inputs: Sequence[Any], args: tuple[Any, ...]) -> Any:
    return _core.call(index, tuple(v for v in inputs if v is not None), args, -1, None)


@overload
def batch_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    mean: A | None,
    variance: A | None,
    axes: int | Sequence[int] = ...,
    decay_rate: float = ...,
    eps: float = ...,
    batch_stat: bool = ...,
    output_stat: Literal[False] = False,
    n_outputs: int | None = ...,
) -> A: ...
@overload
def batch_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    mean: A | None,
    variance: A | None,
    axes: int | Sequence[int] = ...,
    decay_rate: float = ...,
    eps: float = ...,
    batch_stat: bool = ...,
    output_stat: bool = False,
    n_outputs: int | None = ...,
) -> Any: ...
def batch_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    mean: A | None,
    variance: A | None,
    axes: int | Sequence[int] = [1],  # noqa: B006 (NNabla's default)
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    output_stat: bool = False,
    n_outputs: int | None = None,
) -> Any:
    """Batch normalization (Ioffe and Szegedy, 2015), `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        x: N-D array.
        beta: Shift, of x's size at `axes` and size 1 elsewhere, or None.
        gamma: Scale, of beta's shape, or None.
        mean: Running mean, of beta's shape; with batch_stat it may be None.
        variance: Running variance, likewise.
        axes: Axes with statistics of their own; the others are averaged over.
        decay_rate: How much of the running statistics each forward pass keeps.
        eps: Added to the variance.
        batch_stat: Normalize by the statistics of x and move the running ones; if not, by the running ones.
        output_stat: Return mean and biased variance of the batch, too.
        n_outputs: Not used; NNabla's.

    Returns:
        y of x's shape; with output_stat the tuple (y, mean, variance).

    Raises:
        ValueError: For shapes or axes that do not fit, or without statistics to use.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 6]])
    >>> mean, variance = A([[0.0, 0.0]]), A([[1.0, 1.0]])
    >>> print(F.batch_normalization(x, None, None, mean, variance).data.round(3))
    [[-1. -1.]
     [ 1.  1.]]
    >>> print(mean.data.round(3))
    [[0.2 0.4]]
    """
    if (mean is None or variance is None) and not check_flag("batch_normalization", "batch_stat", batch_stat):
        name = "mean" if mean is None else "variance"
        hint = "batch_stat=False normalizes by the running statistics; batch_stat=True by those of x"
        raise ArgumentError(message("batch_normalization", name, "a Variable", "None", hint))
    mean_, variance_ = (_statistic(x, axes) if v is None else v for v in (mean, variance))
    args = (axes, decay_rate, eps, batch_stat, gamma is None, beta is None, output_stat)
    return _call(_BATCH, (x, beta, gamma, mean_, variance_), args)


def _statistic(x: Any, axes: int | Sequence[int]) -> Variable:
    """Room for a running statistic. Of wrong arguments the call itself says what is wrong."""
    shape = getattr(x, "shape", ())
    try:
        several = islice(axes, len(shape)) if isinstance(axes, Sequence | np.ndarray) else [axes]
        kept = {int(a) % max(len(shape), 1) for a in several}
    except (TypeError, ValueError, OverflowError):
        kept = set()
    return Variable(tuple(n if i in kept else 1 for i, n in enumerate(shape)))


@overload
def layer_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    batch_axis: int | Sequence[int] = ...,
    eps: float = ...,
    output_stat: Literal[False] = False,
) -> A: ...
@overload
def layer_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    batch_axis: int | Sequence[int] = ...,
    eps: float = ...,
    output_stat: bool = False,
) -> Any: ...
def layer_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
) -> Any:
    """Layer normalization (Ba et al., 2016), `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        x: N-D array.
        beta: Shift, of x's size but 1 at the batch axes, or None.
        gamma: Scale, of beta's shape, or None.
        batch_axis: Axes that number the samples; mean and variance are taken over all others.
        eps: Added to the variance.
        output_stat: Return mean and biased variance, too.

    Returns:
        y of x's shape; with output_stat the tuple (y, mean, variance).

    Raises:
        ValueError: For shapes or axes that do not fit.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2, 3], [10, 20, 30]])
    >>> print(F.layer_normalization(x, None, None).data.round(3))
    [[-1.225  0.     1.225]
     [-1.225  0.     1.225]]
    """
    args = (batch_axis, eps, gamma is None, beta is None, output_stat)
    return _call(_LAYER, (x, beta, gamma), args)


def group_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    num_groups: int,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
) -> Any:
    """Group normalization (Wu and He, 2018), `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        x: N-D array.
        beta: Shift, of x's size at the channel axis and size 1 elsewhere, or None.
        gamma: Scale, of beta's shape, or None.
        num_groups: Number of groups of neighbouring channels, a divisor of the number of channels.
        channel_axis: Axis of the channels; may count from the end.
        batch_axis: Axes that number the samples; each group of a sample has a mean and a variance of its own.
        eps: Added to the variance.
        output_stat: Return mean and biased variance, too.

    Returns:
        y of x's shape; with output_stat the tuple (y, mean, variance), where the statistics have x's shape with the
        channel axis cut into (num_groups, 1) and size 1 at all axes that are not batch axes.

    Raises:
        ValueError: For shapes or axes that do not fit, or groups that do not divide the channels.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 3, 10, 30]])
    >>> print(F.group_normalization(x, None, None, num_groups=2).data.round(3))
    [[-1.  1. -1.  1.]]
    """
    args = (num_groups, channel_axis, batch_axis, eps, gamma is None, beta is None, output_stat)
    return _call(_GROUP, (x, beta, gamma), args)


def instance_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-05,
    output_stat: bool = False,
) -> Any:
    """Instance normalization (Ulyanov et al., 2016), `y = (x - mean) / sqrt(variance + eps) * gamma + beta`.

    Args:
        x: N-D array.
        beta: Shift, of x's size at the channel axis, at the batch axes x's size or 1, and size 1 elsewhere; or None.
        gamma: Scale, of beta's shape, or None.
        channel_axis: Axis of the channels; may count from the end.
        batch_axis: Axes that number the samples; each channel of a sample has a mean and a variance of its own.
        eps: Added to the variance.
        output_stat: Return mean and biased variance, too.

    Returns:
        y of x's shape; with output_stat the tuple (y, mean, variance), where the statistics have x's size at batch and
        channel axes and size 1 elsewhere.

    Raises:
        ValueError: For shapes or axes that do not fit.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[[1, 3], [10, 30]]])
    >>> print(F.instance_normalization(x, None, None).data.round(3))
    [[[-1.  1.]
      [-1.  1.]]]
    """
    args = (channel_axis, batch_axis, eps, gamma is None, beta is None, output_stat)
    return _call(_INSTANCE, (x, beta, gamma), args)


def tensor_normalization(
    x: A,
    axes: int | Sequence[int],
    beta: A | None = None,
    gamma: A | None = None,
    eps: float = 1e-05,
    output_stat: bool = False,
) -> Any:
    """Normalization with a mean and a variance for each index of `axes`.

    Args:
        x: N-D array.
        axes: Axes with statistics of their own; the others are averaged over.
        beta: Shift, of x's size at `axes` and size 1 elsewhere, or None.
        gamma: Scale, of beta's shape, or None.
        eps: Added to the variance.
        output_stat: Return mean and biased variance, too.

    Returns:
        y of x's shape; with output_stat the tuple (y, mean, variance).

    Raises:
        ValueError: For shapes or axes that do not fit.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 3], [10, 30]])
    >>> print(F.tensor_normalization(x, axes=1).data.round(3))
    [[-1. -1.]
     [ 1.  1.]]
    """
    return _call(_TENSOR, (x, beta, gamma), (axes, eps, gamma is None, beta is None, output_stat))


def weight_standardization(w: A, channel_axis: int = 0, eps: float = 1e-05, output_stat: bool = False) -> Any:
    """Weight standardization (Qiao et al., 2019), `y = (w - mean) / sqrt(variance + eps)`.

    Args:
        w: Weight, an N-D array.
        channel_axis: Axis of the output channels, each of which has a mean and a variance; may count from the end.
        eps: Added to the variance.
        output_stat: Return mean and biased variance, too.

    Returns:
        y of w's shape; with output_stat the tuple (y, mean, variance).

    Raises:
        ValueError: For an axis that does not fit.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> w = A([[1, 3], [10, 30]])
    >>> print(F.weight_standardization(w).data.round(3))
    [[-1.  1.]
     [-1.  1.]]
    """
    return _call(_WEIGHT, (w,), (channel_axis, eps, output_stat))


def norm_normalization(
    x: A,
    p: float | None = None,
    axes: int | Sequence[int] | None = None,
    eps: float = 1e-12,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> A:
    """As `nnrs.functions.norm_normalization`, with NNabla's arguments for outputs.

    Args:
        x: N-D array.
        p: Order of the norm.
        axes: Axes that a norm is over.
        eps: Added before the root.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.
    """
    return cast(A, _core.call(_NORM, (x,), (p, axes, eps), n_outputs, outputs))


def spectral_norm(
    w: A,
    u: A,
    dim: int = 0,
    itr: int = 1,
    eps: float = 1e-12,
    test: bool = False,
    output_u: bool = False,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """As `nnrs.functions.spectral_norm`, with NNabla's arguments for outputs.

    Args:
        w: Weight.
        u: What the iteration begins with.
        dim: Axis of the outputs.
        itr: Steps of the iteration.
        eps: Added before the root.
        test: Leave u as it is.
        output_u: Return the u that the iteration has begun with, too.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.
    """
    return _core.call(_SPECTRAL, (w, u), (dim, itr, eps, test, output_u), n_outputs, outputs)


class BatchNormalizationInOutAdapter:
    """Arrays with some axes joined to one, the last, and back: so that one axis has the statistics of several.

    Args:
        ndim: Number of axes.
        axes: Those that are joined, two or more of them or none.

    >>> from nnrs import Variable
    >>> joined = BatchNormalizationInOutAdapter(3, [0, 2])
    >>> y = joined(Variable((2, 3, 4)))
    >>> y.shape, joined.inv(y).shape
    ((3, 8), (2, 3, 4))
    """

    def __init__(self, ndim: int, axes: Sequence[int]) -> None:
        if len(axes) == 1:
            raise ArgumentError(message("BatchNormalizationInOutAdapter", "axes", "several axes, or none", axes))
        self.ndim = ndim
        self.axes = axes
        self.outer_axes = [axis for axis in range(ndim) if axis not in axes]
        self.transpose_axes = self.outer_axes + sorted(axes)
        self.inv_transpose_axes = [self.transpose_axes.index(axis) for axis in range(ndim)]
        self.transposed_shape: tuple[int, ...] | None = None

    def __call__(self, x: A) -> A:
        """x with its axes joined; every x has the shape of the first one."""
        from . import functions as F

        moved: Any = F.transpose(x, self.transpose_axes)
        if self.transposed_shape not in (None, moved.shape):
            expected = f"the shape of the first array, {self.transposed_shape} when transposed"
            raise ShapeError(message("BatchNormalizationInOutAdapter", "x", expected, moved.shape))
        self.transposed_shape = moved.shape
        n: int = len(self.outer_axes)
        return F.reshape(moved, (*moved.shape[:n], math.prod(moved.shape[n:])))

    def inv(self, y: A) -> A:
        """y, as a call has made it, with its axes as they were."""
        from . import functions as F

        if self.transposed_shape is None:
            raise ArgumentError(message("BatchNormalizationInOutAdapter.inv", "y", "a call before", "none"))
        return F.transpose(F.reshape(y, self.transposed_shape), self.inv_transpose_axes)


check_functions(globals(), are_whole=True)


def __getattr__(name: str) -> Any:
    """NNabla's module has all registered functions, too."""
    from . import function_bases

    if name in function_bases.__all__:
        return getattr(function_bases, name)
    raise missing_name(__name__, name)
