"""Hooks that raise or recurse, and graphs whose objects are tampered with."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import leaf
from nnrs import NdArray, Variable

pytestmark = pytest.mark.usefixtures("still_works")


def var(*shape) -> Variable:
    return leaf(np.ones(shape))


def test_a_hook_that_raises_anything():
    x = leaf([0.5, -1.0])
    y = F.sin(F.tanh(x))
    for error in (
        ValueError("v"),
        KeyError(),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        RecursionError(),
        StopIteration(),
    ):

        def hook(f, error=error):
            raise error

        for run in (y.forward, y.backward):
            with pytest.raises(type(error)) as e:
                run(function_post_hook=hook)
            assert e.value is error
        error.__traceback__ = None
    x.g = 0
    y.forward()
    y.backward()
    np.testing.assert_allclose(x.g, np.cos(np.tanh([0.5, -1])) * (1 - np.tanh([0.5, -1]) ** 2), rtol=1e-5)


def test_a_hook_that_recurses_without_end():
    y = F.sin(F.tanh(leaf([0.5])))

    def hook(f):
        z = F.tanh(f.inputs[0])
        z.forward(function_pre_hook=hook)

    old = sys.getrecursionlimit()
    sys.setrecursionlimit(min(old, 200))
    try:
        with pytest.raises((RecursionError, RuntimeError)):
            y.forward(function_pre_hook=hook)
    finally:
        sys.setrecursionlimit(old)
    y.forward()


def test_a_mutated_argument_does_not_change_the_graph():
    shape = [3, 2]
    x = leaf(np.arange(6))
    y = F.reshape(x, shape)
    shape[0] = 99
    arguments = y.parent.arguments
    arguments["shape"] = [1]
    y.forward()
    assert y.shape == (3, 2) and y.parent.arguments["shape"] == [3, 2]


def test_objects_cannot_be_broken_from_python():
    x = var(3)
    y = F.tanh(x)
    for wrong in (
        lambda: type(y.parent)(),
        lambda: nn._core.call(10**9, (x,), ()),
        lambda: nn._core.call(-1, (x,), ()),
    ):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            wrong()
    for wrong in (((), ()), ((x, x, x, x), ()), ((x,), (1, 2, 3, 4)), ((None,), ()), ((x,), ([],))):
        try:
            nn._core.call(nn._core.function_index("tanh"), *wrong)
        except (TypeError, ValueError) as e:
            assert "internal" not in str(e)
    for cls in (Variable, NdArray):
        empty = cls.__new__(cls)
        repr(empty), empty.shape
