"""`searchsorted`: where numbers belong in sorted lines."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, floats


def reference(sorted_sequence: np.ndarray, values: np.ndarray, right: bool | None = None) -> np.ndarray:
    lines = sorted_sequence.reshape(int(np.prod(values.shape[:-1])), sorted_sequence.shape[-1])
    rows = values.reshape(len(lines), values.shape[-1])
    found = [np.searchsorted(a, v, "right" if right else "left") for a, v in zip(lines, rows, strict=True)]
    return np.array(found).reshape(values.shape)


LINES = np.sort(np.random.default_rng(1).integers(-4, 5, (2, 3, 9)).astype(float))
CASES = [
    Case(inputs=[[1.0, 2.0, 2.0, 3.0], [0.0, 1.0, 2.0, 2.5, 3.0, 4.0]], differentiable=False),
    Case(
        inputs=[[1.0, 2.0, 2.0, 3.0], [0.0, 1.0, 2.0, 2.5, 3.0, 4.0]],
        args={"right": True},
        name="right",
        differentiable=False,
    ),
    Case(inputs=[LINES, floats(-5, 6, 2, 3, 4)], name="lines", differentiable=False),
    Case(inputs=[LINES, floats(-5, 6, 2, 3, 4)], args={"right": True}, name="lines, right", differentiable=False),
    Case(
        inputs=[[-np.inf, 0.0, np.inf, np.nan], [np.nan, -np.inf, np.inf]],
        name="corners",
        differentiable=False,
        oracle=False,
        reason="NNabla finds NaN anywhere",
    ),
    Case(inputs=[(2, 0), (2, 3)], name="empty lines", differentiable=False, oracle=False, reason="NNabla dies"),
    Case(inputs=[(2, 3), (2, 0)], name="no values", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(2, 3), (3,)], match="argument 'values'"),
    Error(inputs=[(2, 3), (3, 3)], match="argument 'values'", name="size"),
    Error(inputs=[(), ()], match="argument 'sorted_sequence'", name="0-d", oracle=False, reason="NNabla dies"),
]
