"""Functions of signals that are written in Python before the registered ones: other arguments, or one left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

from ._core import NdArray, Variable
from ._errors import ArgumentError, ShapeError, check_type, message


def interpolate(
    x: Any,
    scale: Sequence[float] | None = None,
    output_size: Sequence[int] | None = None,
    mode: str = "linear",
    align_corners: bool = False,
    half_pixel: bool = False,
    half_pixel_for_nn: bool = False,
    channel_last: bool = False,
) -> Any:
    """Resample the last axes to other sizes, by linear interpolation or with the nearest element.

    Element j of an axis of n that becomes m is at the place `j n / m`; with align_corners at `j (n - 1) / (m - 1)`,
    with half_pixel at `(j + 1/2) n / m - 1/2`. The nearest element is the one before that place.

    Args:
        x: N-D array; its last axes (before the channels, if channel_last) are resampled.
        scale: Factors of their sizes, which are rounded down; these or output_size are given.
        output_size: New sizes.
        mode: 'linear' or 'nearest'.
        align_corners: Whether the first and the last elements stay what they are.
        half_pixel: Whether places are those of the middles of elements.
        half_pixel_for_nn: For 'nearest': the place is `(j + 1/2) n / m`, whatever else is said.
        channel_last: Whether the channels are the last axis.

    Returns:
        y: N-D array of the new sizes.

    Raises:
        ValueError: Without scale and output_size; for sizes below 1; for more sizes than x has axes.

    Example:
        >>> import nnrs
        >>> nnrs.functions.interpolate(nnrs.Variable((8, 3, 5, 5)), scale=(2, 1.5)).shape
        (8, 3, 10, 7)
    """
    from . import functions as F

    check_type("interpolate", "x", x, (Variable, NdArray), "a Variable or NdArray")
    if output_size is None:
        if scale is None:
            raise ArgumentError(message("interpolate", "scale", "numbers in scale or in output_size", "neither"))
        output_size = _scaled(x.shape, scale, channel_last)
    return F._interpolate(x, output_size, mode, align_corners, half_pixel, half_pixel_for_nn, channel_last)


def _scaled(shape: Sequence[int], scale: Any, channel_last: bool) -> list[int]:
    factors = [scale] if isinstance(scale, Real) else list(scale)
    sizes = shape[: len(shape) - bool(channel_last)]
    if len(factors) > len(sizes):
        expected = f"{len(factors) + bool(channel_last)} axes at least for scale {tuple(factors)}"
        raise ShapeError(message("interpolate", "x", expected, tuple(shape)))
    last = sizes[len(sizes) - len(factors) :]
    if not all(isinstance(f, Real) and math.isfinite(float(f) * n) for f, n in zip(factors, last, strict=True)):
        raise ArgumentError(message("interpolate", "scale", "numbers", scale))
    scaled = [math.floor(float(f) * n) for f, n in zip(factors, last, strict=True)]
    if not all(1 <= n <= 2**31 for n in scaled):
        expected = f"factors that make sizes from 1 to {2**31} of {tuple(last)}"
        raise ArgumentError(message("interpolate", "scale", expected, f"{scale}, which make {tuple(scaled)}"))
    return scaled


def stft(
    x: Any,
    window_size: int,
    stride: int,
    fft_size: int,
    window_type: str | None = "hanning",
    center: bool = True,
    pad_mode: str = "reflect",
    as_istft_backward: bool = False,
) -> Any:
    """Short-time Fourier transform: the spectra of frames of fft_size samples, stride apart, each times a window.

    Args:
        x: Signals of shape (.., samples).
        window_size: Samples of the window, fft_size at most; it is in the middle of the frame, with zeros around.
        stride: Samples from the beginning of a frame to that of the next.
        fft_size: Samples of a frame.
        window_type: 'hanning', 'hamming' or 'rectangular' (None is this one too).
        center: Whether fft_size // 2 samples are put before and after the signal, so that frames are around them.
        pad_mode: What these are: 'reflect', the signal mirrored, or 'constant', zeros.
        as_istft_backward: Computes the gradient of `istft` instead, with x the gradient of its result.

    Returns:
        Real and imaginary parts, of shape (.., fft_size // 2 + 1, frames).

    Example:
        >>> import nnrs
        >>> [y.shape for y in nnrs.functions.stft(nnrs.Variable((4, 16000)), 400, 100, 512)]
        [(4, 257, 161), (4, 257, 161)]
    """
    from . import functions as F

    kind = "rectangular" if window_type is None else window_type
    return F._stft(x, window_size, stride, fft_size, kind, center, pad_mode, as_istft_backward)


def istft(
    y_r: Any,
    y_i: Any,
    window_size: int,
    stride: int,
    fft_size: int,
    window_type: str | None = "hanning",
    center: bool = True,
    pad_mode: str = "reflect",
    as_stft_backward: bool = False,
) -> Any:
    """Inverse short-time Fourier transform.

    Frames are made of their spectra, times the window, added up, and divided by the sum of the squares of the windows.

    Args:
        y_r: Real parts of spectra, of shape (.., fft_size // 2 + 1, frames).
        y_i: Imaginary parts.
        window_size: As of `stft`.
        stride: As of `stft`.
        fft_size: As of `stft`.
        window_type: As of `stft`.
        center: Whether fft_size // 2 samples are cut off both ends.
        pad_mode: Used with as_stft_backward only: as of `stft`.
        as_stft_backward: Computes the gradient of `stft` instead, with y_r and y_i the gradients of its results.

    Returns:
        x: Signals of shape (.., stride (frames - 1) + fft_size), less what is cut off.

    Raises:
        ValueError: Where the windows' squares add up to 0 at a sample.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> x = A([np.arange(1, 17)])
    >>> re, im = F.stft(x, window_size=8, stride=4, fft_size=8)
    >>> print(F.istft(re, im, window_size=8, stride=4, fft_size=8).data.round(3))
    [[ 1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16.]]
    """
    from . import functions as F

    kind = "rectangular" if window_type is None else window_type
    return F._istft(y_r, y_i, window_size, stride, fft_size, kind, center, pad_mode, as_stft_backward)


def patch_correlation(
    x1: Any,
    x2: Any,
    patch: int | Sequence[int] = (1, 1),
    shift: int | Sequence[int] = (0, 0),
    patch_step: int | Sequence[int] = (1, 1),
    shift_step: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0, 0, 0),
    channel_last: bool = False,
) -> Any:
    """Compare patches of two images by the sums of their products, at each place and for each shift of the second one.

    `y[i, j, p, q] = sum over c, k, l of x1[c, p + k, q + l] x2[c, p + k + i, q + l + j]`, shifts i and j from -shift to
    shift (Fischer et al., FlowNet, 2015). A single number stands for all.

    Args:
        x1: Images of shape (N, C, H, W); (N, H, W, C) if channel_last.
        x2: Images of x1's shape.
        patch: Height and width of a patch.
        shift: The largest shifts, to both sides.
        patch_step: Distances of patches.
        shift_step: Distances of shifts.
        padding: Zeros above, below, before and after the images; or two numbers, above and below, before and after.
        channel_last: Whether the channels are the last axis.

    Returns:
        y: Sums of shape (N, vertical shifts, horizontal shifts, H', W'); with channel_last (N, H', W', vertical shifts,
            horizontal shifts).

    Raises:
        ValueError: For images of other shapes; for numbers that are too small.

    >>> import numpy as np
    >>> import nnrs as nn, nnrs.functions as F
    >>> A = nn.NdArray.from_numpy_array
    >>> a, b = A(np.ones((1, 2, 2, 3))), A(np.arange(12).reshape(1, 2, 2, 3))
    >>> y = F.patch_correlation(a, b)
    >>> y.shape
    (1, 1, 1, 2, 3)
    >>> print(y[0, 0, 0].data)
    [[ 6.  8. 10.]
     [12. 14. 16.]]
    """
    from . import functions as F

    for name, x in (("x1", x1), ("x2", x2)):
        check_type("patch_correlation", name, x, (Variable, NdArray), "a Variable or NdArray")
    if x1.shape != x2.shape:
        raise ShapeError(message("patch_correlation", "x2", f"shape {x1.shape}, as x1", x2.shape))
    if len(x1.shape) != 4:
        raise ShapeError(message("patch_correlation", "x1", "four axes", x1.shape))
    sizes: list[Any] = [(v, v) if isinstance(v, int) else v for v in (patch, shift, patch_step, shift_step)]
    around: Any = (padding,) * 4 if isinstance(padding, int) else padding
    if hasattr(around, "__len__") and len(around) == 2:
        around = (around[0], around[0], around[1], around[1])
    sizes.append(around)
    if channel_last:
        return F._patch_correlation(x1, x2, *sizes)
    last = [F.transpose(x, (0, 2, 3, 1)) for x in (x1, x2)]
    return F.transpose(F._patch_correlation(last[0], last[1], *sizes), (0, 3, 4, 1, 2))
