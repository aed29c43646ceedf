"""`fixed_point_quantize`: whole multiples of a step."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def limits(sign: bool, n: int, delta: float) -> tuple[float, float]:
    most = (2.0 ** (n - sign) - 1) * delta
    return (-most if sign else 0.0), most


def reference(
    x: np.ndarray,
    sign: bool = True,
    n: int = 8,
    delta: float = 0.0625,
    quantize: bool = True,
    ste_fine_grained: bool = True,
) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        near = np.sign(x) * np.floor(np.abs(x) / delta + 0.5) * delta
    return np.clip(near, *limits(sign, n, delta)) if quantize else x


def gradient(gy: np.ndarray, x: np.ndarray, **args: object) -> np.ndarray:
    if not (args.pop("ste_fine_grained", True) and args.pop("quantize", True)):
        return gy
    least, most = limits(**{"sign": True, "n": 8, "delta": 0.0625, **args})  # type: ignore[arg-type]
    return np.where((x > most) | (x < least), 0, gy)


# Halves of steps, and numbers beyond the limits.
VALUES = [[0.03125, -0.03125, 0.1, 3.3, -2.71], [0.03, 9.0, -9.0, 7.95, -7.95], [20.0, 0.4, 0.09375, 5.125, 7.9]]
ONLY = {"grad": gradient, "oracle_grad": False, "reason": "NNabla has no gradient of a gradient here"}
CASES = [
    Case(inputs=[VALUES], elementwise=True, **ONLY),
    Case(inputs=[VALUES], args={"sign": False}, name="no sign", **ONLY),
    Case(inputs=[VALUES], args={"n": 4, "delta": 0.5}, name="few bits", **ONLY),
    Case(inputs=[VALUES], args={"n": 2, "delta": 4.0}, name="two bits", **ONLY),
    Case(inputs=[VALUES], args={"sign": False, "n": 1, "delta": 2.0}, name="one bit", **ONLY),
    Case(inputs=[VALUES], args={"ste_fine_grained": False}, name="straight through", **ONLY),
    Case(inputs=[(7, 130)], args={"n": 40, "delta": 0.125}, name="many bits", types=("double",), differentiable=False),
    Case(
        inputs=[[np.nan, np.inf, -np.inf, -0.0]],
        name="corners",
        differentiable=False,
        oracle=False,
        reason="NNabla makes a number of NaN",
    ),
    Case(inputs=[[7.9375, -7.9375, 7.94, -7.94]], name="at the limits", differentiable=False),
]
ERRORS = [
    Error(inputs=[(2, 3)], args={"n": 0}, match="argument 'n'", name="n"),
    Error(inputs=[(2, 3)], args={"n": 1}, match="argument 'n'", name="a sign alone"),
    Error(inputs=[(2, 3)], args={"n": 0, "sign": False}, match="argument 'n'", name="no bit"),
    Error(inputs=[(2, 3)], args={"delta": 0.0}, match="argument 'delta'", name="delta 0"),
    Error(inputs=[(2, 3)], args={"delta": -1.0}, match="argument 'delta'", name="negative delta"),
    Error(inputs=[(2, 3)], args={"delta": float("nan")}, match="argument 'delta'", name="delta NaN"),
]
