"""PythonFunction: NNabla's answers, errors, threads, data and gradients. With fusion on and off."""

from __future__ import annotations

import gc
import json
import threading
import traceback
from collections import UserDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import python_functions as scripts
from cube_function import Cube, X, fusion, leaf, raising, registry, trained  # noqa: F401 - fixtures
from nnrs import NdArray, backward_functions
from nnrs.ext_utils import get_extension_context
from nnrs.function import PythonFunction

GOLDEN = json.loads((Path(__file__).parent / "golden" / "python_function.json").read_text())

# As NNabla


@pytest.mark.parametrize("script", scripts.SCRIPTS, ids=lambda s: s.__name__)
def test_scripts_run_as_on_nnabla(script):
    assert_near(json.loads(json.dumps(scripts.plain(script()))), GOLDEN[script.__name__])


def assert_near(got: Any, expected: Any) -> None:
    """Equal, numbers to a few bits of float32."""
    if isinstance(expected, float):
        assert got == pytest.approx(expected, rel=1e-6)
    elif isinstance(expected, list):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            assert_near(a, b)
    else:
        assert got == expected and type(got) is type(expected)


def test_a_script_that_imports_nnabla():
    from nnrs import compat

    compat.install()
    try:
        scope: dict[str, Any] = {}
        exec("from nnabla.function import PythonFunction\nimport nnabla.backward_functions as bf", scope)
        assert scope["PythonFunction"] is PythonFunction and scope["bf"] is backward_functions
    finally:
        compat.uninstall()


class Twice(PythonFunction):
    """Says nothing of what its gradient reads."""

    @property
    def name(self):
        return "Twice"

    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].data.data = inputs[0].data.data * 2


def test_who_needs_no_gradient_need_not_say_what_it_reads():
    x = nn.Variable.from_numpy_array(np.array([1, 2], np.float32), need_grad=False)
    y = F.exp(Twice()(x)) + 1
    for flags in ({}, {"clear_no_need_grad": True}, {"clear_buffer": True}):
        y.forward(**flags)
        np.testing.assert_allclose(y.d, np.exp([2, 4]) + 1, rtol=1e-6)
    with nn.auto_forward():
        assert Twice()(x).d.tolist() == [2, 4]
    with pytest.raises(NotImplementedError, match="grad_depends_output_data"):
        Twice()(leaf())


def test_the_node():
    y = Cube()(leaf())
    f = y.parent
    assert f.name == f.info.type_name == "Cube" and f.arguments == {} and f.min_outputs() == 1
    assert f.grad_depends_input_data(0, 0) and not f.grad_depends_output_data(0, 0)
    assert "test_python_function.py" in f.origin
    assert f == y.parent and f != Cube()(leaf()).parent
    assert nn.function.PythonFunction is PythonFunction


def test_base_class_needs_no_init():
    class Lazy(Cube):
        def __init__(self):
            self.setup = self.forward = self.backward = None
            self.reads = True

    y = Lazy()(leaf())
    y.forward()
    np.testing.assert_array_equal(y.d, X**3)


def test_setup_may_look_at_the_data():
    seen = []
    Cube(setup=lambda x, y: seen.append((x[0].d.tolist(), y[0].shape)))(leaf())
    assert seen == [(X.tolist(), ())]


# Errors


@pytest.mark.parametrize("method", ["setup", "forward", "backward"])
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, KeyError])
def test_an_exception_comes_out_with_its_traceback_and_the_graph_goes_on(method, kind):
    f, x, error = Cube(), leaf(), kind("mine")
    y = F.sum(F.tanh(f(x * 0.5)) * 2.0)
    expected = trained(y, x)
    setattr(f, method, raising(error))
    if method == "setup":
        x.reset_shape((1, 3), True)
        x.d = X
    with pytest.raises(kind) as caught:
        trained(y, x)
    assert caught.value is error
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)][-2:] == [f"{method}_impl", "stop"]
    setattr(f, method, None)
    again = trained(y, x)
    np.testing.assert_array_equal(again[0], expected[0])
    np.testing.assert_array_equal(again[1].ravel(), expected[1])


