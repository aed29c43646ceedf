"""`instance_normalization`: each channel of each sample less its mean, over its deviation; scaled and moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error, large_numbers


def reference(
    x: np.ndarray,
    beta: np.ndarray | None,
    gamma: np.ndarray | None,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> object:
    batch = [a % x.ndim for a in ([batch_axis] if isinstance(batch_axis, int) else batch_axis)]
    reduced = tuple(a for a in range(x.ndim) if a not in (*batch, channel_axis % x.ndim))
    mean, variance = x.mean(axis=reduced, keepdims=True), x.var(axis=reduced, keepdims=True)
    y = (x - mean) / np.sqrt(variance + eps)
    y = (y if gamma is None else y * gamma) + (0.0 if beta is None else beta)
    return (y, mean, variance) if output_stat else y


S4 = (1, 3, 1, 1)
CASES = [
    Case(inputs=[(2, 3, 2, 3), S4, S4], reshaped=[(3, 3, 4, 2), S4, S4], name="4-D"),
    Case(inputs=[(2, 3, 4), (1, 3, 1), (1, 3, 1)], name="3-D"),
    Case(inputs=[(2, 3, 4), (2, 3, 1), (2, 3, 1)], name="a scale a sample"),
    Case(inputs=[(2, 5, 3), (1, 1, 3), (1, 1, 3)], args={"channel_axis": -1}, name="channels last"),
    Case(inputs=[(3, 2, 4), (1, 2, 1), (1, 2, 1)], args={"batch_axis": 2}, name="batch axis behind the channels"),
    Case(inputs=[(3, 2, 2), (1, 2, 1), (1, 2, 1)], args={"batch_axis": []}, name="no batch axis"),
    Case(inputs=[(2, 3, 4), None, (1, 3, 1)], args={"eps": 0.5}, name="no beta"),
    Case(inputs=[(2, 3, 4), (1, 3, 1), None], name="no gamma"),
    Case(
        inputs=[(2, 3, 4), (1, 3, 1), (1, 3, 1)],
        args={"output_stat": True},
        name="statistics out",
        oracle_grad=False,
        reason="as of layer_normalization",
    ),
    Case(inputs=[(2, 3), None, None], differentiable=False, name="one element each"),
    Case(inputs=[(3, 9, 130), (1, 9, 1), (1, 9, 1)], second=False, name="long rows"),
    *large_numbers((2, 3, 4), (2, 3, 5000)),
]
ERRORS = [
    Error(inputs=[(2, 6), (6,), None], match="argument 'beta'", name="beta"),
    Error(inputs=[(2, 6, 3), None, (2, 6, 3)], match="argument 'gamma'", name="gamma"),
    Error(
        inputs=[(2, 6, 3), (2, 6, 1), (1, 6, 1)],
        match="argument 'gamma'",
        name="gamma is not as beta",
        oracle=False,
        reason="taken",
    ),
    Error(inputs=[(2, 6), None, None], args={"channel_axis": 2}, match="argument 'channel_axis'", name="channel axis"),
    Error(inputs=[(2, 6), None, None], args={"batch_axis": 1}, match="argument 'batch_axis'", name="batch axis"),
]
