"""`warp_by_flow`: images read at distances from each element."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error, Maker


def reference(data: np.ndarray, flow: np.ndarray) -> np.ndarray:
    height, width = data.shape[2:]
    y = np.zeros_like(data)
    for b, i, j in np.ndindex(data.shape[0], height, width):
        p = np.clip(j + flow[b, 0, i, j], 0, width - 1), np.clip(i + flow[b, 1, i, j], 0, height - 1)
        for column in range(width):
            for row in range(height):
                weight = max(0, 1 - abs(p[0] - column)) * max(0, 1 - abs(p[1] - row))
                y[b, :, i, j] += weight * data[b, :, row, column]
    return y


def between(*shape: int) -> Maker:
    """Distances that end between elements."""
    return lambda rng: rng.integers(-3, 3, shape) + rng.choice([0.2, 0.3, 0.7, 0.85], shape)


GRADIENT = {"oracle_grad": False, "reason": "NNabla has no gradient of the gradient"}
HALF = {"half": 5e-2, "bfloat16": 3e-1}
CASES = [
    Case(
        inputs=[(2, 3, 3, 4), between(2, 2, 3, 4)],
        tolerance=HALF,
        reshaped=[(1, 1, 2, 2), between(1, 2, 2, 2)],
        **GRADIENT,
    ),
    Case(inputs=[(1, 17, 2, 3), between(1, 2, 2, 3)], name="many channels", tolerance=HALF, **GRADIENT),
    Case(inputs=[(1, 1, 1, 4), between(1, 2, 1, 4)], name="one row", tolerance=HALF, **GRADIENT),
    Case(inputs=[(0, 1, 2, 2), (0, 2, 2, 2)], name="empty", differentiable=False, oracle=False, reason="NNabla dies"),
]
ERRORS = [
    Error(inputs=[(1, 1, 2, 2), (1, 3, 2, 2)], match="argument 'flow'", name="components"),
    Error(inputs=[(1, 1, 2, 2), (1, 2, 2, 3)], match="argument 'flow'", name="sizes"),
    Error(inputs=[(1, 2, 2), (1, 2, 2, 2)], match="argument 'data'", name="axes"),
]
