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
        found: dict[tuple[int, ...], int] = {}
        numbers = list(product(*(range(len(c)) for c in axes)))
        for s in np.ndindex(y.shape[:base]):
            fits = [
                n
                for n in numbers
                if np.array_equal(y[s], shown(x, [c[k] for c, k in zip(axes, n, strict=True)], s, constant))
            ]
            assert fits, f"sample {s} is none that may be:\n{y[s]}"
            found[fits[0]] = found.get(fits[0], 0) + 1
        expected = np.prod(y.shape[:base]) / len(numbers)
        if expected >= 20:
            chi = sum((found.get(n, 0) - expected) ** 2 / expected for n in numbers)
            assert chi < len(numbers) + 6 * np.sqrt(2 * len(numbers)), found

    return check


def shown(x: np.ndarray, places: list[np.ndarray], sample: tuple[int, ...], constant: float) -> np.ndarray:
    """What sample `sample` of the result is by these places of all axes."""
    chosen = [p[s : s + 1] for p, s in zip(places, sample, strict=False)] + places[len(sample) :]
    y = x[np.ix_(*[c.clip(0) for c in chosen])]
    inside = np.ones(y.shape, bool)
    for axis, c in enumerate(chosen):
        inside &= (c >= 0).reshape([-1 if a == axis else 1 for a in range(y.ndim)])
    return np.where(inside, y, constant).reshape(y.shape[len(sample) :])


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
