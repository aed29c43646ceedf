"""What was not kept is computed again from what its function has read; where that has changed it is an error.

Every test runs with fusion on and off: off, more is kept, and is there. Expected values are NumPy formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf
from nnrs import Variable
from python_functions import OneToOne

pytestmark = pytest.mark.usefixtures("fusion")

E = np.exp(X)
OTHER = np.array([1.5, 0.3, 0.7], "float32")


def right_or_changed(read: Callable[[], Any], expected: Any) -> bool:
    """Compares what is read; False if the error says that it cannot be computed again."""
    try:
        value = read()
    except RuntimeError as e:
        assert isinstance(e, nn.Error) and "changed since forward" in str(e) and "persistent" in str(e)
        return False
    close(value, expected)
    return True


def first_input(v: Variable) -> Variable:
    return v.parent.inputs[0]


# A run that writes what it has read


def test_an_array_assigned_after_it_was_read():
    e = leaf(X, need_grad=False)
    n = F.exp(e)
    y = F.sin(n * 2 + F.assign(e, leaf(OTHER)))
    y.forward()
    close(first_input(y).d, 2 * E + OTHER)
    F.sum(n).forward()  # of the new numbers
    right_or_changed(lambda: first_input(y).d, 2 * E + OTHER)
    close(n.d, np.exp(OTHER))


def test_a_shared_array_that_is_made_after_it_was_read():
    x = leaf(X)
    v = F.elu(x)
    u = v.get_unlinked_variable()
    v.forward()
    t = F.tanh(u)
    y = F.sin(t + F.exp(v))
    elu = np.where(X > 0, X, np.expm1(X))
    x.d = OTHER
    y.forward()  # the tangent comes first: of the old numbers
    expected = np.tanh(elu) + np.exp(OTHER)
    close(y.d, np.sin(expected))
    t.forward()
    right_or_changed(lambda: first_input(y).d, expected)
    close(t.d, np.tanh(OTHER))


def test_an_array_of_another_variable_that_was_written_between():
    e, n = leaf(X), leaf(X)
    e.data = n.data
    h = F.exp(e)
    y = F.sin(F.tanh(h) * 2)
    y.forward()
    n.d = OTHER
    F.sum(h).forward()
    right_or_changed(lambda: first_input(y).d, 2 * np.tanh(E))


def test_a_leaf_that_was_written_between_functions_that_ran_at_once():
    x = leaf(X)
    with nn.auto_forward():
        n = F.exp(x)
        x.d = OTHER
        y = F.sin(n * 2)
    F.sum(n).forward()
    right_or_changed(lambda: first_input(y).d, 2 * E)


def test_a_leaf_that_was_cleared():
    x = leaf(X)
    y = F.sin(F.tanh(F.exp(x)))
    y.forward()
    x.data.clear()
    right_or_changed(lambda: first_input(y).d, np.tanh(E))


# Other roots that run the same functions


@pytest.mark.parametrize("clear", [False, True])
def test_another_root_makes_the_same_again(clear):
    x, w = leaf(X), leaf(OTHER)
    h = F.exp(x)
    y, z = F.sin(F.cos(h) * 3), F.sum(F.tanh(h) * w)
    del h
    y.forward()
    z.forward(clear_buffer=clear)
    w.d = OTHER * 2  # of no account for y
    z.forward(clear_buffer=clear)
    inner = first_input(y)
    close(inner.d, 3 * np.cos(E))
    close(first_input(inner).d, np.cos(E))
    close(first_input(first_input(inner)).d, E)
    y.backward()
    e = np.exp(X.astype(float))
    np.testing.assert_allclose(x.g, np.cos(3 * np.cos(e)) * 3 * -np.sin(e) * e, rtol=1e-5)


def test_another_root_makes_it_of_other_numbers():
    x = leaf(X)
    h = F.exp(x)
    y, z = F.sin(F.cos(h) * 3), F.sum(h)
    y.forward()
    x.d = OTHER
    z.forward()
    right_or_changed(lambda: first_input(y).d, 3 * np.cos(E))
    y.forward()
    close(first_input(y).d, 3 * np.cos(np.exp(OTHER)))


def test_a_run_that_fails_on_the_way_is_no_run_of_the_functions_behind():
    def fail(f: Any) -> None:
        if f.name == "Cos":
            raise KeyError("stop")

    x = leaf(X)
    h = F.exp(x)
    c = F.cos(h)
    y = F.sin(c * 3)
    y.forward()
    x.d = OTHER
    with pytest.raises(KeyError):
        F.sum(F.cos(F.tanh(c))).forward(function_pre_hook=fail)
    right_or_changed(lambda: first_input(y).d, 3 * np.cos(E))
    y.forward()
    close(first_input(y).d, 3 * np.cos(np.exp(OTHER)))


def test_numbers_that_are_drawn_again_are_others():
    x = leaf(np.ones(100))
    h = F.dropout(x, 0.5)
    y, z = F.exp(F.tanh(h * 2)), F.sum(h)
    y.forward()
    expected = np.log(y.d)
    z.forward()
    right_or_changed(lambda: first_input(y).d, expected)


# Backward


def gradient(y: Variable, x: Variable) -> Callable[[], Any]:
    def read() -> Any:
        y.backward()
        return x.g

    return read


CHANGES: dict[str, Callable[[Variable], Any]] = {
    "d": lambda x: setattr(x, "d", OTHER),
    "data": lambda x: setattr(x, "data", nn.NdArray.from_numpy_array(OTHER)),
    "fill": lambda x: x.data.fill(3),
    "zero": lambda x: x.data.zero(),
    "clear": lambda x: x.data.clear(),
    "in place": lambda x: x.d.fill(3),
}


@pytest.mark.parametrize("change", CHANGES)
def test_backward_after_a_leaf_changed(change):
    x, w = leaf(X), leaf(X)
    y = F.sum(F.sin(F.exp(x)) + F.sum(F.sin(w)))
    y.forward()
    x.g = w.g = 1
    CHANGES[change](x)
    # With fusion, exp is not kept; else sin's backward reads what it has read, as NNabla's does.
    if not right_or_changed(gradient(y, x), 1 + np.cos(E) * E):
        assert (x.g == 1).all() and (w.g == 1).all()  # nothing was written
    if change != "clear":
        y.forward()
        x.g = 0
        y.backward()
        close(x.g, np.cos(np.exp(x.d)) * np.exp(x.d))


def test_backward_reads_leaves_as_they_are_where_its_functions_do():
    x, w = leaf(X), leaf(OTHER)
    y = F.sum(x * w)
    y.forward()
    x.g = w.g = 0
    w.d = OTHER * 2
    y.backward()
    close(x.g, OTHER * 2)
    close(w.g, X)


def test_backward_with_what_is_held():
    x = leaf(X)
    h = F.exp(x)
    y = F.sum(F.sin(h))
    y.forward()
    x.d = OTHER
    x.g = 0
    y.backward()
    close(x.g, np.cos(E) * E)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize(
    "make", [lambda h, w: F.sin(h * 2) + w, lambda h, w: F.add2(h * h * h, w), lambda h, w: F.sin(h * 0.3) * h + w]
)
def test_an_error_of_backward_comes_before_it_writes(make, clear):
    """What is held has run again, so that what was made of its old value is gone."""
    x, w = leaf(X), leaf(X)
    h = F.exp(x)
    y = make(h, w)
    y.forward()
    x.d = OTHER
    h.forward()
    x.g = w.g = 0
    try:
        y.backward(clear_buffer=clear)
    except nn.Error as e:
        assert "changed since forward" in str(e) and not w.g.any() and not x.g.any()


def test_an_error_of_backward_about_what_the_script_has_cleared_comes_before_it_writes():
    x = leaf(X)
    h = F.exp(x)
    y = F.sum(h) + F.sum(x)
    y.forward()
    h.data.clear()
    x.d = 0
    x.g = 7
    with pytest.raises(nn.Error, match="changed since forward"):
        y.backward()
    assert (x.g == 7).all()


@pytest.mark.parametrize("outer", [F.max, F.min])
def test_what_forward_kept_stays_for_a_function_that_runs_again_for_what_it_saves(outer):
    x = leaf([X, X[::-1]])
    zero, one = F.constant(0, (1, len(X))), F.constant(1, (1, len(X)))
    h = outer(F.batch_normalization(x, zero, one, zero, one), axis=1)
    h.recompute = True
    y = F.sum(F.sin(h)) + F.sum(x)
    del h
    y.forward(clear_buffer=True)
    x.d = 3
    x.g = 7
    y.backward(
        clear_buffer=True
    )  # what a function saves beside a value that is made again is made of what forward kept
    assert np.isfinite(x.g).all() and (x.g != 7).all()


def test_backward_after_looking_at_a_leaf():
    x = leaf(X)
    view = x.d
    y = F.sum(F.sin(F.exp(x)))
    y.forward()
    again = x.d  # views that could write, and do not
    x.g = 0
    y.backward()
    close(x.g, np.cos(E) * E)
    assert (view == again).all()
    view[...] = OTHER
    x.g = 0
    right_or_changed(gradient(y, x), np.cos(E) * E)


def test_backward_after_a_run_wrote_what_it_had_read():
    w, x = leaf(X), leaf(OTHER)
    c = w * x
    y = F.sum(F.sin(F.tanh(c) + F.assign(w, w * 0.5)))
    y.forward()
    c.forward()  # of the new numbers
    x.g = 0
    tanh = np.tanh(X * OTHER)
    # NNabla: the tangent as it was, the factor as it is now.
    right_or_changed(gradient(y, x), np.cos(tanh + X / 2) * (1 - tanh**2) * X / 2)


def test_backward_of_one_loss_after_the_step_of_another():
    x, a, b = leaf(X), leaf(X), leaf(OTHER)
    one, two = F.sum(F.sin(F.exp(x * a))), F.sum(F.sin(F.exp(x * b)))
    one.forward()
    two.forward()
    a.g = b.g = 0
    one.backward()
    a.d = OTHER  # a solver's update: two has no part in it
    two.backward()
    e = np.exp(X * OTHER)
    close(b.g, np.cos(e) * e * X)


# Hooks that get hold of a variable


@pytest.mark.parametrize("which", ["function_pre_hook", "function_post_hook"])
def test_a_variable_that_a_hook_of_forward_keeps_has_its_value(which):
    kept: list[Variable] = []
    x = leaf(X)
    y = F.sin(F.exp(x) * 2)
    y.forward(**{which: lambda f: kept.append(f.outputs[0])}, clear_no_need_grad=True)
    for v, expected in zip(kept, [E, 2 * E, np.sin(2 * E)], strict=True):
        close(v.d, expected)


def test_a_variable_that_a_hook_of_backward_keeps_has_its_gradient():
    kept: list[Variable] = []
    x = leaf(X)
    y = F.sin(F.exp(F.reshape(x, (1, 3))) * 2)
    for factor in (1, 3):  # from now on by a plan that knows of them
        y.forward()
        x.g = 0
        y.backward(factor, function_post_hook=lambda f: kept.append(f.inputs[0]))
        outer = np.cos(2 * E) * factor
        close(x.g, outer * 2 * E)
        for v, expected in zip(kept, [outer, outer * 2, outer * 2 * E, outer * 2 * E], strict=True):
            close(v.g.ravel(), expected)
        kept.clear()


# Solvers


def test_a_gradient_that_backward_cleared_is_no_gradient_for_a_solver():
    w, p = leaf(X), leaf(X)
    h = F.exp(w)
    y = F.sum(F.sin(h))
    p.grad = h.grad
    solver = nn.solvers.Sgd(lr=0.1)
    solver.set_parameters({"p": p})
    y.forward()
    y.backward()
    solver.update()
    close(p.d, X - 0.1 * np.cos(E))
    for _ in range(2):
        before = p.d.copy()
        y.forward()
        y.backward(clear_buffer=True)
        with pytest.raises(nn.Error, match="not kept by backward"):
            solver.update()
        assert (p.d == before).all()


# What changes nothing, and what does unnoticed


def copied() -> tuple[Variable, ...]:
    """x, its tangent, an unlinked copy of that, a function of the copy, and another root over the tangent."""
    x = leaf(X)
    h = F.tanh(x)
    u = h.get_unlinked_variable(need_grad=True)
    h.forward()
    u.g = 0
    return x, h, u, F.sum(F.sin(F.exp(u))), F.mean(h)


def test_an_unlinked_copy_of_what_another_root_makes_again():
    x, _, u, y, other = copied()
    y.forward()
    other.forward()
    y.backward()
    e = np.exp(np.tanh(X))
    close(u.g, np.cos(e) * e)
    x.d = OTHER
    other.forward()
    u.g = 0
    right_or_changed(gradient(y, u), np.cos(e) * e)


def test_an_unlinked_copy_of_what_the_script_has_written():
    _, h, u, y, other = copied()
    h.d = OTHER
    y.forward()
    other.forward()  # the tangent again
    right_or_changed(gradient(y, u), np.cos(np.exp(OTHER)) * np.exp(OTHER))


def test_numbers_that_one_root_draws_again_beside_functions_that_ran_at_once():
    h = F.dropout(leaf(np.ones(100)), 0.5)
    for _ in range(3):
        h.forward()
        with nn.auto_forward():
            k = F.exp(F.tanh(h * 2))
        expected = np.tanh(h.d * 2)
        h.forward()
        right_or_changed(lambda: first_input(k).d, expected)  # noqa: B023 - called at once


@pytest.mark.parametrize("batch_stat", [True, False])
def test_batch_normalization_beside_another_root(batch_stat):
    x = leaf([[1, 2], [3, 5], [4, 4]])
    statistics = [leaf([[v, v]], need_grad=False) for v in (0.1, 1, 0.5, 2)]
    h = F.batch_normalization(x, *statistics, batch_stat=batch_stat, eps=0)
    h = F.batch_normalization(F.relu(h), *statistics, batch_stat=batch_stat, eps=0)  # of the same statistics
    y, other = F.sum(F.exp(F.tanh(h))), F.mean(h)
    y.forward()
    x.g = 0
    y.backward()
    alone = x.g.copy()
    y.forward()
    other.forward()
    x.g = 0
    y.backward()
    close(x.g, alone)  # which other tests hold against formulas
    del h
    y.forward()
    other.forward()
    assert first_input(first_input(y)).d.shape == (3, 2)


class Counted(nn.function.PythonFunction):
    """Adds the number of its calls, times a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.calls, self.factor = 0, factor

    name = "Counted"

    def min_outputs(self) -> int:
        return 1

    def grad_depends_input_data(self, i: int, j: int) -> bool:
        return False

    def grad_depends_output_data(self, i: int, o: int) -> bool:
        return False

    def setup_impl(self, inputs: Any, outputs: Any) -> None:
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: Any, outputs: Any) -> None:
        self.calls += 1
        outputs[0].d = inputs[0].d + self.calls * self.factor

    def backward_impl(self, inputs: Any, outputs: Any, propagate_down: Any, accum: Any) -> None:
        inputs[0].g = outputs[0].g + (inputs[0].g if accum[0] else 0)


