"""`rand`: uniform numbers in [low, high)."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def uniform(low: float, high: float, shape: tuple[int, ...]) -> Any:
    """A check of shape, range, mean and deviation."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        (y,) = [np.asarray(output, np.float64) for output in outputs]
        assert y.shape == shape
        # A number may round up to high in a narrow type.
        assert np.all((y >= low) & (y <= high))
        if y.size > 100:
            width = high - low
            assert abs(y.mean() - (low + high) / 2) < 5 * width / np.sqrt(12 * y.size)
            assert abs(y.std() - width / np.sqrt(12)) < 0.05 * width
            assert len(np.unique(np.round(y, 3))) > 50

    return check


def same(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def seeded(F: Any) -> list[Any]:
    return [F.rand(0, 1, shape=(40,), seed=seed) for seed in (3, 3, 4)]


def fresh(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    assert not np.array_equal(outputs[0], outputs[1])


def unseeded(F: Any) -> list[Any]:
    return [F.rand(0, 1, shape=(40,)) for _ in range(2)]


CASES = [
    Case(args={"shape": (100, 50)}, check=uniform(0, 1, (100, 50)), differentiable=False, name="default"),
    Case(
        args={"low": -2, "high": 5, "shape": [5000]}, check=uniform(-2, 5, (5000,)), differentiable=False, name="range"
    ),
    Case(args={"shape": (5000,), "seed": 7}, check=uniform(0, 1, (5000,)), differentiable=False, name="seed"),
    Case(check=uniform(0, 1, ()), differentiable=False, name="0-d"),
    Case(args={"shape": (0, 2)}, check=uniform(0, 1, (0, 2)), differentiable=False, name="empty"),
    Case(call=seeded, check=same, differentiable=False, name="a seed repeats"),
    Case(call=unseeded, check=fresh, differentiable=False, name="no seed, other numbers"),
]
ERRORS = [
    Error(args={"low": 1, "high": 0, "shape": (3,)}, match="argument 'high'", name="high < low"),
    Error(args={"low": 1, "high": 1, "shape": (3,)}, match="argument 'high'", name="high = low"),
    Error(args={"shape": 3}, match="argument 'shape'", kind=(TypeError, ValueError), name="shape is an int"),
    Error(args={"shape": (-1,)}, match="argument 'shape'", oracle=False, reason="NNabla dies", name="negative size"),
]
