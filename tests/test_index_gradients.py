"""Labels and indices that ask for a gradient: an error where NNabla raises one, else their gradient is left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F

X = np.arange(12.0).reshape(3, 4) + 1
COLUMN = [[0], [1], [2]]
# The call, its inputs, and which of them is the index.
REFUSED: dict[str, tuple[Any, list[Any], int]] = {
    "softmax_cross_entropy": (F.softmax_cross_entropy, [X, COLUMN], 1),
    "categorical_cross_entropy": (F.categorical_cross_entropy, [X, COLUMN], 1),
    "embed": (F.embed, [[0, 1], X], 0),
    "one_hot": (lambda i: F.one_hot(i, (3,)), [COLUMN], 0),
    "bit_shift": (lambda i: F.bit_shift(i, nn.Variable.from_numpy_array(np.array([1]))), [[1, 2]], 0),
}
# Likewise, and the gradients of the other inputs by NNabla.
ROWS = np.repeat([[1.0], [1.0], [0.0]], 4, axis=1)
STEPS = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
LEFT_ALONE: dict[str, tuple[Any, list[Any], int, list[Any]]] = {
    "gather": (F.gather, [X, [0, 1]], 1, [ROWS]),
    "gather_nd": (F.gather_nd, [X, [[0, 1]]], 1, [ROWS]),
    "scatter_nd": (lambda d, i: F.scatter_nd(d, i, (3,)), [[1, 2], [[0, 1]]], 1, [np.ones(2)]),
    "scatter_add": (F.scatter_add, [X, [[0, 1]], [[5, 6]]], 1, [np.ones((3, 4)), np.ones((1, 2))]),
    "pack_padded_sequence": (lambda x, i: F.pack_padded_sequence(x, i)[0], [X, [3, 2, 1, 1]], 1, [STEPS]),
    "pad_packed_sequence": (lambda x, i: F.pad_packed_sequence(x, i)[0], [X, [2, 1]], 1, [np.ones((3, 4))]),
    "confusion_matrix": (F.confusion_matrix, [X, COLUMN], 1, [np.zeros((3, 4))]),
    "top_n_error": (F.top_n_error, [X, COLUMN], 1, [np.zeros((3, 4))]),
}


def leaves(values: list[Any]) -> list[nn.Variable]:
    made = [nn.Variable.from_numpy_array(np.array(v, np.float32), need_grad=True) for v in values]
    for x in made:
        x.g = 7
    return made


def test_every_function_with_an_index_is_here():
    named = {f["name"] for f in nn._core.registry() if any(kind == "index" for _, kind, _ in f["inputs"])}
    assert named == REFUSED.keys() | LEFT_ALONE.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_nnabla_raises(name):
    f, values, at = REFUSED[name]
    inputs = leaves(values)
    y = f(*inputs)
    y.forward()
    with pytest.raises(RuntimeError, match=f"^{name}: .*labels and indices have no gradient") as e:
        y.backward()
    assert isinstance(e.value, nn.Error) and (inputs[at].g == 7).all()


@pytest.mark.parametrize("name", LEFT_ALONE)
@pytest.mark.parametrize("others", [True, False])
def test_nnabla_goes_on(name, others):
    f, values, at, grads = LEFT_ALONE[name]
    inputs = leaves(values)
    rest = [x for i, x in enumerate(inputs) if i != at]
    for x in rest:
        x.need_grad = others
    y = f(*inputs)
    y.forward()
    y.backward()
    assert (inputs[at].g == 7).all()
    for x, g in zip(rest, grads, strict=True):
        np.testing.assert_array_equal(x.g, 7 + g * others)


def test_derivatives_of_gathered_rows_again():
    x, i = leaves([X, [0, 1]])
    (g,) = nn.grad([F.gather(x, i) ** 3], [x])
    z = F.sum(g)
    z.forward()
    x.g = 0
    z.backward()
    np.testing.assert_allclose(x.g, 6 * X * ROWS)
    assert (i.g == 7).all()