@pytest.mark.parametrize("factor", [0, 1])
def test_user_code_that_makes_something_else_each_time(factor):
    x = leaf(X)
    p = Counted(factor)(x)
    y, other = F.sum(F.sin(F.exp(p) * 0.1)), F.mean(p)
    y.forward()
    other.forward()
    e = np.exp(X + factor)
    was_read = right_or_changed(lambda: first_input(first_input(first_input(y))).d, e)
    x.g = 0
    was_run = right_or_changed(gradient(y, x), np.cos(e * 0.1) * 0.1 * e)
    assert factor or (was_read and was_run)  # what makes the same can be made again


def test_a_hook_that_writes_by_a_view():
    def clip(f: Any) -> None:
        if f.name == "Exp":
            np.clip(f.outputs[0].d, 0, 1, out=f.outputs[0].d)

    x = leaf(X)
    y = F.sum(F.cos(F.sin(F.exp(x)) * 2))
    y.forward(function_post_hook=clip)
    s = first_input(first_input(first_input(y)))
    close(first_input(s).d, np.minimum(E, 1))
    close(s.d, np.sin(np.minimum(E, 1)))


def test_training_on_a_graph_whose_parts_others_run_too():
    """A metric beside the loss in each step: nothing is refused, and the numbers are those of the loss alone."""

    def trained(metric: bool) -> Any:
        x, w = leaf(np.linspace(-1, 1, 12).reshape(4, 3)), leaf(np.full((3, 2), 0.3))
        h = F.tanh(F.affine(x, w))
        loss, other = F.mean(F.exp(F.sin(h) * 2)), F.mean(F.abs(h))
        del h
        for step in range(5):
            x.d = np.linspace(-1, 1, 12).reshape(4, 3) * (step + 1)
            loss.forward()
            if metric:
                other.forward(clear_buffer=True)
            w.g = 0
            loss.backward()
            w.d = w.d - 0.1 * w.g
        return w.d

    assert (trained(True) == trained(False)).all()


