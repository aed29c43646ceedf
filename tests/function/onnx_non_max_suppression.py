"""`onnx_non_max_suppression`: which boxes are left when those that overlap better ones are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from function.case import Case, Error


def corners(box: np.ndarray, center: int) -> tuple[np.ndarray, np.ndarray]:
    if center:
        return box[:2] - box[2:] / 2, box[:2] + box[2:] / 2
    return np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])


def overlap(a: np.ndarray, b: np.ndarray, center: int) -> float:
    (low, high), (low2, high2) = corners(a, center), corners(b, center)
    common = np.prod(np.maximum(np.minimum(high, high2) - np.maximum(low, low2), 0))
    either = np.prod(high - low) + np.prod(high2 - low2) - common
    return common / either if either else np.nan


def reference(
    boxes: np.ndarray,
    scores: np.ndarray,
    center_point_box: int | None = None,
    max_output_boxes_per_class: int | None = None,
    iou_threshold: float | None = None,
    score_threshold: float | None = None,
) -> np.ndarray:
    rows = []
    for b, of_classes in enumerate(scores):
        for c, row in enumerate(of_classes):
            kept: list[int] = []
            for i in np.argsort(-row, kind="stable"):
                fits = row[i] >= (score_threshold or 0) and len(kept) < (max_output_boxes_per_class or 0)
                near = (overlap(boxes[b, k], boxes[b, i], center_point_box or 0) for k in kept)
                if fits and not any(v > (iou_threshold or 0) for v in near):
                    kept.append(int(i))
            rows += [[b, c, i] for i in kept]
    return np.array(rows, np.float64).reshape(-1, 3)


def grid(*shape: int):
    return lambda rng: rng.integers(0, 32, shape) / 32


def scores(*shape: int):
    """All different, exact in every type."""
    return lambda rng: rng.permutation(int(np.prod(shape))).reshape(shape) / 128 - 0.1


def called(F: Any, boxes: Any, scores: Any, **args: Any) -> Any:
    """NNabla writes nothing to arrays that are given as outputs."""
    return F.onnx_non_max_suppression(boxes, scores, **args)


LINE = [[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.5], [0.0, 5.0, 1.0, 6.0], [0.0, 7.0, 1.0, 8.0]]]
MOST = {"max_output_boxes_per_class": 9}
CASES = [
    Case(
        inputs=[grid(2, 20, 4), scores(2, 3, 20)],
        args={"max_output_boxes_per_class": 4, "iou_threshold": 0.33, "score_threshold": 0.2},
        types=("float", "double"),
        differentiable=False,
        call=called,
    ),
    Case(
        inputs=[grid(2, 20, 4), scores(2, 3, 20)],
        args={"center_point_box": 1, **MOST, "iou_threshold": 0.33},
        types=("float", "double"),
        differentiable=False,
        call=called,
        name="centers",
    ),
    Case(inputs=[LINE, [[[1.0, 0.75, 0.5, -0.25]]]], differentiable=False, call=called, name="defaults: none"),
    Case(
        inputs=[LINE, [[[1.0, 0.75, 0.5, -0.25]]]],
        args={**MOST, "iou_threshold": 0.5, "score_threshold": 0.5},
        differentiable=False,
        call=called,
        name="at the thresholds",
    ),
    Case(
        inputs=[LINE, [[[1.0, 0.75, 0.5, -0.25]]]],
        args={**MOST, "iou_threshold": 0.25, "score_threshold": -1.0},
        differentiable=False,
        call=called,
        name="negative scores",
    ),
    Case(inputs=[LINE, [[[np.nan, 0.75, 0.0, 0.25]]]], args=MOST, differentiable=False, call=called, name="NaN"),
    Case(
        inputs=[np.zeros((1, 3, 4)), np.ones((1, 1, 3))], args=MOST, differentiable=False, call=called, name="no area"
    ),
    Case(
        inputs=[np.ones((1, 4, 1)) * [0, 0, 1, 1], np.ones((1, 2, 4))],
        args=MOST,
        differentiable=False,
        call=called,
        name="equal",
    ),
    Case(inputs=[(0, 5, 4), (0, 3, 5)], args=MOST, differentiable=False, call=called, name="no sample"),
    Case(
        inputs=[LINE, [[[1.0, 0.75, 0.5, -0.25]]]],
        args={**MOST, "iou_threshold": 0.5},
        differentiable=False,
        oracle=False,
        reason="NNabla writes nothing to arrays that are given as outputs",
        name="called as it is",
    ),
]
ERRORS = [
    Error(inputs=[(2, 5, 3), (2, 3, 5)], match="argument 'boxes'", name="boxes of three numbers"),
    Error(inputs=[(2, 5, 4), (2, 5)], match="argument 'scores'", name="scores of two axes"),
    Error(inputs=[(2, 5, 4), (2, 3, 6)], match="argument 'scores'", name="another number of boxes"),
    Error(inputs=[(2, 5, 4), (1, 3, 5)], match="argument 'scores'", name="another number of samples"),
    Error(
        inputs=[(2, 5, 4), (2, 3, 5)], args={"center_point_box": 2}, match="argument 'center_point_box'", name="form"
    ),
    Error(
        inputs=[(2, 5, 4), (2, 3, 5)],
        args={"max_output_boxes_per_class": -1},
        match="argument 'max_output_boxes_per_class'",
        name="a negative number of boxes",
    ),
]
