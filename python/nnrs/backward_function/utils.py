"""Small helpers that rules of gradients share, under NNabla's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import functions as F
from .._core import Variable


def no_grad(x: Variable) -> Variable:
    """x itself, through which no gradient flows any more."""
    x.need_grad = False
    return x


def positive_axis(axis: int, D: int) -> int:
    """The axis of D axes, counted from the start.

    >>> positive_axis(-1, 4)
    3
    """
    return axis + D * (axis < 0)


def force_list(x: Any) -> list[Any]:
    """A list of what is in x, or of x.

    >>> force_list((1, 2)), force_list(3)
    ([1, 2], [3])
    """
    return list(x) if isinstance(x, (list, tuple)) else [x]


def force_tuple(x: Any) -> tuple[Any, ...]:
    """A tuple of what is in x, or of x.

    >>> force_tuple([1, 2]), force_tuple(3)
    ((1, 2), (3,))
    """
    return tuple(force_list(x))


def sum_for_arithmetics_with_shape(dx: Variable, x_shape: Sequence[int]) -> Variable:
    """The sum of dx over the axes along which an array of shape `x_shape`, of as many axes, has been repeated.

    >>> import nnrs
    >>> sum_for_arithmetics_with_shape(nnrs.Variable((2, 3)), (1, 3)).shape
    (1, 3)
    """
    axes = [a for a, (n, m) in enumerate(zip(x_shape, dx.shape, strict=False)) if n == 1 != m]
    return F.sum(dx, axes, keepdims=True) if axes else dx  # type: ignore[no-any-return]


def sum_for_arithmetics(dx: Variable, x: Variable) -> Variable:
    """The sum of dx over the axes along which x has been repeated."""
    return sum_for_arithmetics_with_shape(dx, x.shape)


def create_slice(shape: Sequence[int], axis: int, front: bool = True) -> tuple[list[int], list[int], list[int]]:
    """Starts, stops and steps of the first or the second half of an axis.

    >>> create_slice((2, 4), 1, front=False)
    ([0, 2], [2, 4], [1, 1])
    """
    axis = positive_axis(axis, len(shape))
    start, stop, half = [0] * len(shape), list(shape), shape[axis] // 2
    if front:
        stop[axis] = half
    else:
        start[axis] = half
    return start, stop, [1] * len(shape)