@pytest.mark.parametrize("hold", [False, True])
def test_a_gradient_that_leads_nowhere_is_there_for_who_holds_the_variable(hold):
    x, e = leaf(X), leaf(X, need_grad=False)
    a = F.assign(e, F.tanh(x))
    y = F.sum(F.sin(a * 2))
    kept = a if hold else None
    del a
    y.forward()
    y.backward()
    a = first_input(first_input(first_input(y)))
    if kept is None:
        with pytest.raises(nn.Error, match="not kept by backward"):
            print(a.g)
    else:
        close(a.g, np.cos(2 * np.tanh(X)) * 2)


# What was not written has not changed


class Sine(OneToOne):
    """Writes its output in a way of its own."""

    name = "Sine"
    reads = True

    def __init__(self, write):
        super().__init__(nn.Context(["cpu:float"]))
        self.write = write

    def forward_impl(self, inputs, outputs):
        self.write(outputs[0], np.sin(inputs[0].d))

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = outputs[0].g * np.cos(inputs[0].d) + inputs[0].g * accum[0]


def by_parts(y, values):
    for i, v in enumerate(values):
        y.d[i] = v


WAYS = {
    "data": lambda y, v: setattr(y, "d", v),
    "a view": lambda y, v: y.d.__setitem__(..., v),
    "a view of the array": lambda y, v: y.data.data.__setitem__(..., v),
    "parts": by_parts,
    "out": lambda y, v: np.copyto(y.d, v),
}


