"""By what an array can be observed after a run: variables, arrays, NumPy's views, other variables that share it.

What they show is the value, whichever root ran the functions and whatever was dropped since. Expected values are NumPy
formulas.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest

import backend
import nnrs as nn
import nnrs.functions as F
import nnrs.solvers as S
from graph_helpers import X, close, leaf
from nnrs import NdArray
from nnrs.ext_utils import get_extension_context
from python_functions import OneToOne

pytestmark = pytest.mark.usefixtures("fusion")

E = np.exp(X)


def right_or_changed(v: nn.Variable, expected: np.ndarray) -> np.ndarray:
    """The data; what is expected where it was not kept (without fusion it is) and what it was made from has changed."""
    try:
        return v.d
    except RuntimeError as e:
        assert "changed since forward" in str(e)
        return expected


# A root that was dropped


def test_gradients_after_a_root_beside_is_dropped():
    x = leaf(X)
    z = F.sin(F.exp(x))
    nn.forward_all([z, F.cos(z)])
    z.backward()
    close(x.g, np.cos(E) * E)


def test_gradients_after_a_helper_ran_further():
    x = leaf(X)
    z = F.sin(F.exp(x))
    F.cos(z).forward()
    gc.collect()
    close(z.d, np.sin(E))
    z.backward()
    close(x.g, np.cos(E) * E)


def test_gradients_after_a_metric_is_dropped():
    x = leaf(X)
    h = F.exp(x)
    loss = F.sum(F.sin(h) * F.tanh(h))

    def metric() -> float:
        m = F.mean(F.abs(loss.parent.inputs[0]))
        nn.forward_all([loss, m])
        return float(m.d)

    close(metric(), np.mean(np.abs(np.sin(E) * np.tanh(E))))
    del h
    loss.backward()
    close(x.g, (np.cos(E) * np.tanh(E) + np.sin(E) * (1 - np.tanh(E) ** 2)) * E)


def test_values_on_the_way_after_the_root_is_dropped():
    x = leaf(X)
    z = F.sin(F.exp(F.tanh(x)))
    nn.forward_all([z, F.cos(z), F.sin(z)])
    f = z.parent
    close(f.inputs[0].d, np.exp(np.tanh(X)))
    close(f.inputs[0].parent.inputs[0].d, np.tanh(X))


def test_values_that_two_roots_ran_one_after_the_other():
    x = leaf(X)
    t = F.tanh(x)
    z, w = F.sin(F.exp(t)), F.cos(t * 2)
    z.forward()
    w.forward()  # runs tanh again: its value is the same
    close(z.parent.inputs[0].d, np.exp(np.tanh(X)))
    z.forward()
    x.d = 2 * X
    w.forward()
    close(right_or_changed(z.parent.inputs[0], np.exp(np.tanh(X))), np.exp(np.tanh(X)))


def test_random_numbers_that_were_drawn_anew_are_not_taken_for_the_old():
    x = leaf(np.ones(100, np.float32))
    r = F.dropout(x, 0.5)
    z = F.sin(F.exp(r))
    z.forward()
    close(z.parent.inputs[0].d, np.exp(r.d))
    close(np.sin(z.parent.inputs[0].d), z.d)
    z.forward()
    drawn = np.exp(r.d)
    F.cos(r).forward()
    assert not np.array_equal(np.exp(r.d), drawn)
    close(right_or_changed(z.parent.inputs[0], drawn), drawn)


# Arrays of data


@pytest.mark.parametrize("when", ["before", "after", "between"])
@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}])
def test_a_held_array_has_its_value(when, flags):
    x = leaf(X)
    h = F.exp(x)
    if when == "before":
        a = h.data
    y = F.sum(F.sin(h))
    if when == "after":
        a = h.data
    y.forward(**flags)
    if when == "between":
        a = h.data
        y.forward(**flags)
    del h
    close(a.data, E)
    close(y.parent.inputs[0].parent.inputs[0].d, E)
    if "clear_buffer" not in flags:
        y.backward()
        close(x.g, np.cos(E) * E)
        close(a.data, E)


@pytest.mark.host
def test_clear_no_need_grad_leaves_what_backward_reads():
    w = leaf(X)
    k = F.exp(w)
    a, view = k.data, k.d
    y = F.sum(F.sin(k))
    for scale in (1, 2):
        w.d = scale * X
        y.forward(clear_no_need_grad=True)
        assert not a.clear_called
        close(view, np.exp(scale * X))
        close(a.data, np.exp(scale * X))
        assert np.shares_memory(view, k.d)


@pytest.mark.host
def test_a_view_of_what_needs_a_gradient_is_never_cleared_by_clear_no_need_grad():
    w = leaf(X)
    k = F.sin(w)  # no backward reads it
    view = k.d
    y = F.sum(k + 1)
    for scale in (1, 2):
        w.d = scale * X
        y.forward(clear_no_need_grad=True)
        close(view, np.sin(scale * X))


def test_a_cleared_array_says_so_until_it_is_read():
    x = leaf(X)
    h = F.exp(x)
    a = h.data
    y = F.sin(h)
    y.forward(clear_buffer=True)
    assert a.clear_called
    close(a.data, E)
    assert not a.clear_called
    close(h.d, E)
    y.forward(clear_buffer=True)
    assert a.clear_called


@pytest.mark.parametrize(
    "read", [lambda a, h: a.data, lambda a, h: h.d, lambda a, h: a.copy_from(a), lambda a, h: a + 1]
)
def test_a_cleared_array_after_a_leaf_changed(read):
    x = leaf(X)
    h = F.exp(x)
    a = h.data
    y = F.sin(h)
    y.forward(clear_buffer=True)
    x.d = 5
    for _ in range(2):
        with pytest.raises(RuntimeError, match="changed since forward"):
            read(a, h)
        assert a.clear_called
    x.d = X  # written again: the engine cannot know that it is the same
    y.forward()
    close(a.data, E)


def test_a_cleared_array_whose_graph_is_gone():
    y = F.sin(F.exp(leaf(X)))
    a = y.parent.inputs[0].data
    y.forward(clear_buffer=True)
    del y
    with pytest.raises(RuntimeError, match="the graph that could compute it again is gone"):
        a.data  # noqa: B018
    a.data = 3
    close(a.data, [3, 3, 3])


def test_parts_and_views_of_a_held_array():
    x = leaf(X)
    h = F.exp(x)
    part, view = h.data.narrow(0, 1, 2), h.data.view((3, 1))
    y = F.sum(F.sin(h))
    del h
    y.forward()
    close(part.data, E[1:])
    close(view.data, E[:, None])
    y.forward(clear_buffer=True)
    close(part.data, E[1:])


def test_an_unlinked_copy_of_what_was_not_kept():
    x = leaf(X)
    h = F.exp(x)
    u = h.unlinked()
    y = F.sin(h)
    del h
    y.forward()
    close(u.d, E)
    y.forward(clear_buffer=True)
    close(u.d, E)
    y.forward(clear_buffer=True)
    z = F.cos(u)
    z.forward()
    close(z.d, np.cos(E))


def test_an_explicitly_cleared_intermediate_is_computed_again():
    x = leaf(X)
    h = F.exp(x)
    y = F.sin(h)
    y.forward(clear_buffer=True)
    y.forward()
    h.data.clear()
    y.backward()
    close(x.g, np.cos(E) * E)


def test_looking_at_all_that_can_be_reached_changes_nothing():
    x = leaf(X)
    y = F.sum(F.tanh(F.exp(x)) * F.sin(F.exp(x) + 1))
    y.forward()

    def look() -> list[np.ndarray]:
        seen: list[np.ndarray] = []
        y.visit(lambda f: seen.extend(v.d.copy() for v in [*f.inputs, *f.outputs]))
        return seen

    first = look()
    for a, b in zip(first, look(), strict=True):
        np.testing.assert_array_equal(a, b)
    x.d = 2 * X
    y.forward()
    close(look()[1], np.exp(2 * X))


# Gradients


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_held_gradient_has_its_value(when):
    x = leaf(X)
    h = F.exp(x)
    if when == "before":
        a = h.grad
    y = F.sin(h)
    if when == "after":
        a = h.grad
    del h
    for scale in (1, 2):
        x.d = scale * X
        y.forward()
        y.backward()
        close(a.data, np.cos(np.exp(scale * X)))


@pytest.mark.host
def test_a_view_of_a_gradient_stays_up_to_date():
    x = leaf(X)
    h = F.exp(x)
    h.g = 0
    view = h.g
    y = F.sin(h)
    del h
    for scale in (1, 2):
        x.d = scale * X
        y.forward()
        y.backward()
        close(view, np.cos(np.exp(scale * X)))


def test_a_gradient_that_another_variable_shares():
    x, w = leaf(X), leaf(X)
    h = F.exp(x)
    w.grad = h.grad
    y = F.sin(h)
    del h
    y.forward()
    y.backward()
    close(w.g, np.cos(E))
    close(x.g, np.cos(E) * E)


def test_a_cleared_gradient_is_an_error_and_no_zeros():
    x = leaf(X)
    h = F.exp(x)
    a = h.grad
    y = F.sin(h)
    y.forward()
    y.backward(clear_buffer=True)
    assert a.clear_called
    for read in (lambda: a.data, lambda: h.g, lambda: h.grad.data):
        with pytest.raises(RuntimeError, match="not kept by backward"):
            read()
    h.g = 0
    close(a.data, [0, 0, 0])
    y.forward()
    y.backward()
    close(a.data, np.cos(E))


def test_gradients_bound_to_leaves_are_theirs_though_the_list_is_dropped():
    x = leaf(X)
    g = nn.grad([F.sum(x**3)], [x], bind_grad_output=True)
    n = F.sum(g[0])
    del g
    n.forward()
    close(x.g, 3 * X**2)


def test_a_solver_trains_on_bound_gradients():
    x, t = leaf(X), X.copy()
    solver = S.Sgd(0.1)
    solver.set_parameters({"x": x})
    g = nn.grad([F.sum(x**2)], [x], bind_grad_output=True)
    n = F.sum(g[0])
    del g
    for _ in range(50):
        n.forward()
        solver.update()
        t = t - 0.1 * 2 * t
    close(x.d, t)


@pytest.mark.parametrize("method", ["update", "weight_decay", "scale_grad", "clip_grad_by_norm", "check_nan_grad"])
def test_a_solver_takes_no_cleared_gradient_for_zeros(method):
    x, w = leaf(X), leaf(X)
    h = F.exp(x)
    w.grad = h.grad
    solver = S.Sgd(0.1)
    solver.set_parameters({"w": w})
    y = F.sum(F.sin(h))
    y.forward()
    y.backward(clear_buffer=True)
    with pytest.raises(RuntimeError, match="not kept by backward"):
        getattr(solver, method)(*([0.5] if method not in ("update", "check_nan_grad") else []))
    close(w.d, X)


# Gradients that the script sets on a variable inside


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}])
def test_a_sink_starts_with_the_gradients_that_were_set(clear, flags):
    x = leaf(X)
    a = F.identity(F.sin(F.identity(x)))
    b = F.exp(x)
    sink = F.sink(a, b, one_input_grad=False)
    for scale in (1, 2):
        sink.forward(**flags)
        a.g, b.g = 2, scale * X
        x.grad.zero()
        sink.backward(clear_buffer=clear)
        close(x.g, 2 * np.cos(X) + scale * X * E)


@pytest.mark.parametrize("clear", [False, True])
def test_a_sink_keeps_the_gradients_that_were_set_and_that_nothing_holds(clear):
    x = leaf(X)
    sink = F.sink(F.sin(x), *F.split(F.stack(x, x), axis=0), one_input_grad=False)
    sink.forward()
    for y, g in zip(sink.parent.inputs, (2, 3, X), strict=True):
        y.g = g
    del y
    for _ in range(3):
        x.grad.zero()
        sink.backward(clear_buffer=clear)
        close(x.g, 2 * np.cos(X) + 3 + X)


def test_a_set_gradient_under_auto_forward():
    x = leaf(X)
    with nn.auto_forward():
        y = F.identity(F.sin(x))
        y.g = 2
        F.sink(y, one_input_grad=False).backward(clear_buffer=True)
    close(x.g, 2 * np.cos(X))


def test_a_set_gradient_and_a_computed_one_add_up():
    x = leaf(X)
    y = F.sin(x)
    z = F.sink(y, F.exp(y), one_input_grad=False)
    z.forward()
    y.g = 3
    z.parent.inputs[1].g = 5
    z.backward()
    close(x.g, (3 + 5 * np.exp(np.sin(X))) * np.cos(X))


def test_a_set_gradient_of_a_leaf_stays():
    x = leaf(X)
    z = F.sink(x, one_input_grad=False)
    z.forward()
    x.g = 4
    z.backward()
    close(x.g, [4, 4, 4])


def test_a_gradient_array_taken_in_a_hook_stays():
    x = leaf(X)
    y = F.sin(F.exp(x))
    y.forward()
    seen: list[NdArray] = []
    y.backward(function_post_hook=lambda f: seen.append(f.inputs[0].grad))
    close(seen[0].data, np.cos(E))
    close(seen[1].data, np.cos(E) * E)


# Views that are gone


@pytest.mark.host
def test_writing_by_a_view_from_before_the_run_is_noticed_when_the_view_is_gone():
    x = leaf(X)
    y = F.sin(F.exp(x))
    view = x.d
    y.forward()
    close(y.parent.inputs[0].d, E)
    y.forward()
    view[...] = 3
    del view
    close(right_or_changed(y.parent.inputs[0], E), E)


@pytest.mark.host
def test_writing_an_intermediate_value_by_a_view_from_before_the_run_is_noticed():
    x = leaf(X)
    h = F.exp(x)
    k = F.tanh(F.sin(h))
    y = F.sin(k)
    view = h.d
    y.forward()
    view[...] = 3
    del view, k
    close(right_or_changed(y.parent.inputs[0].parent.inputs[0], np.sin(E)), np.sin(E))


@pytest.mark.host
def test_writing_between_two_graphs_that_read_the_same_view():
    x = leaf(X)
    y, z = F.sin(F.exp(x)), F.cos(F.tanh(x))
    view = x.d
    y.forward()
    view[...] = 3
    z.forward()
    close(right_or_changed(y.parent.inputs[0], E), E)
    close(z.parent.inputs[0].d, np.tanh([3.0, 3, 3]))


def test_user_code_is_not_run_again_for_a_value_that_was_not_cleared():
    class Count(OneToOne):
        runs = 0

        def forward_impl(self, inputs, outputs):
            Count.runs += 1
            outputs[0].d = inputs[0].d * Count.runs

        def backward_impl(self, inputs, outputs, propagate_down, accum):
            inputs[0].g = outputs[0].g * 2

    x = leaf(X)
    y = F.sum(F.sin(F.exp(Count()(x))))
    x.g = 0
    y.forward()
    close(y.parent.inputs[0].parent.inputs[0].parent.inputs[0].d, X)
    close(y.parent.inputs[0].parent.inputs[0].d, E)
    y.backward()
    close(x.g, 2 * np.cos(E) * E)
    assert Count.runs == 1


def test_errors_name_the_function_and_the_line():
    x = leaf(X)
    y = F.sin(F.exp(x))
    y.forward(clear_buffer=True)
    h = y.parent.inputs[0]
    x.d = 1
    with pytest.raises(RuntimeError, match=r"exp: .*was not kept[\s\S]*without clear_buffer[\s\S]*test_observed.py"):
        _ = h.d


# In the middle of a run


def walk(y: nn.Variable, until: int = 99) -> list[nn.Variable]:
    """The variables behind y, first inputs first."""
    found = []
    while y.parent is not None and len(found) < until:
        y = y.parent.inputs[0]
        found.append(y)
    return found


@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}])
def test_hooks_that_read_all_values_change_nothing(flags):
    x = leaf(X)
    y = F.sum(F.sin(F.cos(F.exp(F.tanh(x * 1.0)))))
    expected = lambda x: np.exp(np.tanh(x))  # noqa: E731
    seen, ran = [], []

    def look(f):
        ran.append(f)
        values = [v.d.copy() for v in walk(y) if v.parent in ran]
        if f.name == "Cos":
            seen.append(values[1])

    for scale in (1, 2):
        x.d = scale * X
        x.g = 0
        ran.clear()
        y.forward(function_post_hook=look, **flags)
        close(seen[-1], expected(scale * X))
        close(walk(y)[2].d, expected(scale * X))
        y.backward()
        e = expected(scale * X)
        close(x.g, np.cos(np.cos(e)) * -np.sin(e) * e * (1 - np.tanh(scale * X) ** 2))


def test_a_value_that_a_hook_read_and_backward_made_again():
    """What backward computes again on the way is what it was: views that hooks took of it before say nothing of it."""
    x = nn.Variable.from_numpy_array(np.linspace(-1, 1, 6).reshape(2, 1, 3), need_grad=True)
    a, b, c = F.split(x, axis=2)
    c.persistent = True
    s = F.sin(c)
    y = F.maximum2(b, s)
    y.forward(clear_buffer=True, function_post_hook=lambda f: [v.d for v in f.inputs])
    y.backward()
    close(s.d, np.sin(x.d[:, :, 2]))


def test_a_python_function_reads_a_value_of_its_own_graph():
    seen = []

    class Look(OneToOne):
        def forward_impl(self, inputs, outputs):
            seen.append(t.parent.inputs[0].d.copy())
            outputs[0].d = inputs[0].d

        def backward_impl(self, inputs, outputs, propagate_down, accum):
            inputs[0].g = outputs[0].g

    x = leaf(X)
    t = F.exp(F.tanh(x))
    y = F.sin(Look()(F.cos(t)))
    for scale in (1, 3):
        x.d = scale * X
        y.forward()
        close(seen[-1], np.tanh(scale * X))
        close(t.parent.inputs[0].d, np.tanh(scale * X))


@pytest.mark.parametrize("how", ["assign", "view", "array", "fill"])
@pytest.mark.parametrize("flags", [{}, {"clear_buffer": True}])
def test_a_leaf_that_a_hook_writes_has_changed(how, flags):
    if how == "view" and backend.BACKEND != "cpu":
        pytest.skip("a view is of the host's memory")
    x = leaf(X)
    view = x.d if how == "view" else None
    y = F.sin(F.tanh(F.exp(x)))

    def write(f):
        if f.name == "Exp":
            if how == "assign":
                x.d = 2
            elif how == "view":
                view[...] = 2
            elif how == "array":
                x.data = NdArray.from_numpy_array(np.full(3, 2, "float32"))
            else:
                x.data.fill(2)

    y.forward(function_post_hook=write, **flags)
    close(y.d, np.sin(np.tanh(E)))
    tanh, exp, _ = walk(y)
    close(right_or_changed(exp, E), E)
    close(right_or_changed(tanh, np.tanh(E)), np.tanh(E))


@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}, {"recompute": True}])
@pytest.mark.parametrize("how", ["assign", "fill", "view"])
def test_backward_reads_what_the_script_wrote_over_a_value(flags, how):
    x = leaf(X)
    h = F.exp(x)
    h.recompute = flags == {"recompute": True}
    y = F.sum(F.sin(h))
    for value in (2, 3):
        y.forward(**({} if h.recompute else flags))
        if how == "assign":
            h.d = value
        elif how == "fill":
            h.data.fill(value)
        else:
            h.d[...] = value
        x.g = 0
        y.backward()
        close(h.d, value)
        close(x.g, np.cos(value) * value * np.ones(3))
    y.forward(**({} if h.recompute else flags))
    x.g = 0
    y.backward()
    close(x.g, np.cos(E) * E)


@pytest.mark.parametrize("flags", [{"clear_buffer": True}, {"recompute": True}])
def test_an_array_that_was_cleared_says_so_until_it_is_read(flags):
    x = leaf(X)
    h = F.exp(x)
    h.recompute = "recompute" in flags
    y = F.sin(h)
    y.forward(**({} if h.recompute else flags))
    assert h.data.clear_called
    a = h.data
    del h, y
    gc.collect()
    close(a.data, E)
    assert not a.clear_called


@pytest.mark.parametrize("offset", [1, 3, 700])
def test_parts_of_one_array_that_overlap(offset):
    a = NdArray.from_numpy_array(np.linspace(0, 1, 1700, dtype="float32"))
    right = np.exp(a.data[:1000])
    x, y = nn.Variable((1000,)), F.exp(nn.Variable((1000,)))
    x.data = a.narrow(0, 0, 1000)
    y = F.exp(x)
    y.data = a.narrow(0, offset, 1000)
    y.forward()
    close(y.d, right)


def test_gradients_that_are_parts_of_one_array_and_overlap():
    x = leaf(np.linspace(-1, 1, 1000))
    h = F.sin(x)
    y = F.exp(h)
    a = NdArray.from_numpy_array(np.zeros(1003, "float32"))
    x.grad, h.grad = a.narrow(0, 0, 1000), a.narrow(0, 3, 1000)
    y.forward()
    y.backward()
    right = np.exp(np.sin(x.d)) * np.cos(x.d)
    np.testing.assert_allclose(x.g[:3], right[:3], rtol=2e-6)


def test_a_shape_that_is_set_again_is_no_change():
    x = leaf(np.ones((3, 1)))
    y = F.sin(F.exp(x))
    y.forward(clear_buffer=True)
    x.reset_shape((3, 1), True)
    close(y.parent.inputs[0].d, np.exp(x.d))


# Functions without a gradient, outputs that no function reads, arrays that lost their variable


def test_the_gradient_of_a_variable_that_leads_to_no_gradient():
    """A condition has none to pass on, but what is held before it has its own."""
    x = leaf(X)
    h = F.exp(x)
    y = F.where(h, leaf(X), leaf(X))
    z = F.sin(y)
    i = y.parent.inputs[0]
    z.forward()
    z.backward()
    assert i == h and h.need_grad and h.g.tolist() == [0, 0, 0]
    close(y.g, np.cos(X))
    mask = F.where(h, nn.Variable.from_numpy_array(X), nn.Variable.from_numpy_array(X))
    z = F.sin(mask)
    for held in (True, False):
        z.forward()
        z.backward()
        if held:
            close(mask.g, np.cos(X))
            del mask
    assert x.g.tolist() == [0, 0, 0]


@pytest.mark.parametrize("flags", [{"clear_buffer": True}, {"clear_no_need_grad": True}, {}])
@pytest.mark.parametrize("recompute", [False, True])
def test_an_output_that_no_function_reads_is_not_cleared(flags, recompute):
    x = leaf(X)
    a, b, c = F.split(x, axis=0)
    a.recompute = b.recompute = recompute
    y = F.exp(a)
    y.forward(**flags)
    x.d = 7
    assert not b.data.clear_called and b.d == X[1]
    close(y.d, np.exp(X[0]))


def test_an_array_that_nothing_makes_any_more():
    x = leaf(X)
    a, b, c = F.split(x, axis=0)
    early, late = b.data, None
    b.rewire_on(c)
    a.forward()
    assert early.data == 0  # it never had a value, as in NNabla
    x = leaf(X)
    h = F.exp(x)
    late = h.data
    F.sin(h).forward(clear_no_need_grad=True)
    h.rewire_on(F.cos(x))
    h.forward()
    close(late.data, E)
    close(h.d, np.cos(X))


def test_a_part_has_the_type_in_which_the_function_computes():
    with nn.context_scope(get_extension_context(backend.BACKEND, type_config="double")):
        x = leaf(X)
        h = F.exp(x)
        F.sin(h).forward(clear_no_need_grad=True)
    part = h.data.narrow(0, 0, 2)
    assert part.dtype == np.float64
    np.testing.assert_allclose(part.data, np.exp(X[:2].astype("f")), rtol=1e-7)


def test_an_array_whose_value_is_gone_can_be_written():
    x = leaf(X)
    h = F.exp(x)
    F.sin(h).forward(clear_buffer=True)
    h.parent = None
    array = h.data
    assert array.clear_called
    with pytest.raises(RuntimeError, match="not kept"):
        array.data  # noqa: B018
    array.fill(2)
    assert h.d.tolist() == [2, 2, 2]


# Reading is no change


def test_a_leaf_that_was_written_by_a_view_and_then_only_read():
    x = leaf(X)
    y = F.sum(F.tanh(F.sin(F.cos(x))))
    y.forward()
    for scale in (0.5, 0.25):
        x.d[...] = scale * X
        y.forward(clear_no_need_grad=True)
        assert x.d.mean() == pytest.approx(scale * X.mean())
        y.backward(clear_buffer=True)
        close(y.parent.inputs[0].d, np.tanh(np.sin(np.cos(scale * X))))
        close(y.parent.inputs[0].parent.inputs[0].d, np.sin(np.cos(scale * X)))


def test_a_leaf_that_is_a_part_of_an_array_and_read():
    big = NdArray.from_numpy_array(np.concatenate([X, 2 * X]))
    x = leaf(X)
    x.data = big.narrow(0, 3, 3)
    h = F.sin(x)
    y = F.sum(F.tanh(h))
    y.forward(clear_buffer=True)
    close(x.d, 2 * X)
    close(h.d, np.sin(2 * X))
    x.d[0] = 3
    close(y.parent.inputs[0].d, np.tanh(np.sin(2 * X)))  # of h, which is as it was
    x.d[0] = 3
    h = F.sin(x)
    F.sum(h).forward(clear_buffer=True)
    x.d[0] = 4
    with pytest.raises(RuntimeError, match="changed since forward"):
        _ = h.d


def test_memory_that_was_shared_until_the_leaf_was_read():
    x = leaf(np.eye(3))
    y = F.sum(F.batch_matmul(F.tanh(x), F.identity(x)))
    x.g = 0
    y.forward()
    _ = x.d
    y.backward(clear_buffer=True)
    once = x.g.copy()
    t, ones = np.tanh(np.eye(3)), np.ones((3, 3))
    close(once, ones @ np.eye(3).T * (1 - t**2) + t.T @ ones)
    y.backward()
    close(x.g, 2 * once)


def test_a_gradient_that_is_made_again_by_the_solver_that_needs_it():
    w = leaf(X)
    loss = F.sum(w**3)
    solver = S.Sgd(0.5)
    solver.set_parameters({"w": w})
    g = nn.grad([loss], [w], bind_grad_output=True)
    n = F.sum(g[0] ** 2) + loss
    del g
    n.forward(clear_buffer=True)
    solver.update()
    close(w.d, X - 0.5 * 3 * X**2)


@pytest.mark.parametrize("write", [lambda h: h.grad.fill(3), lambda h: h.grad.zero(), lambda h: setattr(h, "g", 3)])
def test_a_dropped_gradient_that_was_written_is_dropped_in_each_run(write):
    x = leaf(X)
    h = F.sin(x)
    y = F.sum(h)
    for _ in range(3):
        y.forward()
        write(h)
        y.backward(clear_buffer=True)
        with pytest.raises(nn.Error, match="gradient"):
            h.g.sum()


def test_an_input_under_another_shape_shows_before_it_ran():
    x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32), need_grad=True)
    views = [x.reshape((2, 3)), F.reshape(x, (3, 2)), F.unlink(x), F.reshape(F.reshape(x, (2, 3)), (6,))]
    for y in views:
        assert np.array_equal(y.d.ravel(), x.d)
    x.d = 7
    for y in views:
        y.forward()
        assert (y.d == 7).all()
    x.g = 0
    views[0].backward()
    assert (x.g == 1).all()
    y = F.reshape(x, (2, 3))
    y.d[0, 0] = 1  # its own value
    assert x.d[0] == 7
    x.data.fill(2)
    assert (F.reshape(x, (2, 3)).d == 2).all()
    h = F.exp(x)
    assert not F.reshape(h, (2, 3)).d.any() and not h.d.any()  # nothing ran: there is nothing to see


def test_views_of_views_and_in_a_circle_show_what_there_is():
    x = nn.Variable.from_numpy_array(np.float32([1, 2]))
    y = x
    for _ in range(20_000):
        y = F.reshape(y, (2,))
    assert y.d.tolist() == [1, 2]
    a = nn.Variable((2,))
    b = F.reshape(a, (2,))
    c = F.reshape(b, (2,))
    a.data = c.data
    assert c.d.tolist() == [0, 0]
    d = nn.Variable((2,))
    e = F.identity(d)
    d.data = e.data
    assert e.d.tolist() == [0, 0]