def test_an_exception_in_dynamic_mode():
    f, x = Cube(forward=raising(ZeroDivisionError())), leaf()
    with nn.auto_forward(), pytest.raises(ZeroDivisionError):
        f(x)
    with pytest.raises(ZeroDivisionError):
        f(x.data)
    f.forward = None
    np.testing.assert_array_equal(f(x.data).data, X**3)


@pytest.mark.parametrize("call, words", [
    (lambda f: f(), "at least 1 input"),
    (lambda f: f(X), "expected a Variable or NdArray, got ndarray"),
    (lambda f: f([leaf()]), "got list"),
    (lambda f: f(leaf(), n_outputs=0), "n_outputs"),
    (lambda f: f(leaf(), outputs=[NdArray((2,))]), r"shape \(3\)|\(3,\)"),
    (lambda f: f(leaf(), outputs=[]), "1 array"),
])  # fmt: skip
def test_wrong_calls(call, words):
    with pytest.raises((TypeError, ValueError), match=words) as caught:
        call(Cube())
    assert isinstance(caught.value, nn.Error) and "Cube" in str(caught.value)


@pytest.mark.parametrize("method", ["forward", "backward"])
@pytest.mark.parametrize("which", [0, 1], ids=["inputs", "outputs"])
def test_shapes_belong_to_setup(method, which):
    def reshape(*lists):
        lists[which][0].reset_shape((100,), True)

    f, x = Cube(), leaf()
    y = F.sin(f(x * 2.0))
    expected = trained(y, x)
    setattr(f, method, reshape)
    with pytest.raises(nn.Error, match="shape.*setup") as caught:
        trained(y, x)
    assert "(3,)" in str(caught.value) and "(100,)" in str(caught.value)
    setattr(f, method, None)
    for got, value in zip(trained(y, x), expected, strict=True):
        np.testing.assert_array_equal(got, value)


def test_the_graph_cannot_run_itself():
    f, x = Cube(), leaf()
    y = f(x)
    f.forward = lambda inputs, outputs: y.forward()
    with pytest.raises(RuntimeError, match="running"):
        y.forward()
    f.forward = None
    y.forward()
    np.testing.assert_array_equal(y.d, X**3)


# Where it runs


def test_it_runs_on_the_calling_thread_and_may_run_other_graphs():
    seen = []

    def other(inputs, outputs):
        z = F.exp(leaf())
        z.forward()
        seen.append((threading.get_ident(), z.d))
        thread = threading.Thread(target=lambda: (F.sum(leaf()).forward(), seen.append(None)))
        thread.start()
        thread.join()

    x = leaf()
    y = Cube(forward=other, backward=other)(x)
    y.forward()
    y.backward()
    assert len(seen) == 4 and {s[0] for s in seen if s} == {threading.get_ident()}
    np.testing.assert_allclose(seen[1][1] if seen[1] else seen[0][1], np.exp(X), rtol=1e-6)
    np.testing.assert_array_equal(x.g, 3 * X**2)


def test_many_threads_with_functions_of_their_own():
    wrong = []

    def work(k):
        x = leaf(X * k)
        y = F.sum(Cube()(x) * 2.0)
        for _ in range(20):
            _, g = trained(y, x)
            if not np.array_equal(g, 6 * (X * k) ** 2):
                wrong.append(k)
            gc.collect(0)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# Data and gradients


def test_arrays_put_in_the_place_of_others():
    def forward(inputs, outputs):
        outputs[0].data = NdArray.from_numpy_array(inputs[0].d + 1)

    def backward(inputs, outputs):
        inputs[0].grad = NdArray.from_numpy_array(np.full(3, 7, np.float32))

    x = leaf()
    y = Cube(forward=forward, backward=backward)(x)
    y.forward()
    y.backward()
    np.testing.assert_array_equal(y.d, X + 1)
    np.testing.assert_array_equal(x.g, [7, 7, 7])


