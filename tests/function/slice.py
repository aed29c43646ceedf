"""`slice`: a part of x; short lists are about the last axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error


def reference(
    x: np.ndarray, start: Sequence | None = None, stop: Sequence | None = None, step: Sequence | None = None
) -> np.ndarray:
    n = next((len(a) for a in (start, stop, step) if a is not None), x.ndim)
    parts = zip(*[[None] * n if a is None else a for a in (start, stop, step)], strict=True)
    return x[(..., *[slice(*part) for part in parts])]


def part(start: object = None, stop: object = None, step: object = None) -> dict[str, object]:
    """The arguments that are there."""
    return {name: a for name, a in (("start", start), ("stop", stop), ("step", step)) if a is not None}


CASES = [
    Case(inputs=[(3, 4)], args=part((0, 1), (2, 3), (1, 1)), reshaped=[(5, 3)], name="plain"),
    Case(inputs=[(3, 4)], name="defaults"),
    Case(inputs=[(3, 4)], args=part((0, 1), (2, 3)), name="no step"),
    Case(inputs=[(3, 4)], args=part((0, 0), (3, 4), (2, 3)), name="steps"),
    Case(inputs=[(3, 4)], args=part((-2, -3), (3, -1), (1, 1)), name="from the end"),
    Case(inputs=[(3, 4)], args=part((None, 1), (2, None), (None, 1)), name="None inside"),
    Case(inputs=[(3, 4)], args=part((None, None), (None, None), (-1, -1)), name="backward"),
    Case(inputs=[(3, 4)], args=part((2, 3), (0, 0), (-1, -2)), name="backward to"),
    Case(inputs=[(3, 4)], args=part((2, 3), (-4, -5), (-1, -1)), name="backward over the front"),
    Case(inputs=[(3, 4)], args=part((0, 0), (10, 10), (1, 1)), name="stop beyond the end"),
    Case(inputs=[(3, 4)], args=part((1,), (3,), (1,)), name="short: the last axis"),
    Case(inputs=[(2, 3, 4)], args=part([0, 1], [2, 3], [1, 1]), name="short: the last axes"),
    Case(inputs=[(3, 4)], args=part((1, 0), (1, 4), (1, 1)), differentiable=False, name="empty"),
    Case(inputs=[(3, 4)], args=part((2, 0), (1, 4), (1, 1)), differentiable=False, name="start after stop"),
    Case(
        inputs=[(3, 4)],
        args=part((5, 0), (9, 4), (1, 1)),
        differentiable=False,
        oracle=False,
        reason="NNabla dies",
        name="start beyond",
    ),
    Case(inputs=[(3, 4)], args=part((-9, 0), (2, 4), (1, 1)), oracle=False, reason="NNabla dies", name="start before"),
]
ERRORS = [
    Error(inputs=[(3, 4)], args=part((0, 0), (2, 2), (0, 1)), match="argument 'step'", name="step 0"),
    Error(inputs=[(3, 4)], args=part((0, 0, 0), (1, 1, 1), (1, 1, 1)), match="argument 'start'", name="too many"),
    Error(inputs=[(3, 4)], args=part((0, 0), (2,)), match="argument 'stop'", name="lengths"),
]
