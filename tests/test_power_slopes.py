"""Slopes of powers at zeros and infinities: those of C's `pow`, whatever operation a power is computed by."""

from __future__ import annotations

import numpy as np
import pytest

import function_harness as h
import nnrs as nn
import nnrs.functions as F

X = np.array([0.0, -0.0, np.inf, -np.inf, 4.0, -4.0, np.nan])


@pytest.fixture(autouse=True, params=[True, False], ids=["fused", "single"])
def fusion(request):
    old = nn.set_fusion(request.param)
    yield
    nn.set_fusion(old)


def power(kind: str, x: nn.Variable, exponent: float) -> nn.Variable:
    if kind == "pow_scalar":
        return F.pow_scalar(x, exponent)
    return F.pow2(x, nn.Variable.from_numpy_array(np.full(x.shape, exponent)))


def expected(kind: str, exponent: float, order: int) -> np.ndarray:
    factor = np.prod([exponent - k for k in range(order)])
    with np.errstate(all="ignore"):
        y = factor * np.float_power(X, exponent - order)
    if kind == "pow_scalar" and exponent == 0.5:
        y[np.isneginf(X)] = np.nan  # as the square root itself
    return y


@pytest.mark.parametrize("type_config", ["float", "double"])
@pytest.mark.parametrize("exponent", [0.5, 1.5, 2.5, 3.0, 4.5, -0.5, -1.0])
@pytest.mark.parametrize("kind", ["pow_scalar", "pow2"])
def test_slopes_at_the_edges(kind, exponent, type_config):
    with h.scope(type_config):
        x = nn.Variable.from_numpy_array(X, need_grad=True)
        y = power(kind, x, exponent)
        first = nn.grad([y], [x])[0]
        second = nn.grad([first], [x])[0]
        y.forward()
        x.g = 0
        y.backward()
        second.forward()
        first.forward()
        for got, order in ((x.g, 1), (first.d, 1), (second.d, 2)):
            np.testing.assert_allclose(got, expected(kind, exponent, order), rtol=1e-5, err_msg=f"{order}")
