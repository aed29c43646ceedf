"""Parameters for the tests of files, what they look like after loading, and libraries that fail."""

import types

import numpy as np
import pytest

import nnrs as nn
from nnrs.parameter import set_parameter

KINDS = ["h5", "safetensors"]


@pytest.fixture(autouse=True)
def fresh():
    nn.clear_parameters()
    yield
    nn.clear_parameters()


@pytest.fixture(name="path", params=KINDS)
def parameter_file(request, tmp_path):
    return tmp_path / f"p.{request.param}"


def values():
    """What golden/make_parametric.py put into golden/nnabla.h5: name, values, need_grad."""
    g = np.random.RandomState(5)
    return [
        ("z/conv/W", g.randn(2, 3).astype(np.float32), True),
        ("a", g.randn(4), False),
        ("half", g.randn(3).astype(np.float16), True),
        ("empty", np.ones((0, 2), np.float32), True),
        ("z/conv/b", np.array([7, -1], np.int32), True),
        ("scalar", np.array(0.5, np.float32), False),
    ]


def make(rows):
    for name, array, need_grad in rows:
        set_parameter(name, nn.Variable.from_numpy_array(array, need_grad=need_grad))


def contents():
    """Parameters as plain data; the tree lists a scope's members together, so sort by name."""
    found = nn.get_parameters(grad_only=False)
    return {n: (v.need_grad, str(v.data.data.dtype), v.shape, v.data.data.tobytes()) for n, v in found.items()}


def expected(rows):
    return {n: (need_grad, str(a.dtype), a.shape, a.tobytes()) for n, a, need_grad in rows}


def of_a_library(f):
    """`f` as if NumPy had it: what it raises is none of the user's exceptions."""
    return types.FunctionType(
        f.__code__, {**f.__globals__, "__name__": "numpy"}, f.__name__, f.__defaults__, f.__closure__
    )
