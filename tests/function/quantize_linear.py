"""`quantize_linear`: numbers as whole multiples of a scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error, uniform


def reference(
    x: np.ndarray,
    scale: np.ndarray,
    zero_point: np.ndarray,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    dtype: Any = np.int8,
) -> np.ndarray:
    least, most = np.iinfo(dtype).min + narrow_range, np.iinfo(dtype).max

    def rounded(v: np.ndarray) -> np.ndarray:
        return np.rint(v) if round_mode == "HALF_TO_EVEN" else np.trunc(v + np.copysign(0.5, v))

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(rounded(x / scale) + rounded(np.clip(zero_point, least, most)), least, most)


def back(gy: np.ndarray, x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray, **_: Any) -> Any:
    return gy / scale, None, None


HALVES = [[1.0, 2.5, -2.5, 300.0], [0.5, -0.5, 1.5, -400.0], [3.5, -3.5, 0.25, 126.5]]
ONE, ZERO = np.ones((1, 1)), np.zeros((1, 1))
ONLY = {"grad": back, "second": False, "need_grad": (True, False, False)}
WRITES = {"oracle": False, "reason": "NNabla writes the rounded zero_point into the input"}
CASES = [
    Case(inputs=[HALVES, ONE, ZERO], **ONLY),
    Case(inputs=[HALVES, ONE, ZERO], args={"round_mode": "HALF_TO_EVEN"}, name="even", **ONLY),
    Case(inputs=[HALVES, ONE, ZERO], args={"narrow_range": True}, name="narrow", **ONLY),
    Case(inputs=[HALVES, ONE, 2 * ONE], args={"dtype": np.uint8}, name="uint8", **ONLY),
    Case(
        inputs=[HALVES, ONE, -300 * ONE],
        args={"dtype": np.uint8, "narrow_range": True},
        name="narrow uint8",
        **WRITES,
        **ONLY,
    ),
    Case(inputs=[HALVES, ONE, 300 * ONE], name="zero point beyond", **WRITES, **ONLY),
    Case(
        inputs=[HALVES, ONE, -0.5 * ONE],
        args={"round_mode": "HALF_TO_EVEN"},
        name="half a zero point",
        **WRITES,
        **ONLY,
    ),
    Case(inputs=[HALVES, [[1.0], [2.0], [0.5]], [[0.0], [3.0], [-1.0]]], name="channels", **ONLY),
    Case(
        inputs=[(2, 3), uniform(0.5, 1.0, 3), ZERO],
        name="axes",
        oracle=False,
        reason="NNabla wants equal axes",
        types=("double",),
        **ONLY,
    ),
    Case(inputs=[[[np.nan, np.inf, -np.inf, 1.0]], ONE, ZERO], name="corners", differentiable=False),
    Case(inputs=[[[1.0, 0.0]], 0 * ONE, ZERO], name="scale 0", differentiable=False),
]
ERRORS = [
    Error(inputs=[(2, 3), (2,), (1,)], match="argument 'scale'"),
    Error(inputs=[(2, 3), (1, 1), (3, 3)], match="argument 'zero_point'", name="zero point"),
    Error(
        inputs=[(2, 3), (1, 1), (1, 1)],
        args={"dtype": np.int16},
        match="argument 'dtype'",
        name="dtype",
        oracle=False,
        reason="it gives what is in memory",
    ),
    Error(
        inputs=[(2, 3), (1, 1), (1, 1)],
        args={"dtype": "x"},
        match="argument 'dtype'",
        name="no dtype",
        oracle=False,
        reason="as above",
    ),
    Error(
        inputs=[(2, 3), (1, 1), (1, 1)],
        args={"round_mode": "UP"},
        match="argument 'round_mode'",
        name="mode",
        oracle=False,
        reason="it does not round",
    ),
]
