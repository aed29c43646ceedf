"""`dropout`: elements are zero with probability p, the others divided by 1 - p."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def reference(x: np.ndarray, p: float = 0.5, seed: int = -1) -> np.ndarray:
    if p:
        raise ValueError("only p = 0 is not random")
    return x


def dropped(p: float) -> Any:
    """A check of the share and the scale."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        y, x = np.asarray(outputs[0], np.float64), np.asarray(inputs[0], np.float64)
        kept = y != 0
        assert y.shape == x.shape
        assert np.allclose(y[kept], x[kept] / (1 - p), rtol=1e-2)
        # Five standard deviations.
        assert abs((~kept).mean() - p) < 5 * np.sqrt(p * (1 - p) / x.size)

    return check


def same(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


ONES = np.ones((100, 50))
CASES = [
    Case(inputs=[(2, 3)], args={"p": 0.0}, differentiable=False, name="p = 0"),
    Case(
        inputs=[(2, 3)],
        args={"p": 0.0},
        oracle=False,
        reason="NNabla loses the mask after the first backward",
        name="p = 0, gradient",
    ),
    Case(inputs=[ONES], check=dropped(0.5), differentiable=False, name="default"),
    Case(inputs=[ONES], args={"p": 0.25}, check=dropped(0.25), differentiable=False, name="p = 0.25"),
    Case(inputs=[ONES], args={"p": 0.9, "seed": 3}, check=dropped(0.9), differentiable=False, name="p = 0.9"),
    Case(
        inputs=[ONES],
        call=lambda F, x: [F.dropout(x, seed=3), F.dropout(x, seed=3), F.dropout(x, seed=4)],
        check=same,
        differentiable=False,
        name="seed",
    ),
    Case(inputs=[(0, 3)], args={"p": 0.0}, differentiable=False, name="empty"),
]
ERRORS = [Error(inputs=[(2, 3)], args={"p": p}, match="argument 'p'", name=f"p = {p}") for p in (1.0, 1.5, -0.1)]
