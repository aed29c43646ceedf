"""The function library. Generated from the registry by tools/generate.py: do not edit."""

# ruff: noqa: E501, F405

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _composites, _core
from ._composites import *  # noqa: F403
from ._core import NdArray, Variable

_call = _core.call
_index = _core.function_index

Array = Variable | NdArray


_AFFINE = _index('affine')


def affine(x: Array, weight: Array, bias: Array | None = None, base_axis: int = 1, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Fully connected layer, `y = x A + b`: the axes of `x` from `base_axis` on are taken as one vector.

    Args:
        x: Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.
        weight: Weight of shape (D_B * .. * D_N, L_0, .., L_I).
        bias: Bias of shape (L_0, .., L_I).
        base_axis: First axis that belongs to the vector; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Output of shape (M_0, .., M_{B-1}, L_0, .., L_I).
    """
    return _call(_AFFINE, (x, weight, bias), (base_axis,), n_outputs, outputs)


_BATCH_MATMUL = _index('batch_matmul')


def batch_matmul(a: Array, b: Array, transpose_a: bool = False, transpose_b: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Matrix product over the last two axes; leading axes broadcast.

    Args:
        a: N-D array, N >= 2: matrices (.., M, K), or (.., K, M) if transposed.
        b: N-D array, N >= 2: matrices (.., K, N), or (.., N, K) if transposed.
        transpose_a: Transpose the matrices of a.
        transpose_b: Transpose the matrices of b.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: Products (.., M, N).
    """
    return _call(_BATCH_MATMUL, (a, b), (transpose_a, transpose_b), n_outputs, outputs)


_LEAKY_RELU = _index('leaky_relu')


def leaky_relu(x: Array, alpha: float = 0.1, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Leaky rectified linear unit, `y = max(x, 0) + alpha min(x, 0)` (Maas et al., 2013).

    Args:
        x: N-D array.
        alpha: Slope for negative values.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_LEAKY_RELU, (x,), (alpha, inplace), n_outputs, outputs)


_SUM = _index('sum')


def sum(x: Array, axis: Sequence[int] | None = None, keepdims: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Sum over axes.

    Args:
        x: N-D array.
        axis: Axes to sum over; None: all. They may count from the end.
        keepdims: Whether the summed axes stay, with size 1.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: x without the summed axes.
    """
    return _call(_SUM, (x,), (axis, keepdims), n_outputs, outputs)


_ADD2 = _index('add2')


def add2(x0: Array, x1: Array, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Sum of two arrays, `y = x0 + x1`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.
    """
    return _call(_ADD2, (x0, x1), (inplace,), n_outputs, outputs)


_SUB2 = _index('sub2')


def sub2(x0: Array, x1: Array, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Difference of two arrays, `y = x0 - x1`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.
    """
    return _call(_SUB2, (x0, x1), (inplace,), n_outputs, outputs)


_MUL2 = _index('mul2')


def mul2(x0: Array, x1: Array, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Product of two arrays, element by element, `y = x0 * x1`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.
    """
    return _call(_MUL2, (x0, x1), (inplace,), n_outputs, outputs)


_DIV2 = _index('div2')


def div2(x0: Array, x1: Array, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Quotient of two arrays, `y = x0 / x1`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.
    """
    return _call(_DIV2, (x0, x1), (inplace,), n_outputs, outputs)


_POW2 = _index('pow2')


def pow2(x0: Array, x1: Array, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Power of two arrays, `y = x0 ** x1`, as C's `pow`.
     Shapes broadcast as in NumPy; where NNabla wants equal numbers of axes, missing leading axes count as 1.

    Args:
        x0: N-D array.
        x1: N-D array.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the broadcast shape.
    """
    return _call(_POW2, (x0, x1), (inplace,), n_outputs, outputs)


_ADD_SCALAR = _index('add_scalar')


def add_scalar(x: Array, val: float = 1.0, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Adds a number, `y = x + val`.

    Args:
        x: N-D array.
        val: The number.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_ADD_SCALAR, (x,), (val, inplace), n_outputs, outputs)


_MUL_SCALAR = _index('mul_scalar')


def mul_scalar(x: Array, val: float = 1.0, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Multiplies by a number, `y = x * val`.

    Args:
        x: N-D array.
        val: The number.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_MUL_SCALAR, (x,), (val, inplace), n_outputs, outputs)


_POW_SCALAR = _index('pow_scalar')


def pow_scalar(x: Array, val: float = 1.0, inplace: bool = False, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Raises to a power, `y = x ** val`.

    Args:
        x: N-D array.
        val: The number.
        inplace: Ignored: nnrs reuses the buffer whenever nobody can tell.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_POW_SCALAR, (x,), (val, inplace), n_outputs, outputs)


_R_SUB_SCALAR = _index('r_sub_scalar')


def r_sub_scalar(x: Array, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Subtracts from a number, `y = val - x`.

    Args:
        x: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_R_SUB_SCALAR, (x,), (val,), n_outputs, outputs)


_R_DIV_SCALAR = _index('r_div_scalar')


def r_div_scalar(x: Array, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Divides a number, `y = val / x`.

    Args:
        x: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_R_DIV_SCALAR, (x,), (val,), n_outputs, outputs)


_R_POW_SCALAR = _index('r_pow_scalar')


def r_pow_scalar(x: Array, val: float = 1.0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Raises a number to powers, `y = val ** x`.

    Args:
        x: N-D array.
        val: The number.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.
    """
    return _call(_R_POW_SCALAR, (x,), (val,), n_outputs, outputs)


_BROADCAST = _index('broadcast')


def broadcast(x: Array, shape: Sequence[int], n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Repeats an array along axes of size 1 to a larger shape, as NumPy's `broadcast_to`.

    Args:
        x: N-D array.
        shape: Shape of the result; x's axes are matched from the last.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of the given shape.
    """
    return _call(_BROADCAST, (x,), (shape,), n_outputs, outputs)


_RESHAPE = _index('reshape')


def reshape(x: Array, shape: Sequence[int], inplace: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Another shape for the same elements. One negative size is inferred.

    Args:
        x: N-D array.
        shape: Sizes of the result; one of them may be -1.
        inplace: Whether the result is x's memory; if not, a copy.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: The elements of x in the new shape.
    """
    return _call(_RESHAPE, (x,), (shape, inplace), n_outputs, outputs)


def __getattr__(name: str) -> Any:
    from ._errors import missing_name

    raise missing_name("nnrs.functions", name, _composites.LATER)
