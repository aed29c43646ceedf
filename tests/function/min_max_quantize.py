"""`min_max_quantize`: numbers of a range as levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def nudged(qr_min: Any, qr_max: Any, ql_min: Any, ql_max: Any, eps: float) -> tuple[Any, Any, Any]:
    """The ends of the range, moved so that 0 is a level, and the size of a level."""
    qr_max = np.where(qr_max - qr_min < eps, qr_min + eps, qr_max)
    scale = (qr_max - qr_min) / (ql_max - ql_min)
    zero = np.clip(np.floor(ql_min - qr_min / scale + 0.5), ql_min, ql_max)
    return (ql_min - zero) * scale, (ql_max - zero) * scale, scale


def reference(
    x: np.ndarray,
    qr_min: np.ndarray,
    qr_max: np.ndarray,
    ql_min: np.ndarray,
    ql_max: np.ndarray,
    decay: float = 0.999,
    x_min_max: bool = False,
    ema: bool = False,
    ste_fine_grained: bool = True,
    eps: float = 0.01,
    quantize: bool = True,
) -> np.ndarray:
    if not quantize:
        return x
    low, high, scale = nudged(qr_min, qr_max, ql_min, ql_max, eps)
    return np.floor((np.clip(x, low, high) - low) / scale + 0.5) * scale + low


def gradient(
    gy: np.ndarray, x: np.ndarray, *range_: np.ndarray, ste_fine_grained: bool = True, eps: float = 0.01, **args: Any
) -> Any:
    low, high, _ = nudged(*range_, eps)
    gx = np.where((x >= low) & (x <= high), gy, 0) if ste_fine_grained else gy
    if args.get("quantize") is False:
        return gy, 0 * range_[0], 0 * range_[0], None, None
    axes = tuple(i for i, n in enumerate(range_[0].shape) if n == 1)
    ends = [np.where(mask, gy, 0).sum(axes, keepdims=True) * (not args.get("ema")) for mask in (x < low, x > high)]
    return gx, *ends, None, None


def moved(F: Any, *inputs: Any, **args: Any) -> list[Any]:
    """The output, and the range, which forward moves."""
    return [F.min_max_quantize(*inputs, **args), inputs[1], inputs[2]]


def checked(new: Any, **args: Any) -> Any:
    """Whether the range is what `new(x, qr_min, qr_max)` gives, and the output that of this range."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        x, qr_min, qr_max, *levels = (np.asarray(v, np.float64) for v in inputs)
        expected = new(x, qr_min, qr_max)
        for got, end in zip(outputs[1:], expected, strict=True):
            np.testing.assert_allclose(got, end, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outputs[0], reference(x, *expected, *levels, **args), rtol=1e-4, atol=1e-4)

    return check


def moving(name: str, new: Any, inputs: Any, **args: Any) -> Case:
    check = checked(new, **{k: v for k, v in args.items() if k == "eps"})
    types = ("float", "double")
    return Case(
        name=name, inputs=inputs, args=args, check=check, mutates=True, differentiable=False, call=moved, types=types
    )


def one(value: float) -> np.ndarray:
    return np.full((1, 1), value)


def axes(*values: float) -> np.ndarray:
    return np.array(values).reshape(1, -1, 1)


