"""`binary_connect_affine`: an affine layer with the signs of its weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.affine import reference as affine
from function.case import Case, Error


def signs(w: np.ndarray, zero: float = 1.0) -> np.ndarray:
    return np.where(w > 0, 1.0, np.where(w < 0, -1.0, zero))


def effective(w: np.ndarray, zero: float) -> np.ndarray:
    return signs(w, zero)


def reference(
    x: np.ndarray,
    w: np.ndarray,
    wb: np.ndarray,
    b: np.ndarray | None = None,
    base_axis: int = 1,
    quantize_zero_to: float = 1.0,
) -> np.ndarray:
    return affine(x, effective(w, quantize_zero_to), b, base_axis)


def gradient(
    gy: np.ndarray, x: np.ndarray, w: np.ndarray, *rest: Any, quantize_zero_to: float = 1.0, **args: Any
) -> Any:
    """As if the layer's weight were what it works with: affine is linear in each of its inputs."""
    e, b = effective(w, quantize_zero_to), rest[1] if len(rest) > 1 else None
    gx, gw = np.zeros_like(x), np.zeros_like(w)
    for i in np.ndindex(x.shape):
        one = np.zeros_like(x)
        one[i] = 1
        gx[i] = (gy * affine(one, e, None, **args)).sum()
    for i in np.ndindex(w.shape):
        one = np.zeros_like(w)
        one[i] = 1
        gw[i] = (gy * affine(x, one, None, **args)).sum()
    gb = None if b is None else gy.sum(0).reshape(b.shape)
    return gx, gw, *[None] * 1, gb


def given(F: Any, *inputs: Any, **args: Any) -> list[Any]:
    """The output, and what forward writes."""
    return [F.binary_connect_affine(*inputs, **args), *inputs[2:3]]


def written(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    x, w = (np.asarray(v, np.float64) for v in inputs[:2])
    np.testing.assert_allclose(outputs[0], affine(x, effective(w, 0.25)), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(outputs[1], signs(w, 0.25))


W = np.linspace(-1, 1.37, 12).reshape(3, 4)[:, ::-1]
SHAPED = np.linspace(-1, 1.37, 24).reshape(4, 3, 2)
NOTE = "NNabla writes a gradient to binary_weight, which asks for none"
ONLY = {"grad": gradient, "second": False, "oracle": False, "reason": NOTE}
CASES = [
    # What forward writes is there already.
    Case(
        inputs=[(2, 3), W, signs(W), (4,)],
        need_grad=(True, True, False, True),
        reshaped=[(5, 3), W, signs(W), (4,)],
        **ONLY,
    ),
    Case(inputs=[(2, 3), W, signs(W)], need_grad=(True, True, False), name="no bias", **ONLY),
    Case(
        inputs=[(3, 2, 2), SHAPED, signs(SHAPED), (3, 2)],
        need_grad=(True, True, False, True),
        name="axes",
        **ONLY,
    ),
    Case(inputs=[(0, 3), W, signs(W)], name="no rows", differentiable=False, oracle=False, reason="not asked"),
    Case(
        inputs=[(2, 3), W.round(), np.full(W.shape, 9.0)],
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
    Error(inputs=[(2, 4), (3, 4), (3, 4)], match="argument 'weight'"),
    Error(
        inputs=[(2, 3), (3, 4), (4, 3)],
        match="argument 'binary_weight'",
        name="binary weight",
        oracle=False,
        reason="the size is enough",
    ),
    Error(inputs=[(2, 3), (3, 4), (3, 4), (2,)], match="argument 'bias'", name="bias"),
]
