"""Clear flags and persistence.

Every test runs with fusion on and off; expected values are NumPy formulas; flags were asked of NNabla 1.39.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import X, close, leaf

pytestmark = pytest.mark.usefixtures("fusion")


FLAGS = [
    dict(zip(("clear_buffer", "clear_no_need_grad"), v, strict=True))
    for v in itertools.product((False, True), repeat=2)
]


def chain(x):
    a = F.tanh(x)
    b = F.sin(a)
    c = F.add_scalar(b, 1)
    return [x, a, b, c, F.cos(c)]


@pytest.mark.parametrize("flags", FLAGS, ids=str)
@pytest.mark.parametrize("clear_backward", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_clear_flags_change_no_value(flags, clear_backward, held):
    if flags["clear_buffer"]:
        return  # NNabla needs the data that this flag drops for backward
    x, w = leaf(X), leaf([2.0, 1.0, 0.5])
    vs = chain(x * w)
    y = vs[-1] * w
    if not held:
        del vs
    for k in range(1, 4):
        y.forward(**flags)
        p = X * w.d
        s = np.sin(np.tanh(p)) + 1
        close(y.d, np.cos(s) * w.d)
        y.backward(clear_buffer=clear_backward)
        inner = -np.sin(s) * np.cos(np.tanh(p)) * (1 - np.tanh(p) ** 2) * w.d
        close(x.g, k * inner * w.d)
        close(w.g, k * (np.cos(s) + inner * X))
    assert np.array_equal(x.d, X) and np.array_equal(w.d, [2.0, 1.0, 0.5]), "leaves keep their data"


@pytest.mark.parametrize(
    "flags, cleared",
    [
        ({}, [0, 0, 0, 0, 0]),
        ({"clear_buffer": True}, [0, 1, 1, 1, 0]),
        ({"clear_no_need_grad": True}, [0, 0, 0, 0, 0]),
        ({"clear_buffer": True, "clear_no_need_grad": True}, [0, 1, 1, 1, 0]),
    ],
    ids=str,
)
def test_what_the_flags_clear(flags, cleared, fusion):
    """NNabla's answers, but that `clear_no_need_grad` leaves what needs a gradient and is held.

    tanh needs its output in backward, sin and cos their input, add_scalar nothing (NNabla clears sin's output for it).

    Fused runs compute intermediates again in backward, so they may drop more where the user allows it; and say so.
    """
    vs = chain(leaf(X))
    data = [v.data for v in vs]
    vs[-1].forward(**flags)
    if fusion and flags:
        cleared = [c or a.clear_called and 0 < i < 4 for i, (c, a) in enumerate(zip(cleared, data, strict=True))]
    assert [a.clear_called for a in data] == [bool(c) for c in cleared]


def test_what_backward_with_clear_buffer_clears():
    vs = chain(leaf(X))
    arrays = [v.data for v in vs], [v.grad for v in vs]
    vs[-1].forward(clear_no_need_grad=True)
    vs[-1].backward(clear_buffer=True)
    for kind in arrays:
        assert [a.clear_called for a in kind] == [False, True, True, True, False]


@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}], ids=str)
def test_backward_clears_no_output_that_nothing_reads(flags):
    """As NNabla, whose backward run clears the inputs of its functions: states are carried on by it."""
    v = leaf(np.arange(6.0).reshape(2, 3))
    h = F.tanh(v)
    top, index = F.max(h, axis=1, with_index=True)
    _, other = F.split(h, axis=0)
    _, mean, _ = F.batch_normalization(h, None, None, None, None, output_stat=True)
    loss = F.sum(top) + F.sum(_) * 0.5
    kept, data = (index, other, mean), np.tanh(v.d)
    nn.forward_all([loss, *kept], **flags)
    loss.backward(clear_buffer=True)
    assert h.data.clear_called and not any(a.data.clear_called for a in kept)
    v.d = -v.d
    close(index.d, [2, 2])
    close(other.d, data[1])
    close(mean.d, data.mean(0, keepdims=True))


def test_clear_buffer_frees_memory_while_it_runs():
    n = 250_000
    x = leaf(np.ones(n), False)
    y = x
    for _ in range(10):
        y = F.sum(F.broadcast(F.reshape(y, (1, n)), (2, n)), axis=0) * 0.5  # not fusable
    before = nn.memory.stats().live
    nn.memory.reset_peak()
    y.forward(clear_buffer=True)
    assert nn.memory.stats().live - before <= 4 * n + 4096
    assert nn.memory.stats().peak - before <= 4 * n * 4 + 4096
    assert np.all(y.d == 1)


def test_persistent_variables_keep_data_and_gradient():
    vs = chain(leaf(X))
    vs[2].persistent = True
    b = vs[2].data
    vs[-1].forward(clear_no_need_grad=True)
    vs[-1].backward(clear_buffer=True)
    assert not b.clear_called
    close(b.data, np.sin(np.tanh(X)))
    close(vs[2].g, -np.sin(np.sin(np.tanh(X)) + 1))


def test_a_variable_of_two_consumers_outlives_the_first():
    x = leaf(X)
    h = F.tanh(x)
    y, z = F.sin(h), F.cos(h)
    nn.forward_all([y, z], clear_buffer=True)
    close(y.d, np.sin(np.tanh(X)))
    close(z.d, np.cos(np.tanh(X)))


def test_a_part_of_a_larger_graph_run_with_clear_buffer_leaves_the_rest_usable():
    x = leaf(X)
    h = F.tanh(x)
    y, z = F.sin(h), F.cos(h)
    y.forward(clear_buffer=True)
    z.forward()
    close(z.d, np.cos(np.tanh(X)))
    z.backward()
    close(x.g, -np.sin(np.tanh(X)) * (1 - np.tanh(X) ** 2))


def test_the_cleared_gradient_of_a_held_variable_says_so():
    x = leaf(X)
    a = F.tanh(x)
    y = F.cos(F.sin(a))
    y.forward()
    y.backward(clear_buffer=True)
    assert a.grad.clear_called
    with pytest.raises(RuntimeError, match="was not kept"):
        a.g  # noqa: B018
    a.grad.zero()
    np.testing.assert_array_equal(a.g, np.zeros_like(X))


@pytest.mark.parametrize("recompute", [False, True])
def test_what_the_script_writes_over_a_cleared_value_is_made_again_by_the_next_run(recompute):
    x = leaf([0.5, -1.0])
    h = F.exp(x)
    h.recompute = recompute
    y = F.sin(h)
    y.forward(clear_buffer=not recompute)
    h.d = [5, 6]
    y.forward(clear_buffer=not recompute)
    close(h.d, np.exp([0.5, -1.0]))
    close(y.parent.inputs[0].d, np.exp([0.5, -1.0]))


@pytest.mark.parametrize("flags", [{"clear_buffer": True}, {"clear_no_need_grad": True}])
@pytest.mark.parametrize("first", [True, False])
def test_what_a_root_is_a_copy_of_stays(flags, first):
    # The data of a root is there after the run, whatever else has it.
    x = nn.Variable.from_numpy_array(np.array([0.1, 0.2], "f"), need_grad=False)
    v = F.exp(x)
    other, copy = F.sin(v), v.get_unlinked_variable()
    nn.forward_all([copy, other] if first else [other, copy], **flags)
    x.d = 7
    np.testing.assert_allclose(v.d, np.exp([0.1, 0.2]), rtol=1e-6)


def test_what_a_root_is_a_copy_of_is_not_recomputed():
    x = nn.Variable.from_numpy_array(np.array([0.1, 0.2], "f"), need_grad=True)
    with nn.recompute():
        v = F.exp(x)
    other, copy = F.sin(v), v.get_unlinked_variable()
    nn.forward_all([other, copy])
    x.d = 7
    np.testing.assert_allclose(v.d, np.exp([0.1, 0.2]), rtol=1e-6)
