"""`random_choice`: elements of rows picked by their weights."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np

from function.case import Case, Error
from moved_samples import same


def chances(w: np.ndarray, picks: int) -> dict[tuple[int, ...], float]:
    """The probability of each way to pick some elements one after the other without replacement."""
    found = {}
    for order in permutations(np.flatnonzero(w), picks):
        p, left = 1.0, w.sum()
        for i in order:
            p, left = p * w[i] / left, left - w[i]
        found[order] = p
    return found


def fits(counts: dict[Any, int], expected: dict[Any, float], total: int) -> None:
    """A chi-square test, at six deviations."""
    assert set(counts) <= set(expected)
    chi = sum((counts.get(k, 0) - total * p) ** 2 / (total * p) for k, p in expected.items())
    assert chi < len(expected) + 6 * np.sqrt(2 * len(expected)), (counts, expected)


def counted(picks: np.ndarray) -> dict[tuple[int, ...], int]:
    rows, counts = np.unique(picks.reshape(-1, picks.shape[-1]), axis=0, return_counts=True)
    return {tuple(int(i) for i in row): int(n) for row, n in zip(rows, counts, strict=True)}


def with_replacement(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    (y,), (x, w) = outputs, inputs
    assert y.shape == (2, 40, 50)
    for row, population, weights in zip(y, x, w, strict=True):
        expected = {(int(v),): p for v, p in zip(population, weights / weights.sum(), strict=True) if p}
        fits(counted(row.reshape(-1, 1)), expected, 2000)


def without(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    (y,), (_, w) = outputs, inputs
    assert y.shape == (3000, 2)
    fits(counted(y), chances(np.float64(w[0]), 2), 3000)


def permuted(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    np.testing.assert_array_equal(np.sort(outputs[0], -1), np.sort(inputs[0], -1))


def picked(*shape: int):
    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        assert outputs[0].shape == shape and np.isin(outputs[0], inputs[0]).all()

    return check


WEIGHTS = [[1.0, 2.0, 0.0, 7.0], [0.5, 0.25, 0.125, 0.125]]
ROWS = [[11.0, 22.0, 33.0, 44.0], [10.0, 20.0, 30.0, 40.0]]
MANY = [np.tile(np.array(v, float), (3000, 1)) for v in ([0, 1, 2, 3], [0.5, 1, 0, 4])]
NO = {"differentiable": False}
CASES = [
    Case(inputs=[ROWS, WEIGHTS], args={"shape": (40, 50)}, check=with_replacement, **NO),
    Case(inputs=MANY, args={"shape": (2,), "replace": False}, check=without, **NO, name="without replacement"),
    Case(inputs=[(3, 5), np.ones((3, 5))], args={"shape": (5,), "replace": False}, check=permuted, **NO, name="all"),
    Case(inputs=[ROWS, WEIGHTS], check=picked(2, 1), **NO, name="one"),
    Case(inputs=[[5.0, 6.0], [0.0, 2.0]], args={"shape": (2, 2)}, check=picked(2, 2), **NO, name="one axis"),
    Case(inputs=[ROWS, WEIGHTS], args={"shape": (2, 0)}, check=picked(2, 2, 0), **NO, name="none"),
    Case(inputs=[(0, 3), (0, 3)], args={"shape": (5,)}, check=picked(0, 5), **NO, name="no rows"),
    Case(
        inputs=[np.arange(50.0), np.ones(50)],
        call=lambda F, x, w: [F.random_choice(x, w, (20,), seed=s) for s in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
]
BAD = {"match": "argument 'w'", "host": True}
ERRORS = [
    Error(inputs=[ROWS, [[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]], name="no weight", **BAD),
    Error(inputs=[[1.0, 2.0], [1.0, -1.0]], name="a negative weight", **BAD),
    Error(inputs=[[1.0, 2.0], [1.0, np.nan]], name="NaN", **BAD),
    Error(inputs=[[1.0, 2.0], [1.0, np.inf]], name="infinite", oracle=False, reason="NNabla takes it", **BAD),
    Error(inputs=[[1.0, 2.0], [1.0, 0.0]], args={"shape": (2,), "replace": False}, name="few weights", **BAD),
    Error(inputs=[(4,), (3,)], match="argument 'w'", name="another shape"),
    Error(inputs=[(4,), (4,)], args={"shape": (5,), "replace": False}, match="argument 'shape'", name="more than all"),
    Error(inputs=[(), ()], match="argument 'x'", name="0-d"),
    Error(inputs=[(0,), (0,)], match="argument 'x'", name="nothing", oracle=False, reason="NNabla dies"),
    Error(
        inputs=[(3,), (3,)], args={"shape": (-1,)}, match="argument 'shape'", oracle=False, reason="it dies", name="-1"
    ),
]
