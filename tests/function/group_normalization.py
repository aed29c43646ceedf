"""`group_normalization`: groups of channels of each sample less their mean, over their deviation; scaled and moved."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from function.case import Case, Error, large_numbers


def reference(
    x: np.ndarray,
    beta: np.ndarray | None,
    gamma: np.ndarray | None,
    num_groups: int,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> object:
    c = channel_axis % x.ndim
    batch = [a % x.ndim for a in ([batch_axis] if isinstance(batch_axis, int) else batch_axis)]
    kept = [c, *(a + (a > c) for a in batch)]
    cut = x.reshape(*x.shape[:c], num_groups, x.shape[c] // num_groups, *x.shape[c + 1 :])
    reduced = tuple(a for a in range(cut.ndim) if a not in kept)
    mean, variance = cut.mean(axis=reduced, keepdims=True), cut.var(axis=reduced, keepdims=True)
    y = ((cut - mean) / np.sqrt(variance + eps)).reshape(x.shape)
    y = (y if gamma is None else y * gamma) + (0.0 if beta is None else beta)
    return (y, mean, variance) if output_stat else y


S4 = (1, 6, 1, 1)
CASES = [
    Case(
        inputs=[(2, 6, 2, 3), S4, S4],
        args={"num_groups": 3},
        reshaped=[(3, 6, 4, 2), S4, S4],
        name="4-D",
    ),
    Case(inputs=[(3, 4), (1, 4), (1, 4)], args={"num_groups": 2}, name="2-D", tolerance={"second": 1e-4}),
    Case(inputs=[(2, 4, 3), (1, 4, 1), (1, 4, 1)], args={"num_groups": 1}, name="one group"),
    Case(inputs=[(2, 4, 3), (1, 4, 1), (1, 4, 1)], args={"num_groups": 4}, name="a group a channel"),
    Case(inputs=[(2, 2, 4), (1, 1, 4), (1, 1, 4)], args={"num_groups": 2, "channel_axis": -1}, name="channels last"),
    Case(
        inputs=[(2, 4, 3), (1, 4, 1), (1, 4, 1)],
        args={"num_groups": 2, "batch_axis": [0, 2]},
        tolerance={"second": 1e-4},
        name="two batch axes",
        oracle=False,
        reason="NNabla takes a batch axis behind the channels for the one before it",
    ),
    Case(
        inputs=[(4, 2, 3), (1, 2, 1), (1, 2, 1)],
        args={"num_groups": 2, "batch_axis": -1, "output_stat": True},
        second=False,
        name="batch axis -1, statistics out",
        oracle=False,
        reason="as above",
    ),
    Case(
        inputs=[(4, 3), None, None], args={"num_groups": 2, "channel_axis": 0, "batch_axis": []}, name="no batch axis"
    ),
    Case(inputs=[(2, 4, 3), None, (1, 4, 1)], args={"num_groups": 2, "eps": 0.5}, name="no beta"),
    Case(inputs=[(2, 4, 3), (1, 4, 1), None], args={"num_groups": 2}, name="no gamma"),
    Case(
        inputs=[(2, 4, 3), (1, 4, 1), (1, 4, 1)],
        args={"num_groups": 2, "output_stat": True},
        name="statistics out",
        oracle_grad=False,
        reason="as of layer_normalization",
    ),
    Case(inputs=[(3, 20, 70), (1, 20, 1), (1, 20, 1)], args={"num_groups": 5}, second=False, name="long rows"),
    Case(inputs=[[[[np.nan, 1.0], [2.0, 3.0]]], None, None], args={"num_groups": 2}, differentiable=False, name="NaN"),
    *large_numbers((2, 4, 3), (2, 4, 5000), args={"num_groups": 2}),
]
ERRORS = [
    Error(
        inputs=[(2, 6), None, None],
        args={"num_groups": 4},
        match="argument 'num_groups'",
        name="groups",
        oracle=False,
        reason="ends the process",
    ),
    Error(
        inputs=[(2, 6), None, None],
        args={"num_groups": 0},
        match="argument 'num_groups'",
        name="no groups",
        oracle=False,
        reason="ends the process",
    ),
    Error(
        inputs=[(2, 6), None, None],
        args={"num_groups": -3},
        match="argument 'num_groups'",
        name="negative",
        oracle=False,
        reason="ends the process",
    ),
    Error(inputs=[(2, 6), (6,), None], args={"num_groups": 2}, match="argument 'beta'", name="beta"),
    Error(inputs=[(2, 6), None, (2, 6)], args={"num_groups": 2}, match="argument 'gamma'", name="gamma"),
    Error(
        inputs=[(2, 6), None, None],
        args={"num_groups": 2, "channel_axis": 2},
        match="argument 'channel_axis'",
        name="channel axis",
    ),
    Error(
        inputs=[(2, 6), None, None],
        args={"num_groups": 2, "batch_axis": 1},
        match="argument 'batch_axis'",
        name="batch axis",
    ),
    Error(
        inputs=[(2, 6), None, None],
        args={"num_groups": 2, "batch_axis": [0, 0]},
        match="argument 'batch_axis'",
        name="twice",
    ),
]
