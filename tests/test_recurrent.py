"""Recurrent layers beyond single calls: dropout between layers, threads, memory, cells that are called step by step."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.parametric_functions as PF
from graph_helpers import leaf


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    nn.seed(313)
    yield
    nn.clear_parameters()


def rectified(dropout: float, training: bool = True) -> tuple[nn.Variable, nn.Variable]:
    """Two layers of which the second one hands on what comes; its input is positive. Output and x."""
    steps, batch, hidden = 20, 5, 8
    x = leaf(np.random.RandomState(0).rand(steps, batch, hidden) + 0.5)
    through = np.concatenate([np.eye(hidden), np.zeros((hidden, hidden))], axis=1)
    state, first, second = leaf(np.zeros((2, 1, batch, hidden))), leaf(through[None]), leaf(through[None, None])
    more = {"num_layers": 2, "nonlinearity": "relu", "dropout": dropout, "training": training}
    return F.rnn(x, state, first, second, **more)[0], x


def test_dropout_between_layers():
    y, x = rectified(0.5)
    y.forward()
    kept = y.d != 0
    np.testing.assert_allclose(y.d[kept], 2 * x.d[kept], rtol=1e-6)
    assert abs(kept.mean() - 0.5) < 0.1
    x.g = 0
    y.backward(clear_buffer=True)
    np.testing.assert_array_equal(x.g, 2.0 * kept)  # the same ones
    first = kept
    y.forward()
    assert ((y.d != 0) != first).any()


def test_the_rule_drops_the_same_numbers():
    y, x = rectified(0.5)
    (gx,) = nn.grad([y], [x])
    nn.forward_all([y, gx])
    np.testing.assert_array_equal(gx.d, 2.0 * (y.d != 0))


def test_no_dropout_in_inference_and_no_gradient():
    y, x = rectified(0.5, training=False)
    y.forward()
    np.testing.assert_allclose(y.d, x.d, rtol=1e-6)
    with pytest.raises(nn.Error, match="training=False"):
        y.backward()


def run(cell: str, threads: int) -> list[bytes]:
    """Outputs and gradients of two layers in both directions."""
    nn.set_num_threads(threads)
    nn.clear_parameters()
    rng = np.random.RandomState(1)
    x = leaf(rng.randn(7, 33, 40))
    states = [leaf(rng.randn(2, 2, 33, 70)) for _ in range(1 + (cell == "lstm"))]
    y, *states_n = getattr(PF, cell)(x, *states, bidirectional=True, rng=np.random.RandomState(2))
    loss = F.sum(F.sin(y)) + sum(F.sum(F.sin(s)) for s in states_n)
    loss.forward()
    leaves = [x, *states, *nn.get_parameters().values()]
    for v in leaves:
        v.g = 0
    loss.backward()
    return [y.d.tobytes(), *(s.d.tobytes() for s in states_n), *(v.g.tobytes() for v in leaves)]


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_threads_change_no_bit(cell):
    threads = nn.get_num_threads()
    try:
        assert run(cell, 1) == run(cell, 2)
    finally:
        nn.set_num_threads(threads)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_inference_gives_the_same_bits(cell):
    """Gates that are not kept are worked on a band of steps at a time."""
    x, state = leaf(np.random.RandomState(1).randn(50, 70, 8)), leaf(np.ones((1, 1, 70, 64)))
    states = [state] * (1 + (cell == "lstm"))
    kept = getattr(PF, cell)(x, *states)
    sums = sum(F.sum(v) for v in kept)
    sums.forward(clear_no_need_grad=False)
    want = [v.d.copy() for v in kept]
    with nn.no_grad():
        got = getattr(PF, cell)(x, *states, training=False)
    nn.forward_all(got)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b.d)


def layers(cell: str, dropout: float = 0.0, n: int = 1, directions: int = 1) -> nn.Variable:
    x = leaf(np.ones((64, 16, 48)))
    states = [leaf(np.ones((n, directions, 16, 64))) for _ in range(1 + (cell == "lstm"))]
    return F.sum(getattr(PF, cell)(x, *states, dropout=dropout, bidirectional=directions == 2)[0])


@pytest.mark.host
@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("shape", [(0.0, 1, 1), (0.0, 2, 1), (0.0, 2, 2), (0.5, 3, 1)], ids=str)
def test_memory_is_planned(cell, shape):
    y = layers(cell, *shape)
    for v in nn.get_parameters().values():
        v.grad.zero()
    plan = nn.memory.plan(y)
    gc.collect()
    nn.memory.clear_cache()
    nn.memory.reset_peak()
    y.forward()
    y.backward()
    peak = nn.memory.stats().peak
    assert abs(plan.peak - peak) <= 0.1 * peak, f"planned {plan.peak}, used {peak}\n{plan}"


def test_a_cell_is_a_step_of_a_layer():
    rng = np.random.RandomState(3)
    x, h, c = leaf(rng.randn(2, 5)), leaf(rng.randn(2, 4)), leaf(rng.randn(2, 4))
    h_new, c_new = PF.lstm_cell(x, h, c, 4)
    w = nn.get_parameters()["lstm/affine/W"].d  # (5 + 4, 4, 4); gates i, o, f, n
    weight = np.ascontiguousarray(w.transpose(1, 2, 0)[[0, 2, 3, 1]])[None]
    _, h_n, c_n = F.lstm(leaf(x.d[None]), leaf(h.d[None, None]), leaf(c.d[None, None]), leaf(weight))
    nn.forward_all([h_new, c_new, h_n, c_n])
    np.testing.assert_allclose(h_n.d[0, 0], h_new.d, atol=1e-6)
    np.testing.assert_allclose(c_n.d[0, 0], c_new.d, atol=1e-6)


def test_a_cell_keeps_its_states():
    cell = PF.LSTMCell(2, 4, name="cell")
    x = leaf(np.ones((2, 3)))
    first = cell(x)
    second = cell(x)
    assert second is cell.h and list(nn.get_parameters()) == ["cell/lstm/affine/W", "cell/lstm/affine/b"]
    nn.forward_all([first, second])
    assert (first.d != second.d).any()
    cell.reset_state()
    assert (cell.h.d == 0).all() and (cell.c.d == 0).all()
    given = leaf(np.ones((2, 4)))
    assert PF.LSTMCell(2, 4, h=given).h is given


def test_layers_say_what_shape_the_states_have():
    with pytest.raises(ValueError, match=r"lstm: argument 'h'.*layers, directions, batch, hidden"):
        PF.lstm(nn.Variable((3, 2, 5)), nn.Variable((2, 4)), nn.Variable((2, 4)))
    assert not nn.get_parameters()
