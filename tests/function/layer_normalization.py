"""`layer_normalization`: x less its mean, over its deviation, along all axes but the batch axes; scaled and moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error, large_numbers


def reference(
    x: np.ndarray,
    beta: np.ndarray | None,
    gamma: np.ndarray | None,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> object:
    batch = [a % x.ndim for a in ([batch_axis] if isinstance(batch_axis, int) else batch_axis)]
    reduced = tuple(a for a in range(x.ndim) if a not in batch)
    mean, variance = x.mean(axis=reduced, keepdims=True), x.var(axis=reduced, keepdims=True)
    y = (x - mean) / np.sqrt(variance + eps)
    y = (y if gamma is None else y * gamma) + (0.0 if beta is None else beta)
    return (y, mean, variance) if output_stat else y


CASES = [
    Case(inputs=[(2, 4), (1, 4), (1, 4)], reshaped=[(5, 4), (1, 4), (1, 4)], name="2-D"),
    Case(inputs=[(2, 3, 4), (1, 3, 4), (1, 3, 4)], name="3-D"),
    Case(inputs=[(2, 3, 4), (1, 1, 4), (1, 1, 4)], args={"batch_axis": [0, 1]}, name="two batch axes"),
    Case(inputs=[(2, 3, 4), (2, 1, 4), (2, 1, 4)], args={"batch_axis": 1}, name="batch axis 1"),
    Case(inputs=[(2, 3, 4), (2, 3, 1), (2, 3, 1)], args={"batch_axis": -1}, name="batch axis -1"),
    Case(inputs=[(2, 3), (2, 3), (2, 3)], args={"batch_axis": []}, tolerance={"second": 1e-5}, name="no batch axis"),
    Case(inputs=[(2, 4), (1, 4), (1, 4)], args={"eps": 0.5}, name="eps"),
    Case(inputs=[(2, 4), None, (1, 4)], name="no beta"),
    Case(inputs=[(2, 4), (1, 4), None], name="no gamma"),
    Case(inputs=[(2, 4), None, None], name="x alone"),
    Case(
        inputs=[(2, 4), (1, 4), (1, 4)],
        args={"output_stat": True},
        name="statistics out",
        oracle_grad=False,
        reason="NNabla's nn.grad is wrong",
    ),
    Case(
        inputs=[(2, 3, 4), None, None],
        args={"batch_axis": [0, 1], "output_stat": True},
        second=False,
        name="statistics out, two batch axes",
    ),
    Case(inputs=[np.ones((2, 3)), None, None], differentiable=False, name="constant rows"),
    *large_numbers((2, 4), (3, 5000)),
]
ERRORS = [
    Error(inputs=[(2, 3), (3,), (3,)], match="argument 'beta'", name="beta ndim"),
    Error(inputs=[(2, 3), (2, 3), (2, 3)], match="argument 'beta'", name="beta with the batch"),
    Error(inputs=[(2, 3), (1, 1), (1, 1)], match="argument 'beta'", name="beta size"),
    Error(inputs=[(2, 3), None, None], args={"batch_axis": 2}, match="argument 'batch_axis'", name="batch axis"),
    Error(inputs=[(2, 3), None, None], args={"batch_axis": [0, 0]}, match="argument 'batch_axis'", name="axis twice"),
]
