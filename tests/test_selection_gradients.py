"""Gradients that choose a side, in every type: it is the side that forward chose, however the result is rounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import function_harness as h
import nnrs as nn
import nnrs.functions as F

TYPES = ["float", "half", "bfloat16", "double"]
BOUNDS = [0.1, 0.3, 0.52346, 0.7, 0.9, 1.1, 3.7, -0.3, 0.0, 0.5, 1.0, 1e-9, 7e4]


@pytest.fixture(autouse=True, params=[True, False], ids=["fused", "single"])
def fusion(request):
    old = nn.set_fusion(request.param)
    yield
    nn.set_fusion(old)


def gradient(f: Callable[[Any], Any], values: Any, type_config: str) -> np.ndarray:
    with h.scope(type_config):
        x = nn.Variable.from_numpy_array(h.rounded(np.asarray(values, np.float64), type_config), need_grad=True)
        x.g = 0
        y = f(F.mul_scalar(x, 1.0))  # something to be fused with
        y.forward()
        y.backward()
        return np.array(x.g, np.float64)


def around(bound: float) -> np.ndarray:
    return bound + np.array([-2.0, -0.25, 0.25, 2.0]) * max(abs(bound), 0.5)


@pytest.mark.parametrize("type_config", TYPES)
@pytest.mark.parametrize("bound", BOUNDS)
def test_minimum_and_maximum_with_a_number(bound, type_config):
    x = h.rounded(around(bound), type_config).astype(np.float64)
    np.testing.assert_array_equal(gradient(lambda v: F.minimum_scalar(v, bound), x, type_config), x < bound)
    np.testing.assert_array_equal(gradient(lambda v: F.maximum_scalar(v, bound), x, type_config), x > bound)


@pytest.mark.parametrize("type_config", TYPES)
def test_clip_by_value(type_config):
    """The values of the oracle (NNabla 1.39 on cpu:half): [1, 0] for 0 and 2."""
    got = gradient(lambda v: F.clip_by_value(v, -0.52, 0.52346), [0.0, 2.0, -2.0], type_config)
    np.testing.assert_array_equal(got, [1, 0, 0])


# Where y, the slope times the smallest number of half, is rounded to 0, the side is still that of x.
TINY = 2.0**-24
SIDES = {
    "elu": (lambda v: F.elu(v, alpha=0.3), [-TINY, TINY], [0.3, 1.0]),
    "selu": (lambda v: F.selu(v, scale=0.3), [-TINY, TINY], [0.3 * 1.673263242354377, 0.3]),
    "celu": (lambda v: F.celu(v, alpha=0.3, axis=0), [-TINY, TINY], [-0.7, 0.7]),
    "leaky_relu": (lambda v: F.leaky_relu(v, alpha=0.3), [-TINY, TINY], [0.3, 1.0]),
}


@pytest.mark.parametrize("name", SIDES)
def test_activations_of_the_smallest_numbers(name):
    """NNabla's values, 0.300048828125 and the like."""
    f, x, expected = SIDES[name]
    for type_config in TYPES:
        np.testing.assert_allclose(gradient(f, x, type_config), expected, rtol=1e-2)
