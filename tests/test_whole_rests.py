"""`mod2` of whole numbers: exact, and of the dividend's type, as in NNabla 1.39."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F

A = nn.NdArray.from_numpy_array
LARGE = {
    "int32": [2**24 + 1, 2**31 - 1, -(2**31), -7, 0],
    "int64": [2**53 + 1, 2**63 - 1, -(2**63), -7, 0],
    "uint64": [2**53 + 1, 2**64 - 1, 2**63, 7, 0],
    "int8": [127, -128, 5, -7, 0],
    "uint8": [255, 128, 5, 7, 0],
}


@pytest.mark.parametrize("fmod", [False, True])
@pytest.mark.parametrize("divisor", [2, 10, 3, -3])
@pytest.mark.parametrize("dtype", LARGE)
def test_they_are_those_of_numpy(dtype, divisor, fmod):
    if dtype.startswith("u") and divisor < 0:
        return
    a, b = np.array(LARGE[dtype], dtype), np.array([divisor], dtype)
    y = F.mod2(A(a), A(b), fmod=fmod)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.data, (np.fmod if fmod else np.mod)(a, b))


def test_by_zero_and_of_two_types():
    y = F.mod2(A(np.array([5, -5, 0], "int32")), A(np.zeros(3, "int32")))
    assert y.dtype == np.int32 and y.data.tolist() == [0, 0, 0]
    y = F.mod2(A(np.array([-7, 9, 100], "int32")), A(np.array([3, 4, 7], "float32")))
    assert y.dtype == np.int32 and y.data.tolist() == [2, 1, 2]
    y = F.mod2(A(np.array([-7, 9, 100], "float32")), A(np.array([3, 4, 7], "int32")))
    assert y.dtype == np.float32 and y.data.tolist() == [-1, 1, 2]
