"""`binary_weight_convolution`: a convolution with the signs of its weight and a scale for each output."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error
from function.convolution import reference as convolution


def signs(w: np.ndarray, zero: float = 1.0) -> np.ndarray:
    return np.where(w > 0, 1.0, np.where(w < 0, -1.0, zero))


def dyadic(*shape: int) -> np.ndarray:
    """Weights other than 0 whose means are numbers in every type."""
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 11 - 5.5) / 4


def effective(w: np.ndarray, zero: float) -> np.ndarray:
    return signs(w, zero) * np.abs(w).mean(tuple(range(1, w.ndim)), keepdims=True)


def reference(
    x: np.ndarray,
    w: np.ndarray,
    wb: np.ndarray,
    alpha: np.ndarray,
    b: np.ndarray | None = None,
    base_axis: int = 1,
    pad: Any = None,
    stride: Any = None,
    dilation: Any = None,
    group: int = 1,
    quantize_zero_to: float = 1.0,
) -> np.ndarray:
    return convolution(x, effective(w, quantize_zero_to), b, base_axis, pad, stride, dilation, group)


def gradient(
    gy: np.ndarray, x: np.ndarray, w: np.ndarray, *rest: Any, quantize_zero_to: float = 1.0, **args: Any
) -> Any:
    """As if the layer's weight were what it works with: convolution is linear in each of its inputs."""
    e, b = effective(w, quantize_zero_to), rest[2] if len(rest) > 2 else None
    gx, gw = np.zeros_like(x), np.zeros_like(w)
    for i in np.ndindex(x.shape):
        one = np.zeros_like(x)
        one[i] = 1
        gx[i] = (gy * convolution(one, e, None, **args)).sum()
    for i in np.ndindex(w.shape):
        one = np.zeros_like(w)
        one[i] = 1
        gw[i] = (gy * convolution(x, one, None, **args)).sum()
    gb = None if b is None else gy.sum((0, *range(2, gy.ndim))).reshape(b.shape)
    return gx, gw, *[None] * 2, gb


def given(F: Any, *inputs: Any, **args: Any) -> list[Any]:
    """The output, and what forward writes."""
    return [F.binary_weight_convolution(*inputs, **args), *inputs[2:4]]


def written(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    x, w = (np.asarray(v, np.float64) for v in inputs[:2])
    np.testing.assert_allclose(outputs[0], convolution(x, effective(w, 0.25)), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(outputs[1], signs(w, 0.25))
    np.testing.assert_allclose(outputs[2].ravel(), np.abs(effective(w, 1.0)).reshape(len(w), -1).max(1), rtol=1e-3)


W = dyadic(3, 2, 2, 2)
SCALES = np.abs(effective(W, 1.0)).reshape(3, -1).max(1)
GROUPED = dyadic(4, 1, 2, 2)
ONLY = {"grad": gradient, "second": False}
CASES = [
    # What forward writes is there already.
    Case(
        inputs=[(2, 2, 4, 5), W, signs(W), SCALES, (3,)],
        need_grad=(True, True, False, False, True),
        reshaped=[(1, 2, 3, 4), W, signs(W), SCALES, (3,)],
        **ONLY,
    ),
    Case(inputs=[(2, 2, 4, 5), W, signs(W), SCALES], need_grad=(True, True, False, False), name="no bias", **ONLY),
    Case(
        inputs=[(1, 2, 5, 4), GROUPED, signs(GROUPED), np.abs(effective(GROUPED, 1.0)).reshape(4, -1).max(1)],
        args={"group": 2, "pad": (1, 0), "stride": (2, 1), "dilation": (1, 2)},
        need_grad=(True, True, False, False),
        name="groups",
        **ONLY,
    ),
    Case(
        inputs=[(2, 2, 4, 5), W.round(), np.full(W.shape, 9.0), np.full(3, 9.0)],
        args={"quantize_zero_to": 0.25},
        mutates=True,
        check=written,
        call=given,
        differentiable=False,
        types=("float", "double"),
        name="written",
    ),
]
ERRORS = [
    Error(inputs=[(1, 3, 4, 4), (3, 2, 2, 2), (3, 2, 2, 2), (3,)], match="argument 'weight'"),
    Error(
        inputs=[(1, 2, 4, 4), (3, 2, 2, 2), (3, 2, 2), (3,)],
        match="argument 'binary_weight'",
        name="binary weight",
        oracle=False,
        reason="the size is enough",
    ),
    Error(inputs=[(1, 2, 4, 4), (3, 2, 2, 2), (3, 2, 2, 2), (3,), (2,)], match="argument 'bias'", name="bias"),
    Error(inputs=[(1, 2, 4, 4), (3, 2, 2, 2), (3, 2, 2, 2), (2,)], match="argument 'alpha'", name="alpha"),
]
