"""`rand_binomial`: how many of n trials succeed."""

from __future__ import annotations

from typing import Any

import numpy as np

import distributions as d
from function.case import Case, Error
from moved_samples import same


def binomial(n: int, p: float, *shape: int) -> Any:
    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        (y,) = [np.asarray(output, np.float64) for output in outputs]
        assert y.shape == shape and np.all((y >= 0) & (y <= n) & (y == np.rint(y)))
        if y.size:
            d.chi_square(np.bincount(y.ravel().astype(int), minlength=n + 1), d.binomial(n, p))

    return check


def many(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    """So many trials that the numbers are near normal ones."""
    z = (np.asarray(outputs[0], np.float64) - 5e8) / np.sqrt(2.5e8)
    assert abs(z.mean()) < 5 / np.sqrt(z.size) and abs(z.std() - 1) < 0.1


WIDE = ("float", "double")
NO = {"differentiable": False}
CASES = [
    Case(args={"shape": (100, 50)}, check=binomial(1, 0.5, 100, 50), **NO, name="default"),
    *[
        Case(args={"n": n, "p": p, "shape": (5000,), "seed": 5}, check=binomial(n, p, 5000), **NO, name=f"{n}, {p}")
        for n, p in ((1, 0.1), (10, 0.3), (10, 0.9), (30, 0.5), (100, 0.2), (100, 0.93), (200, 0.02))
    ],
    Case(args={"n": 10**9, "shape": (2000,)}, check=many, types=WIDE, **NO, name="many trials"),
    Case(args={"n": 5}, check=binomial(5, 0.5), **NO, name="0-d"),
    Case(args={"shape": (0, 2)}, check=binomial(1, 0.5, 0, 2), **NO, name="empty"),
    Case(
        call=lambda F: [F.rand_binomial(50, shape=(40,), seed=seed) for seed in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
]
ERRORS = [
    Error(args={name: v, "shape": (3,)}, match=f"argument '{name}'", name=f"{name} = {v}")
    for name, v in (("n", 0), ("n", -1), ("p", 0.0), ("p", 1.0), ("p", -0.5), ("p", 1.5), ("p", float("nan")))
]
ERRORS += [
    Error(args={"shape": (-1,)}, match="argument 'shape'", oracle=False, reason="NNabla dies", name="negative size")
]
