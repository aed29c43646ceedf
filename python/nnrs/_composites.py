"""Functions of the library that are written in Python, in terms of the registered ones."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np

from ._attention import multi_head_attention, scaled_dot_product_attention
from ._core import NdArray, Variable
from ._counted import _computed, nonzero, onnx_non_max_suppression, pack_padded_sequence, pad_packed_sequence, unique
from ._deformable_convolution import deformable_convolution
from ._errors import ArgumentError, ArgumentTypeError, ShapeError, check_type, describe, message
from ._fused_convolution import fused_convolution
from ._norms import norm_normalization, spectral_norm
from ._quantization import fixed_point_quantize, min_max_quantize, pow2_quantize
from ._recurrent import gru, lstm, rnn
from ._scatter import scatter_nd
from ._signal import interpolate, istft, patch_correlation, stft
from .normalization_functions import (
    batch_normalization,
    fused_batch_normalization,
    group_normalization,
    instance_normalization,
    layer_normalization,
    sync_batch_normalization,
    tensor_normalization,
    weight_standardization,
)
from .numpy_compat_functions import dot
from .recompute import forget

__all__ = [
    "batch_normalization",
    "bool_gather",
    "clip_by_norm",
    "clip_by_value",
    "deformable_convolution",
    "dot",
    "fixed_point_quantize",
    "forget",
    "fused_batch_normalization",
    "fused_convolution",
    "group_normalization",
    "gru",
    "instance_normalization",
    "interpolate",
    "istft",
    "layer_normalization",
    "lstm",
    "multi_head_attention",
    "scaled_dot_product_attention",
    "min_max_quantize",
    "nonzero",
    "onnx_non_max_suppression",
    "norm_normalization",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "patch_correlation",
    "pow2_quantize",
    "quantize_linear",
    "reduce",
    "rnn",
    "scatter_nd",
    "sink",
    "spectral_norm",
    "split",
    "stft",
    "sync_batch_normalization",
    "tensor_normalization",
    "unique",
    "weight_standardization",
]

A = TypeVar("A", Variable, NdArray)


def clip_by_value(x: A, min: A | float, max: A | float) -> A:
    """Clip to a range, `minimum(maximum(x, min), max)`.

    Args:
        x: N-D array.
        min: Lower bound: number, Variable or NdArray of a shape that broadcasts with x.
        max: Upper bound, likewise.

    Raises:
        TypeError: For bounds of another type.
        ValueError: For bounds of a shape that does not broadcast with x.

    >>> import nnrs as nn, nnrs.functions as F
    >>> F.clip_by_value(nn.NdArray.from_numpy_array([-3, 0.5, 9]), -1, 2).data.tolist()
    [-1.0, 0.5, 2.0]
    """
    from . import functions as F

    check_type("clip_by_value", "x", x, (Variable, NdArray), "a Variable or NdArray")
    _check_bound(x, min, "min")
    _check_bound(x, max, "max")
    lower: Any = F.maximum2(x, min) if isinstance(min, (Variable, NdArray)) else F.maximum_scalar(x, min)
    return cast(A, F.minimum2(lower, max) if isinstance(max, (Variable, NdArray)) else F.minimum_scalar(lower, max))


def clip_by_norm(x: A, clip_norm: A | float, axis: int | Sequence[int] | None = None) -> A:
    """Clip the L2 norm, `x clip_norm / maximum(|x|, clip_norm)`.

    Args:
        x: N-D array.
        clip_norm: Largest norm, above 0: number, Variable or NdArray of a shape that broadcasts with the norms.
        axis: Axes that a norm goes over; None: all.

    Raises:
        TypeError: For a norm of another type.
        ValueError: For a number that is not above 0, axes that x does not have.

    >>> import nnrs as nn, nnrs.functions as F
    >>> F.clip_by_norm(nn.NdArray.from_numpy_array([3, 4]), 2.5).data.tolist()
    [1.5, 2.0]
    """
    from . import functions as F

    check_type("clip_by_norm", "x", x, (Variable, NdArray), "a Variable or NdArray")
    norm: Any = F.norm(x, axis=axis, keepdims=True)
    if isinstance(clip_norm, (Variable, NdArray)):
        return cast(A, x * clip_norm / F.maximum2(norm, clip_norm))
    check_type("clip_by_norm", "clip_norm", clip_norm, (int, float, np.number), "a Variable, NdArray or number")
    if not clip_norm > 0:
        raise ArgumentError(message("clip_by_norm", "clip_norm", "a number above 0", clip_norm))
    return cast(A, x * clip_norm / F.maximum_scalar(norm, clip_norm))


def reduce(x: A, op: str = "sum") -> A:
    """The sum or the mean of all elements. Deprecated in NNabla: see `sum` and `mean`.

    Args:
        x: N-D array.
        op: 'sum' or 'mean'.

    Raises:
        TypeError, ValueError: For another `op`.

    >>> import nnrs as nn, nnrs.functions as F, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     print(F.reduce(nn.NdArray.from_numpy_array([[1, 2], [3, 4]]), "mean").data)
    2.5
    """
    from . import functions as F

    check_type("reduce", "op", op, str, "'sum' or 'mean'")
    if op not in ("sum", "mean"):
        raise ArgumentError(message("reduce", "op", "'sum' or 'mean'", op))
    warnings.warn("F.reduce is deprecated in NNabla; use F.sum or F.mean", DeprecationWarning, stacklevel=3)
    return cast(A, (F.reduce_sum if op == "sum" else F.reduce_mean)(x))


def _check_bound(x: Any, bound: Any, name: str) -> None:
    if not isinstance(bound, (Variable, NdArray)):
        check_type("clip_by_value", name, bound, (int, float, np.number, np.bool_), "a Variable, NdArray or number")
        if isinstance(bound, np.complexfloating):
            raise ArgumentTypeError(message("clip_by_value", name, "a real number", describe(bound)))
        return
    try:
        np.broadcast_shapes(x.shape, bound.shape)
    except ValueError:
        expected = f"a shape that broadcasts with x {x.shape}"
        raise ShapeError(message("clip_by_value", name, expected, bound.shape)) from None


def bool_gather(input: Any, mask: Any, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """The rows of `input` where the mask is not zero, in their order.

    How many there are is read from the mask's data when this is called, so that in a static graph the mask must be
    there by then; one with another number of places later is an error.

    Args:
        input: N-D array of a shape that begins with the mask's.
        mask: N-D array.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        output: Array of shape (rows,) where the mask has all axes of input, else (rows, size of one row).

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, mask = A([[1, 2], [3, 4]]), A([[1, 0], [0, 1]])
    >>> print(F.bool_gather(x, mask).data)
    [1. 4.]
    """
    from . import functions as F

    rows = int(np.count_nonzero(_computed(mask)))
    return F._bool_gather(input, mask, rows, n_outputs, outputs)


def sink(*x: Any, one_input_grad: bool = True, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """A number, 0, that depends on all inputs: `forward` and `backward` of it run the graphs behind all of them.

    Args:
        *x: Variables, one at least.
        one_input_grad: Whether the gradient of each input is 1; else it is what the input's `.g` holds.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: 0, of shape ().

    Raises:
        ValueError: Without inputs.

    >>> import nnrs as nn, nnrs.functions as F
    >>> a, b = F.exp(nn.Variable((2,))), F.sin(nn.Variable((3,)))
    >>> F.sink(a, b).forward()
    >>> print(a.d)
    [1. 1.]
    """
    from . import functions as F

    if not x:
        raise ArgumentError(message("sink", "x", "one input at least", "none"))
    return F._sink(*x, one_input_grad=one_input_grad, n_outputs=n_outputs, outputs=outputs)


def split(x: Any, axis: int = 0, n_outputs: int = -1, outputs: list[NdArray] | None = None) -> Any:
    """Cut an array along an axis into as many pieces as the axis is long; the pieces do not have that axis.

    Args:
        x: N-D array.
        axis: Axis to cut along; may count from the end.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: A tuple of the pieces, also where it is one.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[1, 2], [3, 4]])
    >>> a, b = F.split(x, axis=1)
    >>> print(a.data)
    [1. 3.]
    >>> print(b.data)
    [2. 4.]
    """
    from . import functions as F

    pieces = F._split(x, axis, n_outputs, outputs)
    return pieces if isinstance(pieces, tuple) else (pieces,)


def quantize_linear(
    x: Any,
    scale: Any,
    zero_point: Any,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    dtype: Any = np.int8,
    n_outputs: int = -1,
    outputs: list[NdArray] | None = None,
) -> Any:
    """Quantize linearly, `y = saturate(round(x / scale) + round(saturate(zero_point)))`.

    The result is whole numbers of the range of `dtype`, held in the context's floating-point type. The gradient
    of x passes through the rounding and the limits; scale and zero_point have none.

    Args:
        x: N-D array.
        scale: Array that broadcasts to x's shape: one scale for all, or one a channel.
        zero_point: Array that broadcasts to x's shape: what 0 becomes.
        round_mode: 'HALF_AWAY_FROM_ZERO' or 'HALF_TO_EVEN'.
        narrow_range: Leave out the least number of the range.
        dtype: The type whose range is used: numpy.int8 or numpy.uint8.
        n_outputs: Not used; NNabla's.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For another type or mode, or a shape that does not broadcast to x's.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x, scale, zero = A([-1, 0.26, 99]), A([0.5]), A([10])
    >>> print(F.quantize_linear(x, scale, zero, dtype="uint8").data)
    [  8.  11. 208.]
    """
    from . import functions as F

    try:
        number = np.dtype(dtype).num
    except (TypeError, ValueError):
        number = -1
    if number not in (1, 2):
        raise ArgumentError(message("quantize_linear", "dtype", "numpy.int8 or numpy.uint8", describe(dtype)))
    return F._quantize_linear(x, scale, zero_point, round_mode, narrow_range, number, n_outputs, outputs)
