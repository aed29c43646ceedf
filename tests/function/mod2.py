"""`mod2`: the rest of a division, with the sign of the dividend; of whole numbers with that of the divisor."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, uniform


def reference(x0: np.ndarray, x1: np.ndarray, fmod: bool = False) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):  # whole numbers by 0 give 0, in NumPy too
        return np.fmod(x0, x1) if x0.dtype.kind == "f" or fmod else np.mod(x0, x1)


DIVIDENDS, DIVISORS = [5.5, -5.5, 5.5, -5.5, 7.25, 0.5], [3.0, 3.0, -3.0, -3.0, 0.75, 2.0]
NO_GRAD = {"oracle": False, "reason": "NNabla has no gradient"}
CASES = [
    Case(inputs=[DIVIDENDS, DIVISORS], name="signs", **NO_GRAD),
    Case(inputs=[DIVIDENDS, DIVISORS], args={"fmod": True}, name="fmod", **NO_GRAD),
    Case(inputs=[uniform(4.1, 4.9, 2, 1), uniform(2.1, 2.4, 1, 3)], name="broadcast", **NO_GRAD),
    Case(inputs=[uniform(4.1, 4.9, 3), [2.0]], name="axes", **NO_GRAD, reshaped=[uniform(4.1, 4.9, 2, 3), [2.0]]),
    Case(inputs=[uniform(4.1, 4.9, 2, 3), 2.5 * np.ones(())], name="number", **NO_GRAD),
    Case(inputs=[[5, -5, 5, -5, 6, 0], [3, 3, -3, -3, -6, 2]], name="integers", differentiable=False),
    Case(
        inputs=[[5, -5, 5, -5, 6, 0], [3, 3, -3, -3, -6, 2]],
        args={"fmod": True},
        name="integers, fmod",
        differentiable=False,
    ),
    Case(inputs=[[5, -5], [0, 0]], name="integers by 0", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(
        inputs=[[1.0, np.inf, np.nan, 0.0, 1.0, -1.0, 1.0], [0.0, 2.0, 2.0, 5.0, np.inf, np.inf, np.nan]],
        name="corners",
        differentiable=False,
    ),
    Case(inputs=[(0, 3), (3,)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [Error(inputs=[(2, 3), (2,)], match="argument 'x1'")]
