"""A function whose arguments leave nothing to be done still gives a new array, as in NNabla.

The exceptions, which hand the input back, are NNabla's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnrs as nn
import nnrs.function_bases as FB
import nnrs.functions as F
import nnrs.normalization_functions as N

NOTHING_TO_DO: dict[str, Callable[[Any], Any]] = {
    "einsum": lambda x: F.einsum(x, equation="ij->ij"),
    "einsum, implicit": lambda x: F.einsum(x, equation="ij"),
    "einsum, ellipsis": lambda x: F.einsum(x, equation="...->..."),
    "reshape": lambda x: F.reshape(x, x.shape),
    "reshape, apart": lambda x: F.reshape(x, x.shape, inplace=False),
    "transpose": lambda x: F.transpose(x, (0, 1)),
    "broadcast": lambda x: F.broadcast(x, x.shape),
    "broadcast_to": lambda x: F.broadcast_to(x, x),
    "concatenate": lambda x: F.concatenate(x, axis=0),
    "dropout": lambda x: F.dropout(x, 0.0),
    "pad": lambda x: F.pad(x, (0, 0)),
    "tile": lambda x: F.tile(x, (1, 1)),
    "slice": lambda x: F.slice(x, (0, 0), (2, 3)),
    "sum": lambda x: F.sum(x, ()),
    "mean": lambda x: F.mean(x, ()),
    "max": lambda x: F.max(x, ()),
    "prod": lambda x: F.prod(x, ()),
    "flip": lambda x: F.flip(x, ()),
    "shift": lambda x: F.shift(x, (0, 0)),
    "getitem": lambda x: x[...],
    "add_n": F.add_n,
    "mul_n": F.mul_n,
    "pow_scalar": lambda x: F.pow_scalar(x, 1),
    "add_scalar": lambda x: x + 0,
    "mul_scalar": lambda x: x * 1,
    "clip_by_value": lambda x: F.clip_by_value(x, -1e9, 1e9),
    "trilu": lambda x: F.trilu(x, k=5, upper=False),
    "identity": F.identity,
    "function_bases": lambda x: FB.broadcast(x, x.shape),
    "normalization_functions": lambda x: N.reshape(x, x.shape),
}


@pytest.mark.parametrize("need_grad", [True, False])
@pytest.mark.parametrize("name", NOTHING_TO_DO)
def test_the_result_is_a_variable_of_its_own(name, need_grad):
    x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3), need_grad=need_grad)
    y = NOTHING_TO_DO[name](x)
    assert y is not x and y != x and y.parent is not None and y.need_grad == need_grad
    y.forward()
    np.testing.assert_array_equal(y.d, x.d)
    y.need_grad = False
    assert x.need_grad == need_grad


@pytest.mark.parametrize("name", [name for name in NOTHING_TO_DO if name != "reshape"])
def test_the_result_of_an_ndarray_is_an_array_of_its_own(name):
    x = nn.NdArray.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3))
    y = NOTHING_TO_DO[name](x)
    assert y is not x
    y.data[...] = -1
    assert x.data.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("quantize", ["fixed_point_quantize", "pow2_quantize"])
def test_what_does_not_quantize_hands_its_input_back(quantize):
    x = nn.Variable((2, 3))
    assert getattr(F, quantize)(x, quantize=False) is x
    assert (+x) is x
