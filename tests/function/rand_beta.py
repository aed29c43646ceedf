"""`rand_beta`: beta numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from distributions import beta_below, kolmogorov
from function.case import Case, Error
from moved_samples import same


def beta(a: float, b: float, *shape: int) -> Any:
    def check(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
        (y,) = [np.asarray(output, np.float64) for output in outputs]
        assert y.shape == shape and np.all((y >= 0) & (y <= 1))
        if y.size:
            kolmogorov(y, beta_below(a, b))

    return check


def ends(outputs: list[np.ndarray], inputs: list[np.ndarray]) -> None:
    """Tiny shapes: near one of the ends, as often the one as the other."""
    y = np.asarray(outputs[0], np.float64)
    assert np.all((y < 1e-3) | (y > 1 - 1e-3)) or np.mean((y < 1e-3) | (y > 1 - 1e-3)) > 0.97
    assert abs((y > 0.5).mean() - 0.5) < 5 * np.sqrt(0.25 / y.size)


WIDE = ("float", "double")
NO = {"differentiable": False}
CASES = [
    Case(args={"shape": (100, 50)}, check=beta(0.5, 0.5, 100, 50), types=WIDE, **NO, name="default"),
    *[
        Case(
            args={"alpha": a, "beta": b, "shape": (5000,), "seed": 5},
            check=beta(a, b, 5000),
            types=WIDE,
            **NO,
            name=f"{a}, {b}",
        )
        for a, b in ((1.0, 1.0), (2.0, 5.0), (0.6, 3.0), (30.0, 20.0))
    ],
    Case(args={"alpha": 1e-3, "beta": 1e-3, "shape": (2000,)}, check=ends, **NO, name="tiny"),
    Case(args={"shape": (40,)}, check=beta(0.5, 0.5, 40), **NO, name="narrow types"),
    Case(check=beta(0.5, 0.5), **NO, name="0-d"),
    Case(args={"shape": (0, 2)}, check=beta(1, 1, 0, 2), **NO, name="empty"),
    Case(
        call=lambda F: [F.rand_beta(shape=(40,), seed=seed) for seed in (3, 3, 4)],
        check=same,
        **NO,
        name="a seed repeats",
    ),
]
ERRORS = [
    Error(args={name: v, "shape": (3,)}, match=f"argument '{name}'", name=f"{name} = {v}")
    for name in ("alpha", "beta")
    for v in (0.0, -1.0, float("nan"))
]
ERRORS += [
    Error(
        args={"beta": float("inf")}, match="argument 'beta'", name="infinite beta", oracle=False, reason="it gives NaN"
    ),
    Error(args={"shape": (-1,)}, match="argument 'shape'", oracle=False, reason="NNabla dies", name="negative size"),
]
