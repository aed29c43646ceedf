"""Functions that count elements when they are called count what their kernels see: numbers in the context's type."""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from gpu_helpers import DEVICES
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


# Numbers, how many are different and how many are not 0 in double, in float, in half and in bfloat16.
NUMBERS = {
    "close": (np.array([0.1, 0.1 + 1e-12]), (2, 1, 1, 1), (2, 2, 2, 2)),
    "integers": (np.array([2**24 + 1, 2**24, 2], np.int32), (3, 2, 2, 2), (3, 3, 3, 3)),
    "long integers": (np.array([2**62 + 1, 2**62], np.int64), (1, 1, 1, 1), (2, 2, 2, 2)),
    "tiny": (np.array([1e-60, 0.0]), (2, 1, 1, 1), (1, 0, 0, 0)),
    "tiny in half": (np.array([1e-20, 0.0], np.float32), (2, 2, 1, 2), (1, 1, 0, 1)),
    "close in half": (np.array([1.0, 1.0001], np.float32), (2, 2, 1, 1), (2, 2, 2, 2)),
    "huge": (np.array([1e300, 1e301, np.inf]), (3, 1, 1, 1), (3, 3, 3, 3)),
    "half": (np.array([1.0, 1.001, 0.0], np.float16), (3, 3, 3, 2), (2, 2, 2, 2)),
    "bools": (np.array([True, False, True]), (2, 2, 2, 2), (2, 2, 2, 2)),
}
TYPES = ["double", "float", "half", "bfloat16"]


@pytest.mark.parametrize("device", ["cpu", "cuda", "cudnn"])
@pytest.mark.parametrize("type_config", TYPES)
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_counted_as_the_kernel_has_them(name: str, type_config: str, device: str) -> None:
    if device != "cpu" and not DEVICES:
        pytest.skip("no GPU")
    x, different, places = NUMBERS[name]
    # The host computes in float what is stored in half and bfloat16.
    kind = TYPES.index(type_config) if device != "cpu" or type_config == "double" else 1
    rows = np.stack([x, x], 1)
    with nn.context_scope(get_extension_context(device, type_config=type_config)), nn.auto_forward():
        for a in (A(x), nn.Variable.from_numpy_array(x)):
            y, counts = F.unique(a, with_counts=True)
            assert y.shape == (different[kind],)
            assert (counts if isinstance(counts, nn.NdArray) else counts.data).data.sum() == x.size
            assert F.nonzero(a).shape == (1, places[kind])
        assert F.bool_gather(A(np.ones(x.size)), A(x)).shape == (places[kind],)
        table = A(rows)
        assert F.unique(table, flatten=False, axis=0).shape == (different[kind], 2)
        assert F.nonzero(table).shape == (2, 2 * places[kind])
