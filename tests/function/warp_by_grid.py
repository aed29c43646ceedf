"""`warp_by_grid`: images read at places from -1 to 1."""

from __future__ import annotations

import itertools

import numpy as np

from function.case import Case, Error, Maker


def mirrored(p: float, first: float, length: float) -> float:
    if length == 0:
        return 0.0
    p = abs(p - first) % (2 * length)
    return first + min(p, 2 * length - p)


def taps(p: float, n: int, mode: str, padding: str) -> list[tuple[int, float]]:
    """Elements and weights."""
    near = [int(np.floor(p)), int(np.floor(p)) + 1] if mode == "linear" else [int(np.trunc(p + np.copysign(0.5, p)))]
    pairs = [(i, 1 - abs(p - i) if mode == "linear" else 1.0) for i in near]
    if padding == "zero":
        return [(i, w) for i, w in pairs if 0 <= i < n]
    return [(min(max(i, 0), n - 1), w) for i, w in pairs]


def place(v: float, n: int, padding: str, corners: bool) -> float:
    p = (v + 1) / 2 * (n - 1) if corners else ((v + 1) * n - 1) / 2
    if padding == "reflect":
        p = mirrored(p, 0, n - 1) if corners else mirrored(p, -0.5, n)
    return p if padding == "zero" else min(max(p, 0), n - 1)


def reference(
    x: np.ndarray,
    grid: np.ndarray,
    mode: str = "linear",
    padding_mode: str = "zero",
    align_corners: bool = False,
    channel_last: bool = False,
) -> np.ndarray:
    x = np.moveaxis(x, -1, 1) if channel_last else x
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for b, *at in np.ndindex(*grid.shape[:-1]):
        values = grid[(b, *at)][::-1]
        sizes = x.shape[2:]
        axes = [
            taps(place(v, n, padding_mode, align_corners), n, mode, padding_mode)
            for v, n in zip(values, sizes, strict=True)
        ]
        for corner in itertools.product(*axes):
            index, weight = [i for i, _ in corner], np.prod([w for _, w in corner])
            y[(b, slice(None), *at)] += weight * x[(b, slice(None), *index)]
    return np.moveaxis(y, 1, -1) if channel_last else y


def between(*shape: int, sizes: tuple[int, ...], corners: bool = False, reach: int = 2) -> Maker:
    """Places that are no element's and no edge, `reach` elements beyond the image at most; the last axis is x, y, .."""

    def make(rng: np.random.Generator) -> np.ndarray:
        columns = []
        for n in sizes[::-1]:
            p = rng.integers(-reach, n + reach, shape) + rng.choice([0.2, 0.3, 0.7, 0.85], shape)
            columns.append(2 * p / (n - 1) - 1 if corners else (2 * p + 1) / n - 1)
        return np.stack(columns, -1)

    return make


GRADIENT = {"oracle_grad": False, "reason": "NNabla has no gradient of the gradient"}
HALF = {"half": 5e-2, "bfloat16": 3e-1}
CASES = [
    *(
        Case(
            inputs=[(2, 2, 3, 4), between(2, 2, 3, sizes=(3, 4), corners=corners)],
            args={"padding_mode": padding, "align_corners": corners},
            name=f"{padding}{' corners' if corners else ''}",
            tolerance=HALF,
            **GRADIENT,
        )
        for padding in ("zero", "repeat", "reflect")
        for corners in (False, True)
    ),
    *(
        Case(
            inputs=[(1, 2, 3, 4), between(1, 2, 3, sizes=(3, 4), corners=corners)],
            args={"padding_mode": padding, "align_corners": corners, "mode": "nearest"},
            need_grad=[True, False],
            name=f"nearest {padding}{' corners' if corners else ''}",
            types=("float", "double"),
            **GRADIENT,
        )
        for padding in ("zero", "repeat", "reflect")
        for corners in (False, True)
    ),
    Case(inputs=[(1, 2, 2, 3, 2), between(1, 2, 1, 2, sizes=(2, 3, 2))], name="volumes", tolerance=HALF, **GRADIENT),
    Case(
        inputs=[(1, 2, 2, 3, 2), between(1, 2, 1, 2, sizes=(2, 3, 2))],
        args={"padding_mode": "reflect"},
        name="volumes, reflect",
        tolerance=HALF,
        **GRADIENT,
    ),
    Case(
        inputs=[(2, 3, 4, 2), between(2, 2, 3, sizes=(3, 4))],
        args={"channel_last": True},
        name="channels last",
        tolerance=HALF,
        oracle=False,
        reason="NNabla has channels first alone",
    ),
    Case(inputs=[(1, 5, 3, 4), between(1, 4, 4, sizes=(3, 4))], name="five channels", tolerance=HALF, **GRADIENT),
    Case(
        inputs=[(1, 4, 2, 3, 2), between(1, 2, 2, 3, sizes=(2, 3, 2))],
        name="volumes of four channels",
        tolerance=HALF,
        **GRADIENT,
    ),
    Case(
        inputs=[(1, 10, 3, 4), between(1, 20, 30, sizes=(3, 4))],
        name="many places and channels",
        types=("float", "double"),
        second=False,
        differentiable=False,
    ),
    Case(
        inputs=[np.arange(1.0, 5)[None, None, None], np.stack([np.linspace(-2, 2, 17), np.zeros(17)], -1)[None, None]],
        args={"mode": "nearest"},
        name="in the middle of two",
        differentiable=False,
    ),
    Case(
        inputs=[(1, 1, 1, 4), [[[[np.inf, 0.0], [-np.inf, 0.0], [1e30, 0.0]]]]],
        args={"padding_mode": "repeat"},
        name="infinite",
        types=("float", "double"),
        differentiable=False,
        oracle=False,
        reason="NNabla gives NaN",
        check=lambda y, x: np.testing.assert_allclose(y[0][0, 0, 0], x[0][0, 0, 0, [3, 0, 3]], 1e-6),
    ),
    Case(
        inputs=[(1, 2, 1, 4), [[[[np.nan, 0.0], [0.0, np.nan]]]]],
        name="no number",
        differentiable=False,
        check=lambda y, x: np.testing.assert_array_equal(y[0], np.full((1, 2, 1, 2), np.nan)),
    ),
    Case(
        inputs=[(1, 2, 2, 2), (1, 0, 3, 2)],
        name="no places",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
]
ERRORS = [
    Error(inputs=[(1, 1, 2, 2), (1, 2, 2, 2)], args={"mode": "cubic"}, match="argument 'mode'"),
    Error(inputs=[(1, 1, 2, 2), (1, 2, 2, 2)], args={"padding_mode": "wrap"}, match="argument 'padding_mode'"),
    Error(inputs=[(2, 1, 2, 2), (1, 2, 2, 2)], match="argument 'grid'", name="batch"),
    Error(
        inputs=[(1, 1, 2, 2), (1, 2, 2, 3)], match="argument 'grid'", name="components", oracle=False, reason="no error"
    ),
    Error(inputs=[(1, 1, 2, 2), ()], match="argument 'grid'", name="no axes", oracle=False, reason="dies"),
    Error(inputs=[(1, 1, 4), (1, 4, 1)], match="argument 'x'", name="lines"),
    Error(inputs=[(1, 1, 0, 2), (1, 2, 2, 2)], match="argument 'x'", name="nothing", oracle=False, reason="dies"),
]
