"""`multi_head_attention` as NNabla has it, and `scaled_dot_product_attention`: the engine puts them together."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, TypeVar

from . import _core
from ._core import NdArray, Variable
from ._errors import ArgumentError, check_type, message

A = TypeVar("A", Variable, NdArray)
HERE = "multi_head_attention"


def multi_head_attention(
    query: A,
    key: A,
    value: A,
    num_heads: int,
    q_weight: A,
    k_weight: A,
    v_weight: A,
    out_weight: A,
    q_bias: A | None = None,
    k_bias: A | None = None,
    v_bias: A | None = None,
    out_bias: A | None = None,
    attn_bias_k: A | None = None,
    attn_bias_v: A | None = None,
    dropout: float = 0.0,
    additive_mask: A | None = None,
    key_padding_mask: A | None = None,
) -> tuple[A, A]:
    """Attention of several heads (Vaswani et al., 2017), `softmax(q k' / sqrt(E / num_heads)) v` of each head.

    L_T queries and L_S keys and values, B sequences side by side.

    Args:
        query: Array of shape (L_T, B, D_q).
        key: Array of shape (L_S, B, D_k).
        value: Array of shape (L_S, B, D_v).
        num_heads: Number of heads, a divisor of E and of E_v.
        q_weight: Weights of queries, of shape (D_q, E).
        k_weight: Weights of keys, of shape (D_k, E).
        v_weight: Weights of values, of shape (D_v, E_v).
        out_weight: Weights of the outputs, of shape (E_v, E_out).
        q_bias: Bias of queries, of shape (E,), or None.
        k_bias: Bias of keys, of shape (E,), or None.
        v_bias: Bias of values, of shape (E_v,), or None.
        out_bias: Bias of the outputs, of shape (E_out,), or None.
        attn_bias_k: A key more, of E numbers, or None.
        attn_bias_v: The value of it, of E_v numbers.
        dropout: Share of the weights of attention that are dropped, at least 0 and less than 1.
        additive_mask: What is added to the scores before the softmax, of shape (L_T, L_S), or None.
        key_padding_mask: 1 where a key is not to be seen, else 0; of shape (B, L_S), or None.

    Returns:
        Outputs of shape (L_T, B, E_out), and the weights of attention, of shape (B * num_heads, L_T, L_S), L_S with the
        key more.

    Raises:
        TypeError: For arguments of another type.
        ValueError: For shapes that do not fit, heads that do not divide the embeddings, or a dropout that is no share.

    >>> import nnrs as nn, nnrs.functions as F
    >>> query, key = nn.Variable((5, 2, 8)), nn.Variable((7, 2, 8))
    >>> w = nn.Variable((8, 8))
    >>> y, weights = F.multi_head_attention(query, key, key, 4, w, w, w, w)
    >>> y.shape, weights.shape
    ((5, 2, 8), (8, 5, 7))
    """
    given = locals().copy()
    for name, kind, expected in (("num_heads", Integral, "an int"), ("dropout", Real, "a number")):
        check_type(HERE, name, given[name], kind, expected)
    if num_heads < 1:
        raise ArgumentError(message(HERE, "num_heads", "1 or more", num_heads))
    made: Any = _core.attention(given, int(num_heads), float(dropout))
    return made  # type: ignore[no-any-return]


def scaled_dot_product_attention(
    query: A,
    key: A,
    value: A,
    attn_mask: A | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> A:
    """For each query the mean of all values, weighted by how well their keys match (Vaswani et al., 2017).

    It is `softmax(scale query key' + attn_mask) value`. On a CPU the scores are made block by block and never lie in
    memory as a whole (Dao et al., 2022), unless weights are dropped, or a gradient of the mask or of a gradient is
    asked for; on a GPU it is a graph of products, a softmax and a dropout. NNabla has no such function: the
    arguments are those of PyTorch.

    Args:
        query: Array of shape (.., L, E).
        key: Array of shape (.., S, E).
        value: Array of shape (.., S, E_v). The leading axes of the three broadcast.
        attn_mask: What is added to the scores, of a shape that broadcasts to (.., L, S); -inf hides a key. Or None.
        dropout_p: Share of the weights that are dropped, at least 0 and less than 1.
        is_causal: Whether query number i sees keys 0 to i alone.
        scale: Factor of the scores; 1 / sqrt(E) if None.

    Returns:
        Array of shape (.., L, E_v). NaN for a query that sees no key; maybe also where a hidden key or value is not
        finite: its weight is 0, and 0 times that is NaN.

    Raises:
        TypeError: For arguments of another type.
        ValueError: For shapes that do not fit, no key, or a dropout that is no share.

    >>> import nnrs as nn, nnrs.functions as F
    >>> x = nn.Variable.from_numpy_array([[0.0, 9.0], [9.0, 0.0]])
    >>> y = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    >>> y.forward()
    >>> y.d.round(2).tolist()
    [[0.0, 9.0], [9.0, 0.0]]
    """
    given, here = locals().copy(), "scaled_dot_product_attention"
    check_type(here, "dropout_p", dropout_p, Real, "a number")
    check_type(here, "scale", scale, (Real, type(None)), "a number or None")
    factor = None if scale is None else float(scale)
    made: Any = _core.scaled_attention(given, float(dropout_p), bool(is_causal), factor)
    return made  # type: ignore[no-any-return]
