"""`interpolate`: the last axes resampled, linearly or with the element before a place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from function.case import Case, Error
from resampling import apply, matrix


def place(n: int, m: int, corners: bool, half: bool, half_nearest: bool) -> Callable[[int], Fraction]:
    if half_nearest:
        return lambda j: Fraction((2 * j + 1) * n, 2 * m)
    if corners:
        return lambda j: Fraction(j * (n - 1), m - 1) if m > 1 else Fraction(0)
    if half:
        return lambda j: Fraction((2 * j + 1) * n - m, 2 * m) if m > 1 else Fraction(0)
    return lambda j: Fraction(j * n, m)


def reference(
    x: np.ndarray,
    scale: Sequence[float] | None = None,
    output_size: Sequence[int] | None = None,
    mode: str = "linear",
    align_corners: bool = False,
    half_pixel: bool = False,
    half_pixel_for_nn: bool = False,
    channel_last: bool = False,
) -> np.ndarray:
    count = len(output_size if output_size is not None else scale or ())
    first = x.ndim - count - channel_last
    if output_size is None:
        output_size = [int(np.floor(s * n)) for s, n in zip(scale or (), x.shape[first:], strict=False)]
    for a, m in enumerate(output_size, first):
        at = place(x.shape[a], m, align_corners, half_pixel, mode == "nearest" and half_pixel_for_nn)
        way = "floor" if mode == "nearest" else mode
        x = apply(x, a, matrix(x.shape[a], m, lambda j, at=at: float(at(j)), way))
    return x


FLAGS = [{}, {"align_corners": True}, {"half_pixel": True}, {"half_pixel_for_nn": True}]
CASES = [
    *(
        Case(inputs=[(2, 3, 5)], args={"output_size": (8, 3), "mode": mode, **flags}, name=f"{mode} {[*flags]}")
        for mode in ("linear", "nearest")
        for flags in FLAGS
    ),
    Case(inputs=[(2, 3)], args={"scale": (2.5,)}, name="a scale"),
    Case(inputs=[(2, 3)], args={"scale": (np.float32(2.5),)}, name="a scale of NumPy", oracle=False, reason="the same"),
    Case(inputs=[(2, 3, 2)], args={"scale": (2, 1), "mode": "nearest"}, name="an axis that stays"),
    Case(inputs=[(1, 2, 2, 3)], args={"output_size": (3, 2, 4), "half_pixel": True}, name="three axes"),
    Case(inputs=[(1, 2, 2, 3)], args={"output_size": (3, 2, 4), "mode": "nearest"}, name="three axes, nearest"),
    Case(inputs=[(4,)], args={"output_size": (2,), "half_pixel": True}, name="all axes, smaller"),
    Case(
        inputs=[(2, 3, 4, 2)],
        args={"output_size": (5, 3), "channel_last": True, "align_corners": True},
        name="channels last",
        oracle=False,
        reason="NNabla has that on a GPU alone",
    ),
    Case(inputs=[(2, 3)], args={"output_size": (1,), "half_pixel": True}, name="to one element"),
    Case(inputs=[(2, 1)], args={"output_size": (3,), "align_corners": True}, name="of one element"),
    Case(inputs=[(2, 3)], args={"output_size": (3,)}, name="the same size", reshaped=[(1, 4)]),
    Case(
        inputs=[(2, 40, 50)],
        args={"output_size": (60, 130), "half_pixel": True},
        name="images",
        types=("float", "double"),
        differentiable=False,
    ),
    Case(
        inputs=[np.arange(8.0)[None]],
        args={"output_size": (100,), "mode": "nearest", "align_corners": True},
        name="places that are whole numbers",
        differentiable=False,
        oracle=False,
        reason="NNabla rounds them in float",
    ),
    Case(
        inputs=[[[np.nan, 1.0, np.inf]]],
        args={"output_size": (6,), "mode": "nearest"},
        name="no numbers",
        differentiable=False,
        check=lambda y, x: np.testing.assert_array_equal(y[0], [[np.nan, np.nan, 1, 1, np.inf, np.inf]]),
    ),
    Case(
        inputs=[(0, 3)],
        args={"output_size": (2,)},
        name="empty",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
]
ERRORS = [
    Error(inputs=[(2, 3)], match="argument 'scale'", name="neither"),
    Error(
        inputs=[(2, 3)], args={"output_size": (1, 1, 1)}, match="argument 'x'", name="axes", oracle=False, reason="dies"
    ),
    Error(
        inputs=[(2, 3)], args={"scale": (1, 1, 1)}, match="argument 'x'", name="factors", oracle=False, reason="dies"
    ),
    Error(inputs=[(2, 3)], args={"output_size": (0,)}, match="argument 'output_size'", oracle=False, reason="no error"),
    *(
        Error(
            inputs=[(2, 3)],
            args={"scale": (scale, 1)},
            match=rf"argument 'scale': .* 1 to 2147483648 of \(2, 3\), got .* make \({size}, 3\)",
            name=f"scale {scale}",
            oracle=False,
            reason="no error",
        )
        for scale, size in ((0.1, 0), (-1, -2), (1e10, 20000000000))
    ),
    Error(inputs=[(2, 3)], args={"output_size": ()}, match="argument 'output_size'", oracle=False, reason="no error"),
    Error(inputs=[(2, 0)], args={"output_size": (2,)}, match="argument 'x'", oracle=False, reason="dies"),
    Error(inputs=[(2, 3)], args={"output_size": (2,), "mode": "cubic"}, match="argument 'mode'"),
    Error(
        inputs=[(2, 3)],
        args={"output_size": (2,), "align_corners": True, "half_pixel": True},
        match="argument 'half_pixel'",
    ),
    Error(inputs=[(2, 3)], args={"scale": (np.nan,)}, match="argument 'scale'", name="NaN"),
]
