"""nnrs.numpy_compat_functions: `dot`, as NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
from nnrs.numpy_compat_functions import dot


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 2)),
        ((3,), (3,)),
        ((), (3,)),
        ((2, 2), ()),
        ((), ()),
        ((2, 2, 3), (3, 2)),
        ((2, 2, 3), (2, 3, 2)),
        ((2, 2, 3), (3,)),
        ((3,), (2, 3, 2)),
    ],
)
def test_dot(a: tuple[int, ...], b: tuple[int, ...]):
    rng = np.random.default_rng(1)
    x, y = (np.asarray(rng.standard_normal(s), np.float32) for s in (a, b))
    with nn.auto_forward():
        z = dot(nn.Variable.from_numpy_array(x), nn.Variable.from_numpy_array(y))
    np.testing.assert_allclose(z.d, np.dot(x, y), rtol=1e-5, atol=1e-6)


def test_numbers_and_out():
    x = nn.NdArray.from_numpy_array(np.array([1.0, 2.0]))
    assert dot(2.0, x).data.tolist() == [2, 4]
    assert dot(x, 3).data.tolist() == [3, 6]
    out = nn.NdArray((2,))
    dot(x, nn.NdArray.from_numpy_array(np.array([[1.0, 2.0], [3.0, 4.0]])), out=out)
    assert out.data.tolist() == [7, 10]
    y = nn.Variable((2,))
    dot(nn.Variable.from_numpy_array(np.array([1.0, 2.0])), nn.Variable.from_numpy_array(np.eye(2)), out=y).forward()
    assert y.d.tolist() == [1, 2]


def test_wrong_arguments():
    x = nn.Variable((2, 3))
    with pytest.raises(ValueError, match="argument 'b'.*size 3 at axis 0"):
        dot(x, nn.Variable((2, 2)))
    with pytest.raises(TypeError, match="argument 'a'"):
        dot(np.zeros(2), x)
    with pytest.raises(ValueError, match="argument 'out'.*shape"):
        dot(x, nn.Variable((3, 2)), out=nn.Variable((2, 3)))
