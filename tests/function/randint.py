"""`randint`: integers in [low, high)."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def integers(low: int, high: int, shape: tuple[int, ...]) -> Any:
    """A check of shape, type, range and frequencies."""

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        (y,) = outputs
        assert y.shape == shape
        assert y.dtype.kind == "i"
        assert np.all((y >= low) & (y < high))
        if y.size > 100:
            values, counts = np.unique(y, return_counts=True)
            assert np.array_equal(values, np.arange(low, high))
            share = 1 / (high - low)
            assert np.all(np.abs(counts / y.size - share) <= 5 * np.sqrt(share * (1 - share) / y.size))

    return check


def same(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])


def seeded(F: Any) -> list[Any]:
    return [F.randint(0, 1000, shape=(40,), seed=seed) for seed in (3, 3, 4)]


def fresh(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    assert not np.array_equal(outputs[0], outputs[1])


def unseeded(F: Any) -> list[Any]:
    return [F.randint(0, 1000, shape=(40,)) for _ in range(2)]


def at_the_ends(F: Any) -> list[Any]:
    return [F.randint(-(2**31), 2**31 - 1, shape=(1000,)), F.randint(-(2**31), -(2**31) + 1, shape=(3,))]


def whole_range(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    y, lowest = outputs
    assert y.dtype == np.int32 and (y < -(2**30)).any() and (y >= 2**30).any()
    assert (lowest == -(2**31)).all()


CASES = [
    Case(args={"shape": (3, 2)}, check=integers(0, 1, (3, 2)), differentiable=False, name="default is zero"),
    Case(
        args={"low": -3, "high": 4, "shape": [5000]}, check=integers(-3, 4, (5000,)), differentiable=False, name="range"
    ),
    Case(
        args={"high": 2, "shape": (5000,), "seed": 7}, check=integers(0, 2, (5000,)), differentiable=False, name="seed"
    ),
    Case(args={"high": 9}, check=integers(0, 9, ()), differentiable=False, name="0-d"),
    Case(args={"high": 9, "shape": (0, 2)}, check=integers(0, 9, (0, 2)), differentiable=False, name="empty"),
    Case(call=at_the_ends, check=whole_range, differentiable=False, name="all of int32"),
    Case(call=seeded, check=same, differentiable=False, name="a seed repeats"),
    Case(call=unseeded, check=fresh, differentiable=False, name="no seed, other numbers"),
]
ERRORS = [
    Error(args={"low": 3, "high": 0, "shape": (3,)}, match="argument 'high'", name="high < low"),
    Error(args={"low": 3, "high": 3, "shape": (3,)}, match="argument 'high'", name="high = low"),
    Error(
        args={"high": 2**31},
        match="argument 'high': expected a number of int32, -2147483648 to 2147483647, got 2147483648",
        kind=(ValueError, OverflowError),
        name="high beyond int32",
    ),
    Error(
        args={"low": -(2**31) - 1},
        match="argument 'low': expected a number of int32",
        kind=(ValueError, OverflowError),
        name="low beyond int32",
    ),
    Error(args={"high": 2**40}, match="argument 'high'", kind=(ValueError, OverflowError), name="high 2**40"),
    Error(
        args={"low": 2**31, "high": 1},
        match="argument 'low'",
        kind=(ValueError, OverflowError),
        name="low beyond int32 and above high",
    ),
    Error(args={"shape": 3}, match="argument 'shape'", kind=(TypeError, ValueError), name="shape is an int"),
    Error(args={"shape": (-1,)}, match="argument 'shape'", oracle=False, reason="NNabla dies", name="negative size"),
]
