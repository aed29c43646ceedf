"""Functions that quantize: NNabla's have an argument that turns them off."""

from __future__ import annotations

from typing import Any

from ._core import NdArray
from ._errors import check_array, check_flag, check_one_output


def _is_on(function: str, x: Any, quantize: Any) -> bool:
    """Whether x is quantized, not given back."""
    check_array(function, "x", x)
    return check_flag(function, "quantize", quantize)


def fixed_point_quantize(
    x: Any,
    sign: bool = True,
    n: int = 8,
    delta: float = 0.0625,
    quantize: bool = True,
    ste_fine_grained: bool = True,
    outputs: list[NdArray] | None = None,
) -> Any:
    """The nearest number of a fixed-point format, `y = round(x / delta) delta` within its limits.

    The limits are `+-(2^(n-1) - 1) delta` with a sign, and 0 and `(2^n - 1) delta` without. Halves are rounded away
    from zero; NaN stays. The gradient passes straight through; with ste_fine_grained only where x is within the limits.

    Args:
        x: N-D array.
        sign: Whether there are negative numbers; the sign is one of the bits.
        n: Number of bits.
        delta: The step.
        quantize: If not, the result is x itself.
        ste_fine_grained: Whether x beyond the limits has gradient 0.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For too few bits, or a step that is not positive.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-9, 0.3, 0.4])
    >>> print(F.fixed_point_quantize(x, n=4, delta=0.25).data)
    [-1.75  0.25  0.5 ]
    """
    from . import functions as F

    if not _is_on("fixed_point_quantize", x, quantize):
        return x
    return F._fixed_point_quantize(x, sign, n, delta, ste_fine_grained, outputs=outputs)


def pow2_quantize(
    x: Any,
    sign: bool = True,
    with_zero: bool = True,
    n: int = 8,
    m: int = 1,
    quantize: bool = True,
    ste_fine_grained: bool = True,
    outputs: list[NdArray] | None = None,
) -> Any:
    """The nearest power of two in logarithms, `y = sign(x) 2^round(log2 |x|)`.

    The exponent is one of the `2^b` from `m - 2^b + 1` to m, where b is n less a bit for the sign and a bit for zero.
    With a zero, magnitudes below `2^-0.5` of the least power become 0. Without a sign, negative numbers become the
    least one. NaN stays. The gradient passes straight through; with ste_fine_grained not where `|x|` is rounded to a
    power above `2^m`, nor, without a sign, where x is negative.

    Args:
        x: N-D array.
        sign: Whether there are negative numbers; the sign is one of the bits.
        with_zero: Whether 0 is one of the numbers, which takes a bit.
        n: Number of bits.
        m: The largest number is `2^m`.
        quantize: If not, the result is x itself.
        ste_fine_grained: Whether x beyond the limits has gradient 0.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For too few bits, or an m that is not from -126 to 127.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([-3, 0.1, 0.3, 100])
    >>> print(F.pow2_quantize(x, n=4, m=2).data)
    [-4.  0.  0.  4.]
    """
    from . import functions as F

    if not _is_on("pow2_quantize", x, quantize):
        return x
    return F._pow2_quantize(x, sign, with_zero, n, m, ste_fine_grained, outputs=outputs)


def min_max_quantize(
    x: Any,
    qr_min: Any,
    qr_max: Any,
    ql_min: Any,
    ql_max: Any,
    decay: float = 0.999,
    x_min_max: bool = False,
    ema: bool = False,
    ste_fine_grained: bool = True,
    eps: float = 0.01,
    quantize: bool = True,
    outputs: list[NdArray] | None = None,
) -> Any:
    """Quantize a range linearly (Jacob et al., 2018), `y = round((clip(x) - low) / scale) scale + low`.

    `scale = (qr_max - qr_min) / (ql_max - ql_min)`, and [low, high], to which x is clipped, is the range from qr_min to
    qr_max moved so that 0 is a level. With x_min_max each forward pass sets qr_min and qr_max to the least and the
    largest x, with ema too to a moving average of them, `decay qr + (1 - decay) x`. Always qr_max becomes
    `qr_min + eps` where it is less. The gradient of x passes straight through; with ste_fine_grained only where x is in
    the range. That of qr_min is the sum where x is below the range, that of qr_max where it is above; with x_min_max
    or ema they have none.

    Args:
        x: N-D array.
        qr_min: Least number of the range, of a shape that broadcasts to x's. Forward may write it.
        qr_max: Largest number of the range, of qr_min's shape. Forward may write it.
        ql_min: The least level, of qr_min's shape; 0, say.
        ql_max: The largest level, of qr_min's shape; 255, say.
        decay: How much of the range each forward pass keeps, with x_min_max and ema.
        x_min_max: Take the range from x.
        ema: The range is a moving average.
        ste_fine_grained: Whether x beyond the range has gradient 0.
        eps: The least size of the range.
        quantize: If not, the result is x itself.
        outputs: Arrays for the outputs' data.

    Returns:
        y: N-D array of x's shape.

    Raises:
        ValueError: For shapes that do not fit.

    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([[-1, 0.3, 9]])
    >>> low, high, least, largest = A([[0.0]]), A([[3.0]]), A([[0]]), A([[15]])
    >>> print(F.min_max_quantize(x, low, high, least, largest).data)
    [[0.  0.4 3. ]]
    """
    from . import functions as F

    if not _is_on("min_max_quantize", x, quantize):
        return x
    for name, v in (("qr_min", qr_min), ("qr_max", qr_max), ("ql_min", ql_min), ("ql_max", ql_max)):
        check_array("min_max_quantize", name, v)
    outputs = check_one_output("min_max_quantize", outputs)
    args = (decay, x_min_max, ema, ste_fine_grained, eps)
    return F._min_max_quantize(x, qr_min, qr_max, ql_min, ql_max, *args, outputs=outputs)
