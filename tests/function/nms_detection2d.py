"""`nms_detection2d`: boxes that overlap better ones lose their scores."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def overlap(a: np.ndarray, b: np.ndarray) -> float:
    low = np.maximum(a[:2] - a[2:4] / 2, b[:2] - b[2:4] / 2)
    high = np.minimum(a[:2] + a[2:4] / 2, b[:2] + b[2:4] / 2)
    common = np.prod(np.maximum(high - low, 0))
    either = a[2] * a[3] + b[2] * b[3] - common
    return common / either if either else np.nan


def reference(
    x: np.ndarray, thresh: float | None = None, nms: float | None = None, nms_per_class: bool | None = None
) -> np.ndarray:
    thresh, nms = 0.5 if thresh is None else thresh, 0.45 if nms is None else nms
    y = x.copy()
    y[..., 4][y[..., 4] < thresh] = 0
    y[..., 5:] *= y[..., 4:5]
    y[..., 5:][y[..., 5:] < thresh] = 0
    for boxes, sample in zip(x, y, strict=True):
        columns = range(5, x.shape[2]) if nms_per_class in (None, True) else [4]
        for column in columns:
            order = np.argsort(-sample[:, column], kind="stable")
            scores = sample[:, column].copy()
            for k, a in enumerate(order):
                if column > 4 and scores[a] == 0:
                    continue
                for b in order[k + 1 :]:
                    if overlap(boxes[a], boxes[b]) > nms:
                        scores[b] = 0
                        if column == 4:
                            sample[b, 4:] = 0
            sample[:, column] = scores
    return y


def boxes(batch: int, n: int, classes: int):
    """Boxes on a grid of 1/16 so that the overlaps are far from the thresholds, scores that are all different."""

    def make(rng: np.random.Generator) -> np.ndarray:
        x = np.empty((batch, n, 5 + classes))
        x[..., :2] = rng.integers(0, 16, (batch, n, 2)) / 16
        x[..., 2:4] = rng.integers(4, 8, (batch, n, 2)) / 16
        x[..., 4:] = 0.5 + 0.5 * rng.random((batch, n, 1 + classes))
        return x

    return make


ROW = [0.5, 0.5, 1.0, 1.0]
# Each overlaps the next one by 3/7, the first and the last by little.
CHAIN = [[[0.0, 0.0, 1.0, 1.0, 0.875, 0.875], [0.4, 0.0, 1.0, 1.0, 0.75, 0.875], [0.8, 0.0, 1.0, 1.0, 0.625, 0.875]]]
WIDE = ("float", "double")
CASES = [
    Case(inputs=[boxes(2, 12, 3)], args={"thresh": 0.4, "nms": 0.31}, types=WIDE, differentiable=False),
    Case(
        inputs=[boxes(2, 12, 3)],
        args={"thresh": 0.4, "nms": 0.31, "nms_per_class": False},
        types=WIDE,
        differentiable=False,
        name="by objectness",
        reshaped=[boxes(1, 7, 2)],
    ),
    Case(inputs=[boxes(1, 9, 1)], types=WIDE, differentiable=False, name="defaults"),
    Case(inputs=[CHAIN], args={"thresh": 0.1, "nms": 0.3}, differentiable=False, name="a chain"),
    Case(
        inputs=[CHAIN],
        args={"thresh": 0.1, "nms": 0.3, "nms_per_class": False},
        differentiable=False,
        name="a chain by objectness",
    ),
    Case(
        inputs=[[[ROW + [0.5, 0.5], ROW + [0.5, 0.75]]]],
        args={"thresh": 0.25, "nms": 1.0},
        differentiable=False,
        name="at the thresholds",
    ),
    Case(
        inputs=[[[[0.5, 0.5, 0.0, 0.5, 0.75, 0.75]] * 3]],
        args={"thresh": 0.25, "nms": 0.0},
        differentiable=False,
        name="no area",
    ),
    Case(inputs=[[[ROW + [0.75, 0.75]] * 3]], args={"thresh": 0.25}, differentiable=False, name="equal boxes"),
    Case(inputs=[[[ROW + [np.nan, 0.5], ROW + [0.75, 1.0]]]], args={"nms": 2.0}, differentiable=False, name="NaN"),
    *[
        Case(
            inputs=[[[ROW + [0.4, 2.0], ROW + [0.3, 2.5], ROW + [0.75, 2.5]]]],
            args={"nms": 1.0, "nms_per_class": per_class},
            differentiable=False,
            name=f"objectness below the threshold, {'by class' if per_class else 'by objectness'}",
        )
        for per_class in (True, False)
    ],
    Case(inputs=[(0, 3, 7)], differentiable=False, name="no sample"),
    Case(inputs=[(2, 0, 7)], differentiable=False, name="no box"),
]
ERRORS = [
    Error(inputs=[(3, 7)], match="argument 'x'", name="two axes"),
    Error(inputs=[(1, 3, 5)], match="argument 'x'", name="no class"),
    Error(inputs=[(1, 3, 6)], args={"thresh": "a"}, match="argument 'thresh'", kind=TypeError, name="thresh"),
]
