"""`weight_standardization`: a weight less its mean, over its deviation, for each output channel."""

import numpy as np

from function.case import Case, Error


def reference(w: np.ndarray, channel_axis: int = 0, eps: float = 1e-5, output_stat: bool = False) -> object:
    reduced = tuple(a for a in range(w.ndim) if a != channel_axis % w.ndim)
    mean, variance = w.mean(axis=reduced, keepdims=True), w.var(axis=reduced, keepdims=True)
    y = (w - mean) / np.sqrt(variance + eps)
    return (y, mean, variance) if output_stat else y


CASES = [
    Case(inputs=[(2, 3, 2)], reshaped=[(4, 5, 2)]),
    Case(inputs=[(2, 4)], args={"channel_axis": -2, "eps": 0.5}, name="axis from the end"),
    Case(inputs=[(3, 2, 2)], args={"channel_axis": 1, "output_stat": True}, second=False, name="statistics out"),
]
ERRORS = [Error(inputs=[(2, 3)], args={"channel_axis": 2}, match="argument 'channel_axis'")]
