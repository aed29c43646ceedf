"""Attention and transformers: values and gradients are NNabla's (golden/parametric.json) and a NumPy formula's."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
import nnrs.initializer as I
import nnrs.parametric_functions as PF
import nnrs.solvers as S

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "parametric.json").read_text())


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    nn.seed(313)
    yield
    nn.clear_parameters()


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def var(seed: int, *shape: int) -> nn.Variable:
    return nn.Variable.from_numpy_array(numbers(seed, *shape), need_grad=True)


@pytest.mark.parametrize("case", GOLDEN["values"], ids=lambda case: case["code"][:60])
def test_values_and_gradients_are_nnablas(case):
    given: list[nn.Variable] = []

    def x(*shape: int) -> nn.Variable:
        given.append(var(len(given), *shape))
        return given[-1]

    def mask(*shape: int) -> nn.Variable:
        hidden = np.zeros(shape, np.float32)
        hidden[0, -1] = hidden[1, 1] = 1
        return nn.Variable.from_numpy_array(hidden)

    y = eval(case["code"], {"nn": nn, "F": F, "PF": PF, "I": I, "np": np, "x": x, "mask": mask})
    outputs = y if isinstance(y, tuple) else [y]
    loss = sum((F.sum(o * (i + 1) * F.sin(o)) for i, o in enumerate(outputs)), F.constant(0, ()))
    loss.forward()
    for v in [*given, *nn.get_parameters().values()]:
        v.g = 0
    loss.backward()
    for o, values in zip(outputs, case["outputs"], strict=True):
        np.testing.assert_allclose(o.d.ravel()[:12], values, rtol=1e-4, atol=1e-5)
    wanted = {**{str(i): v for i, v in enumerate(given)}, **nn.get_parameters()}
    assert list(wanted) == list(case["gradients"])
    for name, (total, size) in case["gradients"].items():
        got = [wanted[name].g.sum(dtype=np.float64), np.abs(wanted[name].g).sum(dtype=np.float64)]
        np.testing.assert_allclose(got, [total, size], rtol=1e-3, atol=1e-3, err_msg=name)


# --- F.multi_head_attention -------------------------------------------------------------------------------------------


def reference(q, k, v, heads, w, b, bias_kv=None, additive=None, hidden=None):
    """Outputs and weights of attention, head by head and sequence by sequence."""
    q, k, v = (x @ w[i] + b[i] for i, x in enumerate((q, k, v)))
    if bias_kv is not None:
        k, v = (np.concatenate([x, np.tile(more, (1, x.shape[1], 1))]) for x, more in zip((k, v), bias_kv, strict=True))
        additive = None if additive is None else np.pad(additive, ((0, 0), (0, 1)))
        hidden = None if hidden is None else np.pad(hidden, ((0, 0), (0, 1)))
    n, n_v = q.shape[2] // heads, v.shape[2] // heads
    y, weights = np.zeros((*q.shape[:2], v.shape[2])), []
    for i in range(q.shape[1]):
        for head in range(heads):
            at, at_v = slice(head * n, (head + 1) * n), slice(head * n_v, (head + 1) * n_v)
            scores = q[:, i, at] @ k[:, i, at].T / np.sqrt(n)
            scores = scores if additive is None else scores + additive
            scores = scores if hidden is None else np.where(hidden[i], -np.inf, scores)
            e = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights.append(e / e.sum(axis=1, keepdims=True))
            y[:, i, at_v] = weights[-1] @ v[:, i, at_v]
    return y @ w[3] + b[3], np.stack(weights)


def arguments(dtype: Any = np.float32) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    x = [numbers(0, 3, 2, 5), numbers(1, 4, 2, 6), numbers(2, 4, 2, 7)]
    w = [numbers(3, 5, 6), numbers(4, 6, 6), numbers(5, 7, 8), numbers(6, 8, 3)]
    b = [numbers(7, 6), numbers(8, 6), numbers(9, 8), numbers(10, 3)]
    return x, w, b


def variables(arrays: list[np.ndarray]) -> list[nn.Variable]:
    return [nn.Variable.from_numpy_array(a, need_grad=True) for a in arrays]


HIDDEN = np.array([[0, 0, 0, 1], [0, 1, 0, 0]], np.float32)
MORE = {
    "plain": {},
    "additive": {"additive": numbers(11, 3, 4)},
    "hidden": {"hidden": HIDDEN},
    "all": {"additive": numbers(11, 3, 4), "hidden": HIDDEN, "bias_kv": [numbers(12, 6), numbers(13, 8)]},
}


def attend(x: Any, w: Any, b: Any, make: Any, bias_kv: Any = None, additive: Any = None, hidden: Any = None) -> Any:
    more = [None, None] if bias_kv is None else [make(a) for a in bias_kv]
    masks = [None if m is None else make(m) for m in (additive, hidden)]
    return F.multi_head_attention(*x, 2, *w, *b, *more, additive_mask=masks[0], key_padding_mask=masks[1])


@pytest.mark.parametrize("name", MORE)
def test_attention_of_variables_and_arrays(name):
    x, w, b = arguments()
    expected = reference(*x, 2, w, b, **MORE[name])
    made = attend(variables(x), variables(w), variables(b), nn.Variable.from_numpy_array, **MORE[name])
    nn.forward_all(made)
    for y, want in zip(made, expected, strict=True):
        np.testing.assert_allclose(y.d, want, rtol=2e-5, atol=2e-5)
    arrays = [[nn.NdArray.from_numpy_array(a) for a in part] for part in (x, w, b)]
    at_once = attend(*arrays, nn.NdArray.from_numpy_array, **MORE[name])
    for y, want in zip(at_once, made, strict=True):
        assert isinstance(y, nn.NdArray)
        np.testing.assert_array_equal(y.data, want.d)


def test_gradients_of_gradients():
    """The gradient as a graph is what backward gives, and so is that of its sum of squares."""
    x, w, b = arguments()
    given = [*variables(x), *variables(w)]
    y, _ = F.multi_head_attention(*given[:3], 2, *given[3:], *variables(b))
    first = nn.grad([F.sum(y * y)], given)
    squares = sum((F.sum(g * g) for g in first), F.constant(0, ()))
    squares.forward()
    for v in given:
        v.g = 0
    squares.backward()
    for i, v in enumerate(given):
        d = np.zeros_like(v.d)
        d.flat[1], before, step = 1, v.d.copy(), 1e-2
        ends = []
        for sign in (1, -1):
            v.d = before + sign * step * d
            squares.forward()
            ends.append(float(squares.d))
        v.d = before
        np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), v.g.flat[1], rtol=2e-2, atol=2.0, err_msg=str(i))


def test_dropout_drops_weights_of_attention():
    x = var(0, 16, 4, 8)
    y, weights = PF.multi_head_attention(x, x, x, 2, dropout=0.25)
    nn.forward_all([y, weights])
    _, kept = PF.multi_head_attention(x, x, x, 2)
    kept.forward()
    dropped = weights.d == 0
    assert 0.2 < dropped.mean() < 0.3
    np.testing.assert_allclose(weights.d[~dropped], kept.d[~dropped] / 0.75, rtol=1e-5)


def test_dropout_of_a_transformer_is_new_in_each_pass():
    y = PF.transformer_encode(var(0, 4, 2, 8), 8, 2, 16, dropout=0.5)
    y.forward()
    first = y.d.copy()
    y.forward()
    assert not np.array_equal(first, y.d)


def test_a_masked_transformer_does_not_look_ahead():
    later = nn.Variable.from_numpy_array(np.triu(np.full((4, 4), -np.inf, np.float32), 1))
    tgt = var(1, 4, 2, 8)
    y = PF.transformer(var(0, 5, 2, 8), tgt, 8, 2, 1, 2, 16, 0.0, tgt_additive_mask=later)
    y.forward()
    first = y.d.copy()
    tgt.d[-1] += 1
    y.forward()
    np.testing.assert_array_equal(first[:-1], y.d[:-1])
    assert not np.array_equal(first[-1], y.d[-1])


def test_fixed_parameters_stay():
    y = PF.transformer(nn.Variable((5, 2, 8)), nn.Variable((4, 2, 8)), 8, 2, 1, 1, 16, fix_parameters=True)
    assert not y.need_grad
    assert len(nn.get_parameters()) == 42 and all(v.need_grad for v in nn.get_parameters().values())


def test_a_transformer_learns():
    x = var(0, 5, 4, 8)
    loss = F.mean((PF.transformer_encode(x, 8, 2, 16, 0.0) - x) ** 2)
    solver = S.Adam(0.01)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for _ in range(30):
        loss.forward()
        losses.append(float(loss.d))
        solver.zero_grad()
        loss.backward()
        solver.update()
    assert losses[-1] < losses[0] / 2


X, W = nn.Variable((3, 2, 8)), nn.Variable((8, 8))
WRONG = [
    (lambda: PF.multi_head_attention(X, X, X, 3), ValueError, "'num_heads': expected a divisor of the embeddings'"),
    (lambda: PF.multi_head_attention(X, X, X, 0), ValueError, "'num_heads'"),
    (lambda: PF.multi_head_attention(X, X, X, -1), ValueError, "'num_heads'"),
    (lambda: PF.multi_head_attention(nn.Variable((3, 2)), X, X, 2), ValueError, "'query'"),
    (lambda: PF.multi_head_attention(X, nn.Variable((3, 1, 8)), X, 2), ValueError, "'key'"),
    (lambda: PF.multi_head_attention(X, X, nn.Variable((4, 2, 8)), 2), ValueError, "'value'"),
    (lambda: PF.multi_head_attention(X, X, X, 2, additive_mask=nn.Variable((3, 4))), ValueError, "'additive_mask'"),
    (lambda: PF.multi_head_attention(X, X, X, 2, additive_mask=np.zeros((3, 3))), TypeError, "'additive_mask'"),
    (lambda: PF.multi_head_attention(X, X, X, 2, additive_mask=nn.NdArray((3, 3))), TypeError, "'additive_mask'"),
    (lambda: PF.multi_head_attention(X, X, nn.NdArray((3, 2, 8)), 2), TypeError, "'value'"),
    (lambda: PF.multi_head_attention(X, X, X, 2, key_padding_mask=nn.Variable((2, 2))), ValueError, "key_padding_mask"),
    (lambda: PF.multi_head_attention(X, X, X, 2, dropout=1.0), ValueError, "argument 'dropout'"),
    (lambda: PF.multi_head_attention(X, X, X, 2, dropout=-0.5), ValueError, "argument 'dropout'"),
    (lambda: PF.multi_head_attention(X, X, X, 2, dropout=np.nan), ValueError, "argument 'dropout'"),
    (lambda: F.multi_head_attention(X, X, X, 2, W, W, W, W, dropout=-1), ValueError, "argument 'dropout'"),
    (lambda: F.multi_head_attention(X, X, X, 2, W, W, W, W, dropout=np.nan), ValueError, "argument 'dropout'"),
    (
        lambda: F.multi_head_attention(X, X, X, 2, W, W, W, nn.Variable((4, 8))),
        ValueError,
        "in affine: argument 'weight'",
    ),
    (
        lambda: F.multi_head_attention(X, X, X, 2, W, W, W, W, nn.Variable((4,))),
        ValueError,
        "in affine: argument 'bias'",
    ),
    (lambda: PF.transformer_encode(X, 8, 2, 4, dropout=-1), ValueError, "argument 'dropout'"),
    (lambda: PF.transformer_decode(X, X, 8, 2, 4, dropout=np.nan), ValueError, "argument 'dropout'"),
    (lambda: PF.transformer(X, X, 8, 2, 0, 0, dropout=1), ValueError, "argument 'dropout'"),
    (lambda: PF.transformer(X, X, 8, 3, 1, 1, 4), ValueError, "argument 'num_heads'"),
    (
        lambda: PF.multi_head_attention(X, X, X, 2, param_init={"q_bias": 1}),
        ValueError,
        "argument 'param_init\\['q_bias'\\]'",
    ),
    (lambda: PF.multi_head_attention(X, X, X, 2, k_embed_dim="a"), TypeError, "'k_embed_dim'"),
    (lambda: PF.multi_head_attention(X, X, 3, 2), TypeError, "'value': expected a Variable or NdArray"),
    (lambda: PF.transformer_encode(X, 6, 2), ValueError, "'src': expected shape"),
    (lambda: PF.transformer_encode(X, 8, 2, activation=3), TypeError, "'activation': expected a function"),
    (lambda: PF.transformer_decode(X, nn.Variable((3, 2, 6)), 8, 2), ValueError, "'memory'"),
    (lambda: PF.transformer(X, nn.Variable((3, 2, 6)), 8, 2), ValueError, "'tgt'"),
    (lambda: PF.transformer(X, X, 8, 2, 10**9), ValueError, "'num_encoder_layers': expected at most 10000 layers"),
    (lambda: PF.transformer(X, X, 8, 2, num_decoder_layers=-1), ValueError, "'num_decoder_layers'"),
    (lambda: PF.transformer_encode(X, 8, 2, 10**15), MemoryError, "memory"),
    (lambda: PF.transformer(X, nn.Variable((3, 3, 8)), 8, 2, 1, 1), ValueError, "'key'"),
    (lambda: PF.lstm_cell(nn.Variable((2, 3)), nn.Variable((3, 4)), X, 4), ValueError, "'h': expected shape .2, 4."),
    (
        lambda: PF.lstm_cell(nn.Variable((2, 3)), nn.Variable((2, 4)), nn.Variable((2, 5)), 4),
        ValueError,
        "'c': expected",
    ),
    (lambda: PF.lstm_cell(nn.Variable((2, 3, 1)), *[nn.Variable((2, 4))] * 2, 4), ValueError, "'x': expected shape"),
    (
        lambda: PF.lstm_cell(nn.Variable((2, 3)), *[nn.Variable((2, 4))] * 2, 4, w_init=5),
        ValueError,
        "argument 'w_init'",
    ),
    (lambda: F.multi_head_attention(X, X, X, 2.5, X, X, X, X), TypeError, "'num_heads': expected an int"),
    (lambda: F.multi_head_attention(X, X, X, 2, X, X, X, X), ValueError, "'q_weight'"),
    (lambda: F.multi_head_attention(X, X, X, 2, None, X, X, X), TypeError, "'q_weight'"),
    (lambda: F.multi_head_attention(X, X, X, 2, *[nn.Variable((8, 8))] * 4, attn_bias_k=X), TypeError, "attn_bias_v"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG, ids=range(len(WRONG)))
def test_wrong_arguments_name_themselves_and_make_no_parameters(call, kind, text):
    with pytest.raises(kind, match=text) as raised:
        call()
    called = next(name for name in call.__code__.co_names if hasattr(PF, name) or name in F.__dict__)
    assert str(raised.value).startswith(f"{called}: ")
    assert len(nn.get_parameters(grad_only=False)) == 0


def test_mixed_precision_and_doubles():
    for type_config, rtol in (("half", 2e-2), ("float", 1e-5), ("double", 1e-5)):
        nn.clear_parameters()
        nn.seed(313)
        with nn.context_scope(nn.Context(["cpu:" + type_config], "CpuCachedArray", "0")):
            y, _ = PF.multi_head_attention(var(0, 4, 2, 8), var(1, 5, 2, 8), var(2, 5, 2, 8), 2)
            y.forward()
        if type_config == "half":
            rough = y.d.astype(np.float64)
            continue
        if type_config == "float":
            np.testing.assert_allclose(rough, y.d, rtol=rtol, atol=0.05)
            rough = y.d.astype(np.float64)
            continue
        np.testing.assert_allclose(rough, y.d, rtol=1e-4, atol=1e-5)
