"""`randn`: normal numbers of mean mu and deviation sigma."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def normal(mu: float, sigma: float, shape: tuple[int, ...]) -> Any:
    """A check of shape, moments and tails."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        (y,) = [np.asarray(output, np.float64) for output in outputs]
        assert y.shape == shape
        assert np.all(np.isfinite(y))
        if y.size > 100:
            z = (y - mu) / sigma
            assert abs(z.mean()) < 5 / np.sqrt(z.size)
            assert abs(z.std() - 1) < 5 / np.sqrt(2 * z.size)
            # 31.7 % lie beyond one deviation, 4.6 % beyond two.
            assert abs((np.abs(z) > 1).mean() - 0.317) < 0.035
            assert abs((np.abs(z) > 2).mean() - 0.0455) < 0.015

    return check


def same(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def seeded(F: Any) -> list[Any]:
    return [F.randn(0, 1, shape=(40,), seed=seed) for seed in (3, 3, 4)]


def fresh(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    assert not np.array_equal(outputs[0], outputs[1])


def unseeded(F: Any) -> list[Any]:
    return [F.randn(0, 1, shape=(40,)) for _ in range(2)]


CASES = [
    Case(args={"shape": (100, 50)}, check=normal(0, 1, (100, 50)), differentiable=False, name="default"),
    Case(
        args={"mu": 2, "sigma": 0.5, "shape": [5000]},
        check=normal(2, 0.5, (5000,)),
        differentiable=False,
        name="moments",
    ),
    Case(args={"shape": (4999,), "seed": 7}, check=normal(0, 1, (4999,)), differentiable=False, name="odd size"),
    Case(check=normal(0, 1, ()), differentiable=False, name="0-d"),
    Case(args={"shape": (0, 2)}, check=normal(0, 1, (0, 2)), differentiable=False, name="empty"),
    Case(call=seeded, check=same, differentiable=False, name="a seed repeats"),
    Case(call=unseeded, check=fresh, differentiable=False, name="no seed, other numbers"),
]
ERRORS = [
    Error(args={"sigma": 0, "shape": (3,)}, match="argument 'sigma'", name="sigma = 0"),
    Error(args={"shape": 3}, match="argument 'shape'", kind=(TypeError, ValueError), name="shape is an int"),
    Error(args={"shape": (-1,)}, match="argument 'shape'", oracle=False, reason="NNabla dies", name="negative size"),
]
