"""`einsum`: Einstein's summation convention, which the engine puts together of other functions."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import NdArray, Variable
from ._errors import check_type

__all__ = ["einsum"]


def einsum(*x: Any, equation: str = "", n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Einstein's summation convention: products of elements, summed over the axes that the result does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> F.einsum(nn.Variable((2, 3)), nn.Variable((3, 4)), equation="ij,jk->ik").shape
    (2, 4)

    Args:
        *x: N-D arrays.
        equation: For each array the labels of its axes, letters, with commas between; after `->` those of the
            result, which by default are those that occur once, in alphabetic order. `...` stands for any number
            of axes, the same for all arrays that have it, of one size or of size 1. A label that occurs twice
            in an array is its diagonal.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array.

    Raises:
        ValueError: For an equation that is none, or does not fit the arrays.
    """
    for v in x:
        check_type("einsum", "x", v, (Variable, NdArray), "Variables or NdArrays")
    check_type("einsum", "equation", equation, (str,), "a str")
    from . import functions

    y = _core.einsum(x, equation)
    return y if outputs is None else functions.identity(y, outputs=outputs)
