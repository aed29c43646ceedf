"""Whether random numbers come from a distribution: the tests of Kolmogorov and Smirnov and of chi-square, in NumPy.

The bounds are those of a probability of about 1e-8 each: a test that fails is wrong, not unlucky.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray


def kolmogorov(sample: Array, below: Callable[[Array], Array]) -> None:
    """The share of numbers up to each is near the distribution function `below`."""
    x = np.sort(np.asarray(sample, np.float64).ravel())
    expected, n = below(x), x.size
    distance = max(np.max(np.arange(1, n + 1) / n - expected), np.max(expected - np.arange(n) / n))
    assert distance < 3.1 / math.sqrt(n), f"{distance * math.sqrt(n):.2f} / sqrt(n) off"


def chi_square(counts: Array, probabilities: Array) -> None:
    """Counts are near their expectations; those that are expected less than ten times are taken together."""
    counts, expected = np.asarray(counts, np.float64), np.sum(counts) * np.asarray(probabilities)
    rare = expected < 10
    counts = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    assert np.all(counts[expected < 1e-9] == 0)
    counts, expected = counts[expected > 1], expected[expected > 1]
    chi, freedom = float(np.sum((counts - expected) ** 2 / expected)), max(len(counts) - 1, 1)
    assert chi < freedom + 8 * math.sqrt(2 * freedom) + 16, f"chi-square {chi:.1f} for {freedom} degrees of freedom"


def integrated(density: Callable[[Array], Array], low: float, high: float) -> Callable[[Array], Array]:
    """The distribution function of a density up to a factor, by the midpoints of a fine grid."""
    edges = np.linspace(low, high, 400_001)
    sums = np.concatenate([[0.0], np.cumsum(density((edges[1:] + edges[:-1]) / 2))])
    return lambda x: np.interp(x, edges, sums / sums[-1])


def gamma_below(k: float, theta: float) -> Callable[[Array], Array]:
    """Of gamma numbers, by v = x^k, whose density exp(-v^(1/k)) is finite at 0 for small k."""
    top = (k + 12 * math.sqrt(k) + 40) ** min(k, 1)
    if k < 1:
        below = integrated(lambda v: np.exp(-(v ** (1 / k))), 0, top)
        return lambda x: below((x / theta) ** k)
    below = integrated(lambda x: np.exp((k - 1) * np.log(x / k) - x + k), max(0, k - 12 * math.sqrt(k)), top)
    return lambda x: below(x / theta)


def beta_below(a: float, b: float) -> Callable[[Array], Array]:
    """Of beta numbers x = sin^2 t, whose density of t has no poles for a, b >= 0.5."""
    below = integrated(lambda t: np.sin(t) ** (2 * a - 1) * np.cos(t) ** (2 * b - 1), 0, math.pi / 2)
    return lambda x: below(np.arcsin(np.sqrt(np.clip(x, 0, 1))))


def binomial(n: int, p: float) -> Array:
    """Probabilities of 0 to n."""
    log = [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)]
    return np.exp([c + k * math.log(p) + (n - k) * math.log1p(-p) for k, c in enumerate(log)])