@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}], ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_a_python_function_that_writes_by_views(way, flags):
    x = leaf(X)
    p = Sine(WAYS[way])(x)
    y = F.sum(F.sin(F.exp(p)))
    e = np.exp(np.sin(X))
    for _ in range(2):
        x.grad.zero()
        y.forward(**flags)
        close(y.parent.inputs[0].parent.inputs[0].d, e)
        y.backward(clear_buffer=bool(flags))
        close(x.g, np.cos(e) * e * np.cos(X))
    assert p.shape == x.shape


def test_an_unlinked_copy_beside_the_readers_of_the_original():
    x = leaf(X)
    a = F.sin(x)
    m = a * 2
    y = F.exp(m + 0.3)
    y.forward()
    u = a.get_unlinked_variable(need_grad=True)
    other = F.sigmoid(u) + m
    other.forward()
    close(first_input(y).d, np.sin(X) * 2 + np.float32(0.3))
    y.forward()
    x.d = OTHER
    other.forward()
    assert not right_or_changed(lambda: first_input(y).d, np.sin(X) * 2 + np.float32(0.3))


def test_looking_at_a_value_of_auto_forward_is_no_change():
    x = leaf(X)
    with nn.auto_forward():
        h = F.elu(x)
        assert h.d.shape == x.shape
        k = F.tanh(h)
        h.forward()
        y = F.softmax(k)
        y.backward(clear_buffer=True)
        close(k.d, np.tanh(np.where(X > 0, X, np.expm1(X))))


