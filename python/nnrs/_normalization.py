"""`batch_normalization` and `layer_normalization` as NNabla has them: scale, shift and statistics may be None."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal, TypeVar, overload

import numpy as np

from . import _core
from ._core import NdArray, Variable
from ._errors import ArgumentError, message

A = TypeVar("A", Variable, NdArray)
_BATCH = _core.function_index("batch_normalization")
_LAYER = _core.function_index("layer_normalization")


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
    """
    if (mean is None or variance is None) and not batch_stat:
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
    """
    args = (batch_axis, eps, gamma is None, beta is None, output_stat)
    return _call(_LAYER, (x, beta, gamma), args)
