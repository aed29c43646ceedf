"""`rand_gamma`: gamma numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from distributions import gamma_below, kolmogorov
from function.case import Case, Error
from moved_samples import same


def gamma(k: float, theta: float, *shape: int) -> Any:
    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        (y,) = [np.asarray(output, np.float64) for output in outputs]
        assert y.shape == shape and np.all(y >= 0)
        if y.size:
            kolmogorov(y, gamma_below(k, theta))

    return check


WIDE = ("float", "double")
NO = {"differentiable": False}
CASES = [
    Case(args={"shape": (100, 50)}, check=gamma(0.5, 1, 100, 50), types=WIDE, **NO, name="default"),
    *[
        Case(
            args={"k": k, "theta": t, "shape": (5000,), "seed": 5},
            check=gamma(k, t, 5000),
            types=WIDE,
            **NO,
            name=f"{k}, {t}",
        )
        for k, t in ((0.1, 2.0), (1.0, 3.0), (2.5, 0.5), (40.0, 1.0))
    ],
    Case(args={"k": 2.0, "shape": (50,)}, check=gamma(2, 1, 50), **NO, name="narrow types"),
    Case(args={"k": 2.0}, check=gamma(2, 1), **NO, name="0-d"),
    Case(args={"shape": (0, 2)}, check=gamma(1, 1, 0, 2), **NO, name="empty"),
    Case(
        call=lambda F: [F.rand_gamma(shape=(40,), seed=seed) for seed in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
]
ERRORS = [
    Error(args={name: v, "shape": (3,)}, match=f"argument '{name}'", name=f"{name} = {v}")
    for name, v in (("k", 0.0), ("k", -1.0), ("k", float("nan")), ("theta", 0.0), ("theta", -1.0))
]
ERRORS += [
    Error(args={"k": float("inf")}, match="argument 'k'", name="infinite k", oracle=False, reason="it gives infinity"),
    Error(args={"shape": (-1,)}, match="argument 'shape'", oracle=False, reason="NNabla dies", name="negative size"),
]