X = [[-3.0, -1.1, -0.4, 0.06], [0.3, 0.55, 1.23, 2.0]]
X3 = np.array(X * 2).reshape(2, 2, 4) + 0.02
LEVELS = [one(0), one(255)]
ONLY = {
    "grad": gradient,
    "need_grad": (True, True, True, False, False),
    "oracle_grad": False,
    "reason": "NNabla has no gradient of a gradient here",
}
CASES = [
    Case(inputs=[X, one(-1), one(1.5), *LEVELS], reshaped=[(3, 4), one(-1), one(1.5), *LEVELS], **ONLY),
    Case(inputs=[X, one(-1), one(1.5), one(0), one(15)], name="4 bits", **ONLY),
    Case(inputs=[X, one(-1), one(1.5), one(-128), one(127)], name="signed levels", **ONLY),
    Case(inputs=[X, one(0.5), one(1.7), one(0), one(15)], name="a range above 0", **ONLY),
    Case(inputs=[X, one(-2), one(-0.5), one(0), one(15)], name="a range below 0", **ONLY),
    Case(inputs=[X, one(-1), one(1.5), *LEVELS], args={"ste_fine_grained": False}, name="straight through", **ONLY),
    Case(
        inputs=[X, one(-1), one(1.5), *LEVELS],
        args={"ema": True},
        name="given average",
        **{**ONLY, "need_grad": (True, False, False, False, False)},
    ),
    Case(inputs=[X3, axes(-1.1, -0.4), axes(1, 0.5), axes(0, 0), axes(7, 15)], name="channels", **ONLY),
    Case(
        inputs=[(2, 3, 4), [[[-1.1], [-0.7], [-2.0]]], [[[1.0], [0.9], [0.3]]], axes(0, 0, 0), axes(7, 7, 7)],
        name="made",
        **{**ONLY, "second": False},
    ),
    Case(inputs=[np.array(v) for v in (1.0, -1.0, 1.1, 0.0, 15.0)], name="0-d", differentiable=False),
    Case(
        inputs=[(0, 3), one(-1), one(1.5), *LEVELS],
        name="empty",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
    Case(
        inputs=[[[np.nan, np.inf, -np.inf, 1.0]], one(-1), one(1.5), *LEVELS],
        name="corners",
        differentiable=False,
        oracle=False,
        reason="NNabla makes a number of NaN",
    ),
    moving(
        "range of x",
        lambda x, a, b: (x.min(keepdims=True), x.max(keepdims=True)),
        [X, one(-1), one(1.5), *LEVELS],
        x_min_max=True,
    ),
    moving(
        "average",
        lambda x, a, b: (0.9 * a + 0.1 * x.min(), 0.9 * b + 0.1 * x.max()),
        [X, one(-1), one(1.5), *LEVELS],
        x_min_max=True,
        ema=True,
        decay=0.9,
    ),
    moving(
        "averages of channels",
        lambda x, a, b: (
            0.5 * a + 0.5 * x.min((0, 2), keepdims=True),
            0.5 * b + 0.5 * x.max((0, 2), keepdims=True),
        ),
        [X3, axes(-1.1, -0.4), axes(1, 0.5), axes(0, 0), axes(7, 15)],
        x_min_max=True,
        ema=True,
        decay=0.5,
    ),
    moving("narrow", lambda x, a, b: (a, a + 3.1), [X, one(-0.5), one(0.5), *LEVELS], eps=3.1),
    moving("inverted", lambda x, a, b: (a, a + 0.01), [X, one(0.5), one(-0.5), *LEVELS]),
    moving(
        "one number",
        lambda x, a, b: (0 * a, 0 * a + 0.01),
        [np.zeros((2, 3)), one(-1), one(1), *LEVELS],
        x_min_max=True,
    ),
]
ERRORS = [
    Error(inputs=[(2, 3), (1, 2), (1, 2), (1, 2), (1, 2)], match="argument 'qr_min'"),
    Error(inputs=[(2, 3), (1, 1), (1, 3), (1, 1), (1, 1)], match="argument 'qr_max'", name="qr_max"),
    Error(inputs=[(2, 3), (1, 1), (1, 1), (2, 1), (1, 1)], match="argument 'ql_min'", name="ql_min"),
    Error(inputs=[(2, 3), (1, 1), (1, 1), (1, 1), (1, 3)], match="argument 'ql_max'", name="ql_max"),
    Error(
        inputs=[(0, 3), (1, 1), (1, 1), (1, 1), (1, 1)],
        args={"x_min_max": True},
        match="argument 'x'",
        name="no range",
        oracle=False,
        reason="NNabla dies",
    ),
]
