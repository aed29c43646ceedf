"""`mean_subtraction`: the running mean of all samples so far is subtracted."""

from __future__ import annotations

import numpy as np

from function.case import Case, Error


def reference(
    x: np.ndarray, mean: np.ndarray, t: np.ndarray, base_axis: int = 1, update_running_mean: bool = True
) -> np.ndarray:
    base_axis %= x.ndim
    if update_running_mean and x.size:
        batch = x.reshape(-1, *x.shape[base_axis:]).mean(0) if base_axis else x
        mean = mean + (batch - mean) / (t.reshape(()) + 1)
    return x - mean


def factor(x: np.ndarray, t: np.ndarray, base_axis: int) -> float:
    return 1 - 1 / ((float(t.reshape(())) + 1) * np.prod(x.shape[: base_axis % x.ndim]))


def grad(gy, x, mean, t, base_axis=1, update_running_mean=True):
    return gy * factor(x, t, base_axis), None, None


X = (4, 3, 2)
KEEP = {"update_running_mean": False}
GIVEN = {"need_grad": [True, False, False], "mutates": True}
# Which run of several comes first decides of t.
ONCE = {"second": False, "oracle_grad": False, "reason": "NNabla has no such derivative"}


def t(value: float, *shape: int) -> np.ndarray:
    return np.full(shape, value)


CASES = [
    Case(inputs=[X, (3, 2), t(3.0)], differentiable=False, mutates=True),
    Case(inputs=[X, (2,), t(0.0, 1)], args={"base_axis": 2}, differentiable=False, mutates=True, name="first batch"),
    Case(inputs=[X, (2,), t(5.0)], args={"base_axis": -1}, differentiable=False, mutates=True, name="from the end"),
    Case(inputs=[X, X, t(1.0)], args={"base_axis": 0}, differentiable=False, mutates=True, name="one sample"),
    Case(inputs=[X, (3, 2), t(3.0)], grad=grad, **GIVEN, **ONCE, name="gradient"),
    Case(
        inputs=[X, (3, 2), t(3.0)],
        args=KEEP,
        need_grad=[True, False, False],
        oracle_grad=False,
        reason="NNabla has no such derivative",
        name="kept",
        reshaped=[(5, 3, 2), (3, 2), t(1.0)],
    ),
    Case(inputs=[(0, 3), (3,), t(2.0)], args=KEEP, differentiable=False, name="empty"),
]
ERRORS = [
    Error(inputs=[(4, 3), (1, 3), t(0.0)], match="argument 'mean'", name="mean of two axes"),
    Error(inputs=[(4, 3), (2,), t(0.0)], match="argument 'mean'", name="mean of another size"),
    Error(inputs=[(4, 3), (3,), t(0.0, 2)], match="argument 't'", name="two counts"),
    Error(inputs=[(4, 3), (3,), t(0.0)], args={"base_axis": 2}, match="argument 'base_axis'", name="base_axis"),
]
