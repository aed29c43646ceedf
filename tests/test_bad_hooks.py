"""Hooks that raise or recurse, and graphs whose objects are tampered with."""

from __future__ import annotations

import contextlib
import sys
import threading

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import leaf
from nnrs import NdArray, Variable
from python_functions import OneToOne

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


def test_a_hook_that_recurses_below_a_high_limit():
    x = leaf([0.5])

    def hook(f):
        F.sin(x).forward(function_pre_hook=hook)

    old = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with pytest.raises(nn.Error, match="in the middle of each other"):
            F.sin(x).forward(function_pre_hook=hook)
    finally:
        sys.setrecursionlimit(old)


@pytest.mark.parametrize("size", [512 << 10, 2 << 20])
def test_a_python_function_that_runs_itself_on_a_small_stack(size):
    class Nested(OneToOne):
        def forward_impl(self, inputs, outputs):
            Nested()(leaf([0.5])).forward()

        def backward_impl(self, inputs, outputs, propagate_down, accum):
            pass

    found = []

    def work():
        try:
            Nested()(leaf([0.5])).forward()
        except (nn.Error, RecursionError) as e:
            found.append(e)

    old = threading.stack_size(size)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(old)
    assert len(found) == 1


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


SHAPES = {"bigger": (300, 3), "smaller": (2, 2), "same size": (3, 10)}
RUNS = {
    "forward, before": (lambda y, hook: y.forward(function_pre_hook=hook)),
    "forward, after": (lambda y, hook: y.forward(function_post_hook=hook)),
    "backward, before": (lambda y, hook: (y.forward(), y.backward(function_pre_hook=hook))),
    "backward, after, cleared": (
        lambda y, hook: (y.forward(clear_no_need_grad=True), y.backward(clear_buffer=True, function_post_hook=hook))
    ),
}
FUNCTIONS = {
    "tanh": F.tanh,
    "softmax": F.softmax,
    "reshape": lambda v: F.reshape(v, (-1, 10)),
    "affine": lambda v: F.affine(v, nn.Variable.from_numpy_array(np.ones((3, 4), "float32"))),
    "transpose": lambda v: F.transpose(v, (1, 0)),
    "norm": lambda v: F.batch_normalization(v, None, None, None, None, axes=[1]),
    "concatenate": lambda v: F.concatenate(v, v, axis=0),
}


@pytest.mark.parametrize("place", ["x", "h", "y", "z"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_shapes_changed_in_a_hook_are_an_error_or_right(function, run, shape, place):
    x = nn.Variable.from_numpy_array(np.linspace(-1, 1, 30, dtype="float32").reshape(10, 3), need_grad=True)
    h = F.exp(F.softmax(x))
    y = FUNCTIONS[function](h)
    z = F.sum(F.softmax(F.tanh(y)) * y)
    z.forward()
    expected = z.d.copy()
    variables = {"x": x, "h": h, "y": y, "z": z}
    with contextlib.suppress(nn.Error):
        RUNS[run](z, lambda f: variables[place].reset_shape(SHAPES[shape], force=True))
    x.reset_shape((10, 3), force=True)
    x.d = np.linspace(-1, 1, 30, dtype="float32").reshape(10, 3)
    z.forward()
    np.testing.assert_array_equal(z.d, expected)
    z.backward()


def test_shapes_changed_by_another_thread_are_an_error_or_right():
    x = nn.Variable.from_numpy_array(np.full((100, 30), 0.5, "float32"), need_grad=True)
    h = F.exp(x)
    y = F.sum(F.softmax(F.tanh(h)) + h)
    stop = threading.Event()

    def reshape():
        while not stop.is_set():
            h.reset_shape((1000, 30), force=True)
            h.reset_shape((100, 30), force=True)

    other = threading.Thread(target=reshape)
    other.start()
    try:
        for _ in range(200):
            with contextlib.suppress(nn.Error):
                y.forward()
                y.backward()
    finally:
        stop.set()
        other.join()
    y.forward()
    np.testing.assert_allclose(y.d, 100 * (30 * np.exp(0.5) + 1), rtol=1e-4)
