"""Functions that take and give what NumPy's of the same name do."""

from __future__ import annotations

import numbers
from typing import Any

from ._core import NdArray, Variable
from ._errors import ShapeError, check_type, message

__all__ = ["dot"]


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The dot product of two arrays, as `numpy.dot`.

    Of two vectors the sum of products, of two matrices the matrix product, of numbers and arrays of shape ()
    with others the product of elements; else the sum of products over the last axis of a and the last but one
    of b.

    Args:
        a: Variable, NdArray or number.
        b: Variable, NdArray or number.
        out: Variable or NdArray for the data of the result, of its shape.

    Returns:
        The result; with `out` its data is out's.

    Raises:
        TypeError: If something else is given.
        ValueError: If the sizes of the axes that are summed over differ, or out has another shape.

    >>> import nnrs as nn, nnrs.functions as F
    >>> F.dot(nn.Variable((2, 3)), nn.Variable((4, 3, 5))).shape
    (2, 4, 5)
    """
    for name, v in (("a", a), ("b", b)):
        check_type("dot", name, v, (Variable, NdArray, numbers.Real), "a Variable, NdArray or number")
    if out is not None:
        check_type("dot", "out", out, (Variable, NdArray), "a Variable or NdArray")
    y = _product(a, b)
    if out is None:
        return y
    if out.shape != y.shape:
        raise ShapeError(message("dot", "out", f"shape {y.shape}", out.shape))
    from . import functions as F

    return F.reshape(y, y.shape, inplace=False, outputs=[out.data if isinstance(out, Variable) else out])


def _product(a: Any, b: Any) -> Any:
    if isinstance(a, numbers.Real) or isinstance(b, numbers.Real):
        return a * b
    from . import functions as F

    if not a.shape or not b.shape:
        return F.mul2(a, b)
    axis = max(len(b.shape) - 2, 0)
    if a.shape[-1] != b.shape[axis]:
        expected = f"size {a.shape[-1]} at axis {axis}, that of a's last axis"
        raise ShapeError(message("dot", "b", expected, b.shape))
    letters = "abcdefghijklmnopqrstuvwxyz"
    left = letters[1 : len(a.shape)]
    right = letters[len(a.shape) : len(a.shape) + len(b.shape) - 1].upper()
    return F.einsum(a, b, equation=f"{left}a,{right[:axis]}a{right[axis:]}->{left}{right}")
