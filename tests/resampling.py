"""What references of functions that resample have in common: an axis is a matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def rounded(place: float, way: str) -> int:
    """The number of the element that is taken."""
    if way == "floor":
        return int(np.floor(place))
    if way == "ceil":
        return int(np.ceil(place))
    half = -0.5 if way == "round_prefer_floor" else 0.5
    return int(np.ceil(place + half) if way == "round_prefer_floor" else np.floor(place + half))


def keys(a: float, d: float) -> float:
    """Weight of an element at distance d."""
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def matrix(
    n: int, m: int, place: Callable[[int], float], way: str, a: float = -0.75, inside: bool = False, cut: bool = False
) -> np.ndarray:
    """The matrix that makes m elements of n."""
    result = np.zeros((m, n))
    for j in range(m):
        p = place(j)
        if cut and not 0 <= p <= n - 1:
            continue
        if way in ("linear", "cubic"):
            reach = 1 if way == "linear" else 2
            taps = range(int(np.floor(p)) - reach + 1, int(np.floor(p)) + reach + 1)
            weights = [1 - abs(p - i) if way == "linear" else keys(a, abs(p - i)) for i in taps]
        else:
            taps, weights = range(rounded(p, way), rounded(p, way) + 1), [1.0]
        if inside:
            weights = [w * (0 <= i < n) for i, w in zip(taps, weights, strict=True)]
            weights = [w / sum(weights) for w in weights]
        for i, w in zip(taps, weights, strict=True):
            result[j, min(max(i, 0), n - 1)] += w
    return result


def apply(x: np.ndarray, axis: int, by: np.ndarray) -> np.ndarray:
    """The matrix along an axis."""
    return np.moveaxis(np.tensordot(by, x, (1, axis)), 0, axis)