def test_data_that_the_gradient_says_it_does_not_read_is_made_again_when_it_does():
    x = leaf()
    y = F.sum(Cube(reads=False)(F.tanh(x)))
    for flags in ({}, {"clear_no_need_grad": True}):
        x.g = 0
        y.forward(**flags)
        y.backward()
        t = np.tanh(X)
        np.testing.assert_allclose(x.g, 3 * t**2 * (1 - t**2), rtol=1e-5)


def test_data_that_it_does_not_read_is_dropped_in_forward():
    n = 100_000
    left = []
    for reads in (True, False):
        x = leaf(np.ones(n))
        h = scripts.Reversal() if not reads else Cube()
        y = F.mean(h(h(h(x * 1.0))))
        before = nn.memory.stats().live
        y.forward(clear_no_need_grad=True)
        left.append((nn.memory.stats().live - before) // (4 * n))
    assert left == [3, 0]


@pytest.mark.parametrize("type_config, dtype", [("half", "float16"), ("double", "float64"), ("float", "float32")])
def test_outputs_and_gradients_are_in_the_type_of_the_context(type_config, dtype):
    x = leaf()
    with nn.context_scope(get_extension_context("cpu", type_config=type_config)):
        y = Cube()(x)
    y.forward()
    y.backward()
    assert str(y.d.dtype) == dtype and str(x.g.dtype) == dtype


def test_whole_numbers_stay_whole():
    class Where(Cube):
        def forward_impl(self, inputs, outputs):
            outputs[0].data.data = np.argsort(inputs[0].d).astype(np.int64)

    y = Where()(leaf())
    y.forward()
    assert y.d.dtype == np.int64 and y.d.tolist() == [1, 0, 2]


def test_the_context_of_the_constructor():
    double = get_extension_context("cpu", type_config="double")
    f = Cube(ctx=double)
    assert f.ctx == double and Cube().ctx == nn.get_current_context()
    y = f(leaf())
    assert y.parent.context == double and nn.get_current_context() != double


def test_gradients_of_an_input_given_twice_in_any_order():
    class Swapped(scripts.MyMul):
        def backward_impl(self, inputs, outputs, propagate_down, accum):
            g = [outputs[0].g * inputs[1].d, outputs[0].g * inputs[0].d]
            for i in (1, 0):
                inputs[i].g = inputs[i].g + g[i] if accum[i] else g[i]

    x = leaf()
    h = x * 1.0
    y = Swapped()(h, h)
    np.testing.assert_array_equal(trained(y, x)[1], 2 * X)
    x2 = leaf()
    np.testing.assert_array_equal(trained(Swapped()(x2, x2), x2)[1], 2 * X)


def test_a_view_kept_from_inside_stays_valid():
    kept = []
    y = F.exp(Cube(forward=lambda x, y: kept.append((x[0].d, y[0].data)))(leaf() * 1.0))
    for _ in range(3):
        y.forward(clear_buffer=True)
    for x, y_array in kept:
        np.testing.assert_array_equal(x, X)
        assert y_array.shape == (3,)


# Modes


def test_recompute_runs_forward_again():
    runs = []
    x = leaf()
    h = Cube(forward=lambda x, y: runs.append(1))(F.tanh(x))
    h.recompute = True
    y = F.sum(F.exp(h))
    y.forward(clear_no_need_grad=True)
    assert len(runs) == 1
    y.backward(clear_buffer=True)
    assert len(runs) == 2
    t = np.tanh(X)
    np.testing.assert_allclose(x.g, np.exp(t**3) * 3 * t**2 * (1 - t**2), rtol=1e-5)


def test_arguments_are_those_that_the_class_gives():
    """As in NNabla."""

    class WithArgs(Cube):
        args = {"power": 3}

    class WithOther(Cube):
        args = [1]

    class WithMapping(Cube):
        args = UserDict(power=2)

    class WithError(Cube):
        @property
        def args(self):
            raise ValueError("none")

    found = [kind()(leaf()).parent for kind in (WithArgs, WithMapping, WithOther, WithError, Cube)]
    want = [{"power": 3}, {"power": 2}, {}, {}, {}]
    assert [(f.info.args, f.args, f.arguments) for f in found] == [(args,) * 3 for args in want]
    found[0].info.args["power"] = 5
    assert WithArgs.args == {"power": 3}


class Four(Cube):
    """Gives one number to all elements."""

    def __init__(self, give):
        super().__init__(reads=False)
        self.give = give

    def forward_impl(self, inputs, outputs):
        self.give(outputs[0])

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = 0


@pytest.mark.parametrize("kind", ["half", "bfloat16", "float", "double"])
@pytest.mark.parametrize(
    "give, number",
    [
        (lambda y: setattr(y, "d", 4.0), 4),
        (lambda y: y.data.fill(4), 4),
        (lambda y: setattr(y, "d", np.full(y.shape, 4.0)), 4),
        (lambda y: setattr(y, "d", 0), 0),
    ],
    ids=["number", "fill", "array", "zero"],
)
def test_recompute_of_a_number_for_all_elements(kind, give, number):
    """It is the same whether it is kept as one number or as memory, and in the type of the context."""
    with nn.context_scope(get_extension_context("cpu", type_config=kind)):
        x = leaf()
        with nn.recompute():
            h = Four(give)(F.tanh(x)) * F.sin(x)
        y = F.sum(F.exp(h))
        for _ in range(2):
            y.forward(clear_no_need_grad=True)
            x.grad.zero()
            y.backward(clear_buffer=True)
        want = np.exp(number * np.sin(X)) * number * np.cos(X)
        np.testing.assert_allclose(np.float64(np.asarray(x.g, "float32")), want, rtol=5e-2, atol=1e-2)


def test_recompute_scope_and_dynamic_mode():
    for scope in (nn.recompute, nn.auto_forward):
        x = leaf()
        with scope():
            y = F.sum(Cube()(F.tanh(x)) * 2.0)
        if scope is nn.recompute:
            y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)
        t = np.tanh(X)
        np.testing.assert_allclose(x.g, 6 * t**2 * (1 - t**2), rtol=1e-5)


