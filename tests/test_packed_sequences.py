"""nnrs.utils.rnn: sequences of several lengths, padded and packed, as NNabla 1.39 gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnrs as nn
from nnrs.utils import rnn


def sequences(*lengths: int, kind: Any = nn.NdArray) -> list[Any]:
    """Sequences of two numbers a step: 1, 2, .. and for the next ones 10 more each."""
    return [kind.from_numpy_array(np.arange(1.0, 1 + 2 * n).reshape(n, 2) + 10 * i) for i, n in enumerate(lengths)]


def numbers(x: Any) -> list[Any]:
    return x.data.tolist() if isinstance(x, nn.NdArray) else x.d.tolist()


def test_pad_sequence():
    first, second, third = [1, 2], [11, 12], [21, 22]
    y = rnn.pad_sequence(sequences(3, 1, 2))
    assert numbers(y) == [[first, second, third], [[3, 4], [0, 0], [23, 24]], [[5, 6], [0, 0], [0, 0]]]
    y = rnn.pad_sequence(sequences(2, 1), batch_first=True, padding_value=-1.0)
    assert numbers(y) == [[first, [3, 4]], [second, [-1, -1]]]


def test_pack_sequence():
    packed = rnn.pack_sequence(sequences(3, 2, 1))
    assert numbers(packed.data) == [[1, 2], [11, 12], [21, 22], [3, 4], [13, 14], [5, 6]]
    assert numbers(packed.batch_sizes) == [3, 2, 1]
    assert packed.sorted_indices is None
    assert packed.unsorted_indices is None


def test_sequences_that_are_not_sorted():
    packed = rnn.pack_sequence(sequences(1, 3, 2), enforce_sorted=False)
    assert numbers(packed.data) == [[11, 12], [21, 22], [1, 2], [13, 14], [23, 24], [15, 16]]
    assert numbers(packed.sorted_indices) == [1, 2, 0]
    assert numbers(packed.unsorted_indices) == [2, 0, 1]


@pytest.mark.host  # a GPU is not waited for: the result is NaN there
def test_sequences_that_are_not_sorted_are_an_error():
    with pytest.raises(ValueError, match="argument 'lengths'.*largest down"):
        rnn.pack_sequence(sequences(1, 3, 2))


@pytest.mark.parametrize("batch_first", [False, True])
def test_there_and_back(batch_first: bool):
    packed = rnn.pack_sequence(sequences(1, 3, 2), enforce_sorted=False)
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first, -1.0, 4)
    expected = numbers(rnn.pad_sequence([*sequences(1, 3, 2), *sequences(4)], batch_first, -1.0))
    expected = np.array(expected)[:3] if batch_first else np.array(expected)[:, :3]
    np.testing.assert_array_equal(numbers(padded), expected)
    assert numbers(lengths) == [1, 3, 2]
    with pytest.raises(ValueError, match="argument 'total_length'.*at least 3"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_in_a_static_graph_with_gradients():
    x = sequences(1, 3, 2, kind=nn.Variable)
    for v in x:
        v.need_grad = True
    packed = rnn.pack_padded_sequence(rnn.pad_sequence(x), [1, 3, 2], enforce_sorted=False)
    padded, lengths = rnn.pad_packed_sequence(packed)
    loss = nn.functions.sum(padded**2)
    nn.forward_all([loss, lengths])
    loss.backward()
    assert lengths.d.tolist() == [1, 3, 2]
    for v in x:
        np.testing.assert_array_equal(v.g, 2 * v.d)


def test_wrong_sequences():
    with pytest.raises(ValueError, match="argument 'sequences': expected one at least"):
        rnn.pad_sequence([])
    with pytest.raises(TypeError, match=r"argument 'sequences\[0\]'"):
        rnn.pack_sequence([np.zeros((2, 2))])
    with pytest.raises(ValueError, match=r"argument 'sequences\[1\]'"):
        rnn.pad_sequence([nn.NdArray((2, 2)), nn.NdArray((2, 3))])


def test_nothing_has_any_number_of_steps_at_once() -> None:
    rows, sizes = nn.NdArray((0, 2)), nn.NdArray.from_numpy_array(np.zeros(1))
    x, lengths = nn.functions.pad_packed_sequence(rows, sizes, total_length=10**8)
    assert x.shape == (10**8, 0, 2) and lengths.shape == (0,)
