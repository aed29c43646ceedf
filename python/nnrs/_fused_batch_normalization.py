"""`fused_batch_normalization`: a batch normalization, a sum and an activation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ._calls import check_functions
from ._core import NdArray, Variable
from ._errors import ArgumentError, ShapeError, check_array, message

__all__ = ["fused_batch_normalization"]

A = TypeVar("A", Variable, NdArray)


def fused_batch_normalization(
    x: A,
    beta: A | None,
    gamma: A | None,
    mean: A | None,
    variance: A | None,
    z: A | None = None,
    axes: int | Sequence[int] = [1],  # noqa: B006 (NNabla's default)
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    output_stat: bool = False,
    n_outputs: int | None = None,
) -> Any:
    """Batch normalization (Ioffe and Szegedy, 2015), the sum with z, activation: `relu(batch_normalization(x) + z)`.

    The sum and the activation are fused into one pass, as they are wherever they stand in a graph.

    Args:
        x: N-D array.
        beta: Shift, of x's size at `axes` and size 1 elsewhere, or None.
        gamma: Scale, of beta's shape, or None.
        mean: Running mean, of beta's shape; with batch_stat it may be None.
        variance: Running variance, likewise.
        z: What is added, of x's shape, or None.
        axes: Axes with statistics of their own; the others are averaged over.
        decay_rate: How much of the running statistics each forward pass keeps.
        eps: Added to the variance.
        batch_stat: Normalize by the statistics of x and move the running ones; if not, by the running ones.
        nonlinearity: The activation: "relu".
        output_stat: Return mean and biased variance of the batch, too.
        n_outputs: Not used; NNabla's.

    Returns:
        y of x's shape; with output_stat the tuple (y, mean, variance).

    Raises:
        ValueError: For shapes or axes that do not fit, another activation, or without statistics to use.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, z = A([[1, 2], [3, 6]]), A([[0, 3], [0, 0]])
    >>> mean, variance = A([[0, 0]]), A([[1, 1]])
    >>> print(F.fused_batch_normalization(x, None, None, mean, variance, z).data.round(3))
    [[0. 2.]
     [1. 1.]]
    """
    from . import functions as F
    from .normalization_functions import batch_normalization

    for name, v in (("x", x), ("z", z)):
        if name == "x" or v is not None:
            check_array("fused_batch_normalization", name, v)
    if not isinstance(nonlinearity, str) or nonlinearity != "relu":
        raise ArgumentError(message("fused_batch_normalization", "nonlinearity", "'relu'", repr(nonlinearity)))
    if z is not None and z.shape != x.shape:
        raise ShapeError(message("fused_batch_normalization", "z", f"x's shape {x.shape}", z.shape))
    made = batch_normalization(x, beta, gamma, mean, variance, axes, decay_rate, eps, batch_stat, output_stat)
    y, *statistics = made if output_stat else (made,)
    y = F.relu(y if z is None else F.add2(y, z))
    return (y, *statistics) if output_stat else y


check_functions(globals(), are_whole=True)
