"""`norm_normalization` and `spectral_norm` as `nnrs.functions` has them: without the arguments for outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from . import normalization_functions as N
from ._core import NdArray, Variable

__all__ = ["norm_normalization", "spectral_norm"]

A = TypeVar("A", Variable, NdArray)


def norm_normalization(x: A, p: float | None = None, axes: int | Sequence[int] | None = None, eps: float = 1e-12) -> A:
    """An array over its p-norms, `y = x / (sum |x|^p + eps)^(1/p)`; for `p = inf` it is `x / (max |x| + eps)`.

    Args:
        x: N-D array.
        p: Order of the norm, 1 or more; None: 2.
        axes: Axes that a norm is over; None: all. They may count from the end.
        eps: Added before the root.

    Returns:
        y of x's shape.

    Raises:
        ValueError: For a p below 1, or axes that do not fit.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[3, 4], [0, 5]])
    >>> print(F.norm_normalization(x, axes=1).data)
    [[0.6 0.8]
     [0.  1. ]]
    """
    return N.norm_normalization(x, p, axes, eps)


def spectral_norm(
    w: A, u: A, dim: int = 0, itr: int = 1, eps: float = 1e-12, test: bool = False, output_u: bool = False
) -> Any:
    """Spectral normalization (Miyato et al., 2018): a weight over its largest singular value.

    That is `s = u' W v`. W is w with the axis `dim` first and all others as one, and u and v come from `itr` steps
    `v = unit(W' u)`, `u = unit(W v)` with `unit(a) = a / sqrt(|a|^2 + eps)`. Gradients take u and v as constants.

    Args:
        w: Weight, an N-D array.
        u: What the iteration begins with, of shape (w.shape[dim],). Unless `test`, forward writes the last u to it.
        dim: Axis of the outputs, counted from 0.
        itr: Steps of the iteration, 1 to 10000.
        eps: Added before the root.
        test: Leave u as it is.
        output_u: Return the u that the iteration has begun with, too.

    Returns:
        w / s; with output_u the tuple (w / s, u).

    Raises:
        ValueError: For arguments that do not fit.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> w, u = A([[3, 0], [0, 1]]), A([1, 0.1])
    >>> print(F.spectral_norm(w, u, itr=10).data.round(3))
    [[1.    0.   ]
     [0.    0.333]]
    """
    return N.spectral_norm(w, u, dim, itr, eps, test, output_u)
