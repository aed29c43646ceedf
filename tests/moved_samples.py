"""Checks of functions that move elements at random: what each sample of the result shows, and how often."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product

import numpy as np

Check = Callable[[list[np.ndarray], list[np.ndarray]], None]


def sources(n: int, to: int, kind: str, most: int = 0) -> list[np.ndarray]:
    """All that an axis of n places may show: for each choice the places, -1 for a constant."""
    i = np.arange(to)
    if kind == "crop":
        return [i + first for first in range(n - to + 1)]
    if kind == "flip":
        return [i, n - 1 - i]
    shifts = [i - by for by in range(-most, most + 1)]
    if kind == "nearest":
        return [s.clip(0, n - 1) for s in shifts]
    if kind == "reflect":
        return [np.minimum(s % (2 * n), 2 * n - 1 - s % (2 * n)) for s in shifts]
    return [np.where((s >= 0) & (s < n), s, -1) for s in shifts]


def shows(choices: Iterable[list[np.ndarray]], base: int, constant: float = 0.0) -> Check:
    """Each sample of the result shows the input by one choice for each axis; all come up equally often."""
    axes = list(choices)

    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        (y,), (x,) = outputs, inputs
        numbers = list(product(*(range(len(c)) for c in axes)))
        within = tuple(range(base, y.ndim))
        fits = np.array(
            [(y == shown(x, [c[k] for c, k in zip(axes, n, strict=True)], constant)).all(within) for n in numbers]
        )
        assert fits.any(0).all(), f"samples {np.argwhere(~fits.any(0)).tolist()} are none that may be:\n{y}"
        found = np.bincount(fits.argmax(0).ravel(), minlength=len(numbers))
        expected = np.prod(y.shape[:base]) / len(numbers)
        if expected >= 20:
            chi = ((found - expected) ** 2 / expected).sum()
            assert chi < len(numbers) + 6 * np.sqrt(2 * len(numbers)), dict(zip(numbers, found, strict=True))

    return check


def shown(x: np.ndarray, places: list[np.ndarray], constant: float) -> np.ndarray:
    """What the result is by these places of all axes."""
    y = x[np.ix_(*[c.clip(0) for c in places])]
    inside = np.ones(y.shape, bool)
    for axis, c in enumerate(places):
        inside &= (c >= 0).reshape([-1 if a == axis else 1 for a in range(y.ndim)])
    return np.where(inside, y, constant)


def stay(*sizes: int) -> list[list[np.ndarray]]:
    """Axes along which nothing moves."""
    return [[np.arange(n)] for n in sizes]


def repeated(times: int, *shape: int) -> np.ndarray:
    """Equal samples, the numbers of the places in each."""
    return np.tile(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), (times,) + (1,) * len(shape))


def same(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    """A seed repeats itself, another one does not."""
    assert np.array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])