# Code of the script that runs in the middle of a run changes what lies behind what it wrote, and nothing else.


class Half(OneToOne):
    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d * 0.5

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = outputs[0].g * 0.5 + accum[0] * inputs[0].g


class Centred(Half):
    """Writes a statistic, its second input."""

    def forward_impl(self, inputs, outputs):
        inputs[1].d = 0.9 * inputs[1].d + 0.1 * inputs[0].d
        outputs[0].d = inputs[0].d - 1

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = outputs[0].g + accum[0] * inputs[0].g


def looks(f):
    """A hook that reads, through a view that could write."""
    assert not np.isnan(f.outputs[0].d).any()


def test_an_unlinked_copy_in_a_run_with_user_code():
    x = leaf(X)
    x.g = 0
    p = Half()(x)
    y = F.tanh(F.exp(F.sin(p)))
    loss = F.sum(y * y.get_unlinked_variable(need_grad=False))
    loss.forward()
    F.mean(p).forward()
    loss.backward()
    e = np.exp(np.sin(X / 2))
    close(x.g, np.tanh(e) * (1 - np.tanh(e) ** 2) * e * np.cos(X / 2) / 2)


@pytest.mark.parametrize("user_code", ["function", "hook"])
@pytest.mark.parametrize("held", [False, True])
def test_leaves_fed_by_views_before_runs_with_user_code(user_code, held):
    x = leaf(X)
    view = x.d if held else None
    p = F.exp(x)
    with nn.recompute():
        b = F.tanh(F.sin(p))
    loss = F.sum(Half()(b) if user_code == "function" else b * 0.5)
    for v in 0.5, 0.6:
        (view if held else x.d)[...] = v
        loss.forward(**({"function_post_hook": looks} if user_code == "hook" else {}))
        F.mean(p).forward()
        x.g = 0
        loss.backward()
        e = np.full_like(X, np.exp(v))
        close(x.g, 0.5 * (1 - np.tanh(np.sin(e)) ** 2) * np.cos(e) * e)


