"""`F.scaled_dot_product_attention` against NumPy, its two gradients against each other, on the host and on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F

RNG = np.random.default_rng(0)
DOUBLE = nn.Context(["cpu:double"], "CpuCachedArray", "")
MASKS = [None, (7, 9), (1, 9), (7, 1), (9,), (2, 1, 7, 9), (1, 3, 1, 9), (2, 3, 7, 9)]


def attention(q, k, v, mask=None, causal=False, scale=None):
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def arrays(lead=(2, 3), queries=7, keys=9, size=4, value_size=5):
    return [RNG.standard_normal(lead + s) for s in ((queries, size), (keys, size), (keys, value_size))]


def variables(values):
    return [nn.Variable.from_numpy_array(a, need_grad=True) for a in values]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", MASKS)
def test_values_and_gradients(shape, causal):
    """The kernel's gradients, those of the rule, and differences of the formula."""
    given = [*arrays(), *([] if shape is None else [RNG.standard_normal(shape)])]
    seed = RNG.standard_normal((2, 3, 7, 5))
    with nn.context_scope(DOUBLE):
        x = variables(given)
        y = F.scaled_dot_product_attention(*x, is_causal=causal)
        y.forward()
        assert np.allclose(y.d, attention(*given, causal=causal))
        for v in x:
            v.g = 0
        y.backward(seed)
        by_rule = nn.grad([F.sum(y * nn.Variable.from_numpy_array(seed))], x)
        nn.forward_all(by_rule)
    for i, (v, g) in enumerate(zip(x, by_rule, strict=True)):
        assert np.allclose(v.g, g.d)
        near = []
        for step in 1e-6, -1e-6:
            moved = [a.copy() for a in given]
            moved[i].flat[-2] += step
            near.append((attention(*moved, causal=causal) * seed).sum())
        assert np.isclose(v.g.flat[-2], (near[0] - near[1]) / 2e-6, rtol=1e-4, atol=1e-7)


def test_second_derivatives():
    with nn.context_scope(DOUBLE):
        x = variables(arrays((), 3, 4, 2, 2))
        first = nn.grad([F.sum(F.scaled_dot_product_attention(*x) ** 2)], x[:1])[0]
        second = nn.grad([F.sum(first**2)], x[:1])[0]
        second.forward()
        found, q = second.d.copy(), x[0].d.copy()
        sums = []
        for step in 1e-5, -1e-5:
            x[0].d = q
            x[0].d[1, 0] += step
            first.forward()
            sums.append((first.d**2).sum())
    assert np.isclose(found[1, 0], (sums[0] - sums[1]) / 2e-5, rtol=1e-5)


def test_many_blocks_in_all_types():
    q, k, v = arrays((3,), 130, 300, 40, 33)
    for name, bound in ("cpu:float", 2e-6), ("cpu:half", 2e-3):
        with nn.context_scope(nn.Context([name], "CpuCachedArray", "")):
            y = F.scaled_dot_product_attention(*variables([q, k, v]), is_causal=True, scale=0.3)
            y.forward()
        assert np.allclose(y.d, attention(q, k, v, causal=True, scale=0.3), atol=bound * 10, rtol=bound * 10)


def test_bits_do_not_depend_on_threads():
    given, found = arrays((3,), 130, 300, 32, 32), []
    for threads in 1, 2:
        before = nn.get_num_threads()
        nn.set_num_threads(threads)
        x = variables(given)
        y = F.scaled_dot_product_attention(*x, is_causal=True)
        y.forward()
        for v in x:
            v.g = 0
        y.backward(1)
        nn.set_num_threads(before)
        found.append([y.d.copy(), *(v.g.copy() for v in x)])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def test_memory_grows_with_the_length():
    x = variables([a.astype(np.float32) for a in arrays((1,), 4096, 4096, 8, 8)])
    y = F.scaled_dot_product_attention(*x)
    nn.memory.reset_peak()
    before = nn.memory.stats().live
    y.forward()
    y.backward()
    assert nn.memory.stats().peak - before < 16 << 20  # all scores would take 64 MiB


