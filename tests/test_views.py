"""Transposes, slices, broadcasts and flips that are not observed are read where they lie: same numbers, less memory."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import leaf

pytestmark = pytest.mark.host


def numbers(seed, *shape):
    return leaf(np.random.RandomState(seed).uniform(-1, 1, shape))


# Movements: of a variable and of a NumPy array; the axes are arguments, so the same chains go through both.
def transpose(x, rng, lib):
    axes = tuple(int(a) for a in rng.permutation(x.ndim))
    return lib.transpose(x, axes)


def flip(x, rng, lib):
    axes = [int(a) for a in range(x.ndim) if rng.randint(2)]
    return F.flip(x, axes) if lib is F else np.flip(x, axes)


def cut(x, rng, lib):
    index = []
    for n in x.shape:
        step = int(rng.choice([-2, -1, 1, 1, 1, 2]))
        start, stop = sorted(int(i) for i in rng.randint(0, n + 1, 2))
        if start == stop:
            start, stop = 0, n
        index.append(slice(start, stop, step) if step > 0 else slice(stop - 1, start - 1 if start else None, step))
    return x[tuple(index)]


def widen(x, rng, lib):
    """Broadcasts: to more axes, and along an axis of one."""
    axis = int(rng.randint(x.ndim))
    x = x[tuple(slice(0, 1) if a == axis else slice(None) for a in range(x.ndim))]
    shape = tuple(3 if a == axis else n for a, n in enumerate(x.shape))
    return F.broadcast(x, shape) if lib is F else np.broadcast_to(x, shape)


def piece(x, rng, lib):
    """One of the pieces along an axis, put back as an axis of one."""
    axis = int(rng.randint(x.ndim))
    at = int(rng.randint(x.shape[axis]))
    shape = tuple(1 if a == axis else n for a, n in enumerate(x.shape))
    if lib is F:
        pieces = F.split(x, axis)
        taken = pieces[at] if isinstance(pieces, (list, tuple)) else pieces
        return F.reshape(taken, shape)
    return np.take(x, [at], axis)


MOVES = [transpose, flip, cut, widen, piece]


# Readers of what was moved.
def squared(x, rng, lib):
    return x * x


def wave(x, rng, lib):
    return lib.sin(x)


def added(x, rng, lib):
    row = rng.uniform(-1, 1, x.shape[-1:]).astype("f")
    return x + (leaf(row, need_grad=False) if lib is F else row)


def products(x, rng, lib):
    """Both operands moved: x xᵀ over the last two axes."""
    if x.ndim < 2:
        return x
    swap = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    other = lib.transpose(x, swap)
    return F.batch_matmul(x, other) if lib is F else x @ other


def totals(x, rng, lib):
    axis = int(rng.randint(x.ndim))
    if rng.randint(2):
        return F.sum(x, axis, True) if lib is F else x.sum(axis, keepdims=True)
    return F.mean(x, axis, True) if lib is F else x.mean(axis, keepdims=True)


def joined(x, rng, lib):
    axis = int(rng.randint(x.ndim))
    other = x[tuple(slice(None, None, -1) if a == axis else slice(None) for a in range(x.ndim))]
    return F.concatenate(x, other, axis=axis) if lib is F else np.concatenate([x, other], axis)


READERS = [squared, wave, added, products, totals, joined]


def chain(seed, x, lib):
    rng = np.random.RandomState(seed)
    for _ in range(rng.randint(2, 7)):
        for _ in range(rng.randint(1, 4)):
            x = MOVES[rng.randint(len(MOVES))](x, rng, lib)
        x = READERS[rng.randint(len(READERS))](x, rng, lib)
        if x.size > 5000:
            break
    return x


def run(seed, shape, fused):
    old = nn.set_fusion(fused)
    try:
        x = numbers(seed, *shape)
        y = chain(seed, F.tanh(x), F)
        loss = F.sum(F.sin(y))
        loss.forward(clear_no_need_grad=bool(seed % 2))
        loss.backward(clear_buffer=bool(seed // 2 % 2))
        value = loss.d.copy()
        g = x.g.copy()
        with nn.no_grad():
            z = chain(seed, F.tanh(x), F)
        z.forward(clear_buffer=True)
        return value, g, z.d.copy()
    finally:
        nn.set_fusion(old)


@pytest.mark.parametrize("block", range(8))
def test_chains_of_movements_and_readers(block):
    for seed in range(block * 25, block * 25 + 25):
        shape = tuple(int(n) for n in np.random.RandomState(seed).randint(1, 5, 1 + seed % 4))
        fused, apart = run(seed, shape, True), run(seed, shape, False)
        for name, a, b in zip(("loss", "gradient", "value"), fused, apart, strict=True):
            assert a.tobytes() == b.tobytes(), (seed, name)
        expected = chain(seed, np.tanh(numbers(seed, *shape).d), np)
        np.testing.assert_allclose(fused[2], expected, rtol=2e-4, atol=1e-4, err_msg=f"seed {seed}")


def attention(q, k, v, heads):
    b, t, c = q.shape

    def split(x):
        return F.transpose(F.reshape(x, (b, t, heads, c // heads), inplace=False), (0, 2, 1, 3))

    scores = F.softmax(F.batch_matmul(split(q), split(k), transpose_b=True) * 0.1)
    return F.reshape(F.transpose(F.batch_matmul(scores, split(v)), (0, 2, 1, 3)), (b, t, c))


def test_attention_has_the_same_bits():
    found = []
    for fused in (True, False):
        old = nn.set_fusion(fused)
        q, k, v = (numbers(i, 2, 33, 64) for i in range(3))
        y = attention(F.sin(q), F.sin(k), F.sin(v), 4)
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)
        found.append([a.copy() for a in (y.d, q.g, k.g, v.g)])
        nn.set_fusion(old)
    for a, b in zip(*found, strict=True):
        assert a.tobytes() == b.tobytes()


MOVED = {
    "transpose": lambda x: F.transpose(F.reshape(x, (64, 8, 512)), (1, 0, 2)),
    "flip": lambda x: F.flip(x, [0]),
    "broadcast": lambda x: F.broadcast(x[:1], (512, 512)),
    "slice": lambda x: x[::-1, ::-1],
    "split": lambda x: F.split(F.reshape(x, (1, 512, 512)), 0)[0],
}


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", MOVED)
def test_no_memory_is_taken(name, train):
    """The plan, which is what runs (test_memory.py), has no array for what was moved."""
    for fused in (True, False):
        old = nn.set_fusion(fused)
        x = leaf(np.ones((512, 512)), need_grad=train)
        y = F.sum(F.sin(MOVED[name](F.tanh(x))))
        made = [what for size, what in nn.memory.plan(y, clear_no_need_grad=True).largest if size >= 1 << 20]
        nn.set_fusion(old)
        assert any(f"output of {name}" in what for what in made) is not fused, made


def test_products_read_transposes():
    a, w = leaf(np.ones((256, 512))), leaf(np.ones((256, 128)))
    y = F.sum(F.affine(F.transpose(F.tanh(a), (1, 0)), w))
    made = [what for _, what in nn.memory.plan(y, clear_no_need_grad=True).largest]
    assert not any("transpose" in what for what in made), made


def test_a_held_view_has_its_values():
    x = numbers(0, 3, 4)
    t = F.transpose(F.tanh(x), (1, 0))
    y = F.sum(F.sin(t))
    y.forward(clear_no_need_grad=True)
    np.testing.assert_allclose(t.d, np.tanh(x.d).T, rtol=1e-6)
    y.backward()
    np.testing.assert_allclose(t.g, np.cos(np.tanh(x.d)).T, rtol=1e-5)


def test_what_is_dropped_is_made_when_it_is_asked_for():
    x = numbers(0, 3, 4)
    y = F.sin(F.transpose(F.tanh(x), (1, 0)))
    y.forward()
    np.testing.assert_allclose(y.parent.inputs[0].d, np.tanh(x.d).T, rtol=1e-6)
    np.testing.assert_allclose(y.parent.inputs[0].parent.inputs[0].d, np.tanh(x.d), rtol=1e-6)


def test_a_leaf_that_is_written_after_forward():
    """What the readers read in backward is the data of forward."""
    for fused in (True, False):
        old = nn.set_fusion(fused)
        for before in (lambda x: x, F.identity, lambda x: F.reshape(x, (3, 4)), lambda x: F.reshape(x, (3, 4), False)):
            x, w = numbers(0, 3, 4), numbers(1, 3, 2)
            first = x.d.copy()
            y = F.sum(F.affine(F.transpose(before(x), (1, 0)), w))
            y.forward()
            x.d = x.d * 2
            y.backward()
            np.testing.assert_allclose(w.g, np.broadcast_to(first.sum(1, keepdims=True), (3, 2)), rtol=1e-5)
        nn.set_fusion(old)


def test_an_array_that_a_function_writes_over():
    """A later function rewrites the source: the moved values are the earlier ones."""
    x = numbers(0, 3, 4)
    h = F.tanh(x)
    t = F.transpose(h, (1, 0))
    a = F.add_scalar(h, 10, inplace=True)
    y = F.sum(F.sin(t)) + F.sum(a) * 0
    y.forward(clear_buffer=True)
    np.testing.assert_allclose(y.d, np.sin(np.tanh(x.d)).sum(), rtol=1e-5)
