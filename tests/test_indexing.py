"""Indexing of Variable and NdArray beside NumPy: negative steps, None among arrays, Variables as indices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import nnrs as nn

ENDS = [None, -5, -4, -3, -1, 0, 1, 2, 3, 5]
ROW, SQUARE = np.array([0, 1]), np.array([[0, 1], [1, 0]])


@pytest.mark.parametrize("step", [-3, -2, -1, 1, 2])
@pytest.mark.parametrize("kind", [nn.Variable, nn.NdArray])
def test_every_slice_of_three_elements(kind, step):
    a = np.array([1, 2, 3], "float32")
    x = kind.from_numpy_array(a)
    with nn.auto_forward():
        for start, stop in itertools.product(ENDS, ENDS):
            y = x[start:stop:step]
            np.testing.assert_array_equal(y.d if kind is nn.Variable else y.data, a[start:stop:step])


def test_nothing_from_before_the_beginning_among_other_axes():
    a = np.arange(24, dtype="float32").reshape(2, 3, 4)
    x = nn.Variable.from_numpy_array(a, need_grad=True)
    for key in [np.s_[:, -4::-1], np.s_[..., -9:-7:-2], np.s_[1, -4::-1, None, ::-1]]:
        y = x[key]
        x.g = 7
        y.forward()
        y.backward()
        assert y.shape == a[key].shape and (x.g == 7).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_new_axes_among_arrays(n):
    """NumPy's places; NNabla's differ for arrays of two axes."""
    a = np.arange(24, dtype="float32").reshape(2, 3, 4)
    x = nn.Variable.from_numpy_array(a)
    with nn.auto_forward():
        for key in itertools.product([None, ROW, SQUARE], repeat=n):
            if not 1 <= sum(p is not None for p in key) <= 3:
                continue
            np.testing.assert_array_equal(x[key].d, a[key])
            graph = tuple(p if p is None else nn.Variable.from_numpy_array(p) for p in key)
            np.testing.assert_array_equal(x[graph].d, a[key])


@pytest.mark.parametrize("key", [lambda i: np.s_[i, :], lambda i: np.s_[:, i], lambda i: np.s_[i, ...]])
def test_variables_beside_slices_are_refused_as_in_nnabla(key):
    x = nn.Variable((2, 3))
    i = nn.Variable.from_numpy_array(ROW)
    with pytest.raises(NotImplementedError, match="^indexing: argument 'key': expected Variables without slices") as e:
        x[key(i)]
    assert isinstance(e.value, nn.Error)
    with pytest.raises(NotImplementedError):
        x[key(i)] = 1


@pytest.mark.parametrize("kind", [nn.Variable, nn.NdArray])
def test_a_comparison_is_no_index(kind):
    """Its zeros and ones would be taken for places, not for a mask."""
    x = kind.from_numpy_array(np.float32([1, -2, 3]))
    for call in (lambda: x[x > 0], lambda: x.__setitem__(x > 0, 1)):
        with pytest.raises(TypeError, match="indexing: argument 'key': .*comparison") as e:
            call()
        assert isinstance(e.value, nn.Error) and "NumPy mask" in str(e.value)


@pytest.mark.parametrize("key", [slice(2**70), slice(None, -(2**70), -1), slice(-(2**63), None), slice(None, -(2**63))])
def test_slices_beyond_64_bits(key):
    x = np.arange(5, dtype=np.float32)
    y = nn.NdArray.from_numpy_array(x)[key]
    np.testing.assert_array_equal(y.data, x[key])
