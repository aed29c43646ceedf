"""`roi_align`: means of samples of bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def axis(n: int, first: float, end: float, bins: int, ratio: int) -> np.ndarray:
    """The matrix that makes bins of elements."""
    result = np.zeros((bins, n))
    size = (end - first) / bins
    count = ratio if ratio > 0 else int(max(np.ceil(size), 0))
    for b in range(bins):
        for k in range(count):
            p = first + size * (b + (k + 0.5) / count) - 0.5
            if -1 <= p <= n:
                p = min(max(p, 0), n - 1)
                i = int(p)
                result[b, i] += (1 - (p - i)) / count
                result[b, min(i + 1, n - 1)] += (p - i) / count
    return result


def reference(
    input: np.ndarray,
    boxes: np.ndarray,
    output_size: Sequence[int],
    spatial_scale: Sequence[float] = (1.0, 1.0),
    sampling_ratio: int | None = None,
    channel_last: bool | None = None,
) -> np.ndarray:
    x = np.moveaxis(input, -1, 1) if channel_last else input
    rows = []
    for b, x1, y1, x2, y2 in boxes:
        (sy, sx), ratio = spatial_scale, sampling_ratio or -1
        v = axis(x.shape[2], y1 * sy, y2 * sy, output_size[0], ratio)
        h = axis(x.shape[3], x1 * sx, x2 * sx, output_size[1], ratio)
        rows.append(np.einsum("ri,sj,cij->crs", v, h, x[int(b)]))
    y = np.stack(rows) if rows else np.zeros((0, x.shape[1], *output_size))
    return np.moveaxis(y, 1, -1) if channel_last else y


IMAGES = (2, 2, 5, 6)
BOXES = [[0.0, 0.3, 0.2, 5.6, 4.1], [1.0, 1.1, 1.3, 2.2, 2.4], [1.0, -2.3, -1.2, 3.1, 9.7], [0.0, 2.0, 2.0, 4.0, 3.0]]
HALF = {"half": 2e-2, "bfloat16": 1e-1}


def case(name: str, boxes: list[list[float]] = BOXES, images: tuple[int, ...] = IMAGES, **args: object) -> Case:
    return Case(
        inputs=[images, boxes],
        args=args,
        need_grad=[True, False],
        name=name,
        types=("float", "double"),
        oracle_grad=False,
        oracle="channel_last" not in args,
        reason="NNabla has channels first alone, and no gradient of the gradient",
    )


CASES = [
    case("bins", output_size=(2, 3)),
    case("one sample", output_size=(2, 2), sampling_ratio=1),
    case("samples", output_size=(2, 2), sampling_ratio=3),
    case("scale", output_size=(3, 2), spatial_scale=(0.5, 2.0)),
    case("channels last", images=(2, 5, 6, 2), output_size=(2, 2), channel_last=True),
    Case(
        inputs=[(1, 1, 3, 3), [[0.0, 2.0, 2.0, 1.0, 1.0]]],
        args={"output_size": (1, 1)},
        need_grad=[True, False],
        name="a box inside out",
        oracle=False,
        reason="NNabla gives NaN",
    ),
    Case(
        inputs=[(1, 1, 3, 3), [[0.0, np.nan, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, np.inf, 1.0]]],
        args={"output_size": (1, 1)},
        name="no numbers",
        differentiable=False,
        oracle=False,
        reason="NNabla gives something",
        check=lambda y, x: np.testing.assert_array_equal(y[0].ravel(), [np.nan, np.nan]),
    ),
    Case(
        inputs=[(1, 1, 4, 4), [[0.0, 0.0, 0.0, 1e30, 1e30]]],
        args={"output_size": (2, 2)},
        name="a box without end",
        types=("float", "double"),
        differentiable=False,
        oracle=False,
        reason="NNabla does not end",
        check=lambda y, x: np.testing.assert_allclose(y[0], 0, atol=1e-6),
    ),
    Case(
        inputs=[(1, 1, 2, 2), np.zeros((0, 5))],
        args={"output_size": (2, 2)},
        name="no boxes",
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
    ),
]
ERRORS = [
    Error(
        inputs=[(1, 1, 2, 2), [[1.0, 0, 0, 1, 1]]], args={"output_size": (1, 1)}, match="argument 'boxes'", host=True
    ),
    Error(
        inputs=[(1, 1, 2, 2), [[-1.0, 0, 0, 1, 1]]], args={"output_size": (1, 1)}, match="argument 'boxes'", host=True
    ),
    Error(inputs=[(1, 1, 2, 2), (1, 4)], args={"output_size": (1, 1)}, match="argument 'boxes'", name="columns"),
    Error(inputs=[(1, 2, 2), (1, 5)], args={"output_size": (1, 1)}, match="argument 'input'", name="axes"),
    Error(inputs=[(1, 1, 2, 2), (1, 5)], args={"output_size": (1,)}, match="argument 'output_size'"),
    Error(
        inputs=[(1, 1, 2, 2), (1, 5)],
        args={"output_size": (1, 1), "spatial_scale": (1.0,)},
        match="argument 'spatial_scale'",
    ),
    Error(
        inputs=[(1, 1, 2, 2), (1, 5)],
        args={"output_size": (1, 1), "sampling_ratio": 1 << 20},
        match="argument 'sampling_ratio'",
        oracle=False,
        reason="no error",
    ),
]