def test_hidden_keys():
    q, k, v = arrays((), 2, 3, 2, 1)
    mask = np.array([[0, -np.inf, 0], [-np.inf] * 3])
    y = F.scaled_dot_product_attention(*variables([q, k, v]), nn.Variable.from_numpy_array(mask))
    y.forward()
    assert np.isclose(y.d[0, 0], attention(q[:1], k[[0, 2]], v[[0, 2]])[0, 0]) and np.isnan(y.d[1, 0])


def test_dropout_and_arrays():
    x = variables(arrays((2,), 64, 64, 8, 8))
    x[2].d = 1
    y = F.scaled_dot_product_attention(*x, dropout_p=0.5)
    y.forward()
    assert 0.9 < y.d.mean() < 1.1 and y.d.std() > 0.05
    a = [v.data for v in x]
    y = F.scaled_dot_product_attention(*a)
    assert isinstance(y, nn.NdArray) and np.allclose(y.data, 1)


@pytest.mark.parametrize("dropout_p", [0.0, 1e-12])  # in blocks, and as a graph
def test_leading_axes_broadcast(dropout_p):
    given = [RNG.standard_normal(shape) for shape in ((2, 1, 5, 4), (3, 6, 4), (1, 3, 6, 2))]
    whole = [np.broadcast_to(a, (2, 3, *a.shape[-2:])) for a in given]
    x, wide = variables(given), variables(whole)
    for inputs in x, wide:
        y = F.scaled_dot_product_attention(*inputs, dropout_p=dropout_p)
        y.forward()
        np.testing.assert_allclose(y.d, attention(*whole), rtol=1e-4, atol=1e-5)
        for v in inputs:
            v.g = 0
        y.backward()
    sums = [wide[0].g.sum(1, keepdims=True), wide[1].g.sum(0), wide[2].g.sum(0, keepdims=True)]
    for v, want in zip(x, sums, strict=True):
        np.testing.assert_allclose(v.g, want, rtol=1e-4, atol=1e-5)


X = nn.Variable((3, 4))


@pytest.mark.parametrize(
    ("args", "options", "kind", "text"),
    [
        ((X, nn.Variable((3, 5)), X), {}, ValueError, "'key': expected \\(.., S, 4\\)"),
        ((X, X, nn.Variable((2, 4))), {}, ValueError, "'value'"),
        ((nn.Variable((4,)), X, X), {}, ValueError, "'query': expected two axes"),
        ((nn.Variable((2, 3, 4)), nn.Variable((5, 3, 4)), X), {}, ValueError, "'key': .* with \\(2,\\) of query"),
        ((X, nn.Variable((2, 3, 4)), nn.Variable((3, 3, 4))), {}, ValueError, "'value': .* with \\(2,\\) of query and"),
        ((X, nn.Variable((0, 4)), nn.Variable((0, 4))), {}, ValueError, "one key"),
        ((X, X, X, nn.Variable((2, 2))), {}, ValueError, "'attn_mask'"),
        ((X, X, X), {"dropout_p": 1.5}, ValueError, "'dropout_p'"),
        ((X, X, X), {"scale": "a"}, TypeError, "'scale'"),
        ((X, 3, X), {}, TypeError, "'key'"),
    ],
)
def test_wrong_arguments(args, options, kind, text):
    with pytest.raises(kind, match=f"scaled_dot_product_attention: argument .*{text}" if "'" not in text else text):
        F.scaled_dot_product_attention(*args, **options)


def test_errors_name_the_line_of_the_script():
    with pytest.raises(ValueError, match=r"made at: .*test_scaled_dot_product\.py:\d+"):
        F.scaled_dot_product_attention(X, nn.Variable((3, 5)), X)


def test_values_of_no_numbers():
    x = variables(arrays((2,), 3, 4, 2, 0))
    y = F.scaled_dot_product_attention(*x)
    y.forward()
    for v in x:
        v.g = 7
    y.backward(1)
    assert y.shape == (2, 3, 0) and (x[0].g == 7).all() and (x[1].g == 7).all()  # nothing was added
    h = F.exp(x[0])
    z = F.scaled_dot_product_attention(h, *x[1:])
    z.forward()
    x[0].g = 0
    z.backward(1)
    assert not x[0].g.any()