def test_hooks_and_visits_see_it():
    names: list[str] = []
    y = F.exp(Cube()(leaf()))
    y.forward(function_pre_hook=lambda f: names.append(f.name))
    y.backward(function_post_hook=lambda f: names.append(f.name))
    y.visit(lambda f: names.append(f.name))
    assert names == ["Cube", "Exp", "Exp", "Cube", "Cube", "Exp"]


class Saving(Cube):
    """Reads in backward what it kept in forward, and says that it reads nothing."""

    def __init__(self, keep):
        super().__init__(reads=False)
        self.keep = keep

    def forward_impl(self, inputs, outputs):
        super().forward_impl(inputs, outputs)
        self.kept = self.keep(inputs[0])

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        x = self.kept.d if isinstance(self.kept, nn.Variable) else self.kept.data
        inputs[0].g = 3 * x**2 * outputs[0].g


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("keep", [lambda v: v, lambda v: v.data], ids=["variable", "array"])
def test_what_a_function_keeps_of_a_run_stays(keep, held):
    x = leaf()
    h = F.sin(x)
    y = F.exp(Saving(keep)(h)) * 2
    if not held:
        del h
    s = np.sin(X.astype("float64"))
    for _ in range(2):
        x.g = 0
        y.forward()
        y.backward()
        np.testing.assert_allclose(x.g, 2 * np.exp(s**3) * 3 * s**2 * np.cos(X), rtol=1e-5)
