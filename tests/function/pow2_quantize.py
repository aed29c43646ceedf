"""`pow2_quantize`: powers of two."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(
    x: np.ndarray,
    sign: bool = True,
    with_zero: bool = True,
    n: int = 8,
    m: int = 1,
    quantize: bool = True,
    ste_fine_grained: bool = True,
) -> np.ndarray:
    if not quantize:
        return x
    least = 2.0 ** (m + 1 - 2 ** (n - sign - with_zero))
    size = np.abs(x)
    with np.errstate(divide="ignore"):
        near = np.clip(2.0 ** np.round(np.log2(size)), least, 2.0**m)
    near = np.where(size < least * 2**-0.5, 0, near) if with_zero else near
    y = np.where(x < 0, -near if sign else (0 if with_zero else least), near)
    return np.where(np.isnan(x), x, y)


def gradient(
    gy: np.ndarray, x: np.ndarray, sign: bool = True, m: int = 1, ste_fine_grained: bool = True, **_: object
) -> np.ndarray:
    beyond = (np.abs(x) >= 2 ** (m + 0.5)) | ((x < 0) & (not sign))
    return np.where(beyond, 0, gy) if ste_fine_grained else gy


VALUES = [[0.1, 0.7, 0.71, -0.75, 1.4], [1.42, -2.8, 2.9, -100.0, 0.02], [0.03, 0.35, -0.36, 12.0, 2.0]]
ONLY = {"grad": gradient, "oracle_grad": False, "reason": "NNabla has no gradient of a gradient here"}
CASES = [
    Case(inputs=[VALUES], elementwise=True, **ONLY),
    Case(inputs=[VALUES], args={"with_zero": False}, name="no zero", **ONLY),
    Case(inputs=[VALUES], args={"sign": False}, name="no sign", **ONLY),
    Case(inputs=[VALUES], args={"sign": False, "with_zero": False, "n": 3}, name="neither", **ONLY),
    Case(inputs=[VALUES], args={"n": 3}, name="two levels", **ONLY),
    Case(inputs=[VALUES], args={"n": 4, "m": -3}, name="small", **ONLY),
    Case(inputs=[VALUES], args={"n": 5, "m": 7}, name="large", **ONLY),
    Case(inputs=[VALUES], args={"n": 1, "sign": False, "with_zero": False}, name="one bit", **ONLY),
    Case(inputs=[VALUES], args={"ste_fine_grained": False}, name="straight through", **ONLY),
    Case(inputs=[VALUES], args={"n": 10, "m": 0}, name="more bits than exponents", **ONLY, types=("float", "double")),
    Case(inputs=[[1e-30, -1e-19, 0.0, -0.0]], args={"with_zero": False, "n": 7}, name="least", differentiable=False),
    Case(inputs=[[np.nan, np.inf, -np.inf, 0.0, -0.0]], name="corners", differentiable=False),
    Case(
        inputs=[[1e-300, 1e-200, 3e-100, -1e-250]],
        args={"n": 14, "m": 3},
        name="doubles",
        types=("double",),
        differentiable=False,
        oracle=False,
        reason="single precision",
    ),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"n": 2}, match="argument 'n'", name="sign and zero alone"),
    Error(inputs=[(2, 3)], args={"n": 1, "sign": False}, match="argument 'n'", name="zero alone"),
    Error(inputs=[(2, 3)], args={"n": -1}, match="argument 'n'", name="negative"),
    Error(
        inputs=[(2, 3)],
        args={"m": 128},
        match="argument 'm'",
        name="m",
        oracle=False,
        reason="its limits overflow",
    ),
]
