"""Functions that count elements when they are called count what their kernels see: numbers in the context's type."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs.ext_utils import get_extension_context

A = nn.NdArray.from_numpy_array
PAIRS = [
    ([0.1, 0.1 + 1e-12], "float64"),
    ([2**24 + 1, 2**24], "int32"),
    ([1e-60, 0], "float64"),
    ([1e300, 2e300], "float64"),
]


@pytest.mark.parametrize(("type_config", "dtype"), [("float", np.float32), ("double", np.float64)])
@pytest.mark.parametrize(("values", "given"), PAIRS)
def test_as_numpy_counts_in_that_type(values, given, type_config, dtype):
    x = np.array(values, given)
    with np.errstate(over="ignore"):
        seen = x.astype(dtype)
    with nn.context_scope(get_extension_context("cpu", type_config=type_config)):
        assert F.unique(A(x)).data.tolist() == np.unique(seen).tolist()
        assert F.unique(A(x), flatten=False, axis=0).data.tolist() == np.unique(seen).tolist()
        assert F.nonzero(A(x)).data.tolist() == [np.nonzero(seen)[0].tolist()]
        rows = np.arange(2, dtype=np.float32)
        assert F.bool_gather(A(rows), A(x)).data.tolist() == rows[seen != 0].tolist()