def test_a_held_value_that_was_cleared_in_a_run_with_hooks():
    x = leaf(X)
    h = F.exp(x)
    k = F.sin(h)
    y = F.tanh(k)
    y.forward()
    x.d[...] = 0.5
    y.forward(clear_buffer=True, function_post_hook=looks)
    F.cos(h).forward()
    close(k.d, np.full_like(X, np.sin(np.exp(0.5))))


def test_user_code_that_writes_another_leaf():
    x, m = leaf(X), leaf(X, need_grad=False)
    x.g = 0
    a = F.sin(x)
    y = Centred()(F.sin(F.exp(F.tanh(a))), m)
    loss = F.sum(y * y)
    loss.forward()
    F.mean(F.cos(a)).forward()
    loss.backward()
    t = np.tanh(np.sin(X))
    e = np.exp(t)
    close(x.g, 2 * (np.sin(e) - 1) * np.cos(e) * e * (1 - t**2) * np.cos(X))


def test_a_hook_that_writes_a_leaf_changes_what_reads_it():
    x, s = leaf(X), leaf(np.ones(1), need_grad=False)
    a = F.exp(x)
    with nn.recompute():
        b = F.tanh(F.sin(a) * F.broadcast(s, X.shape))
    loss = F.sum(b)

    def double(f):
        if f.name == "Sin":
            s.data.fill(2.0)

    loss.forward(function_pre_hook=double)
    F.mean(a).forward()
    x.g = 0
    e = np.exp(X)
    if right_or_changed(lambda: loss.backward() or x.g, 2 * (1 - np.tanh(2 * np.sin(e)) ** 2) * np.cos(e) * e):
        close(b.d, np.tanh(2 * np.sin(e)))


def test_a_written_copy_that_another_run_has_dropped():
    """It shares the array of `a`: what was written is gone when `a` is made again."""
    x = leaf(X)
    a = F.sigmoid(x)
    total = F.sum(a)
    copy = a.get_unlinked_variable(need_grad=False)
    total.forward()
    h = F.sin(copy)
    y = h + 0.7
    copy.d = OTHER
    y.forward(clear_no_need_grad=True)
    total.forward(clear_buffer=True)
    right_or_changed(lambda: h.d, np.sin(OTHER))


@pytest.mark.parametrize("dtype, first, second", [("u1", (7, 0x80), (35, 0x10)), ("i4", (1, 1 << 31), (8, 1 << 28))])
def test_writes_by_a_view_that_change_few_bits(dtype, first, second):
    x = nn.Variable((64,))
    x.data = nn.NdArray.from_numpy_array((np.arange(64) % 50 + 1).astype(dtype))
    y = F.sin(F.tanh(x * 0.01))
    y.forward()
    view = x.d
    tanh = np.tanh(view.astype("float32") * np.float32(0.01))
    for at, bits in first, second:
        view.view(f"u{view.itemsize}")[at] ^= bits
    right_or_changed(lambda: y.parent.inputs[0].d, tanh)
