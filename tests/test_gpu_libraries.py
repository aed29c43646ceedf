"""Matrix products and convolutions by NVIDIA's libraries, beside kernels of our own and NumPy.

On a GPU wherever the libraries are; NNRS_CUDA=emulate NNRS_CUDA_LIBRARIES=1 has them done by plain loops, which checks
what they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from backend import BACKEND
from nnrs.ext_utils import get_extension_context

pytestmark = pytest.mark.skipif(BACKEND == "cpu", reason="a test of GPUs")

Array = np.ndarray


@pytest.fixture(autouse=True)
def _libraries() -> Iterator[None]:
    from nnrs.ext import cuda

    missing = cuda.why_no_library()
    if not {"cuBLASLt", "cuDNN"}.isdisjoint(missing):
        pytest.skip(f"no library: {missing}")
    old = cuda.set_libraries(True)
    yield
    cuda.set_libraries(old)


def numbers(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def leaf(a: Array) -> nn.Variable:
    return nn.Variable.from_numpy_array(a, need_grad=True)


@pytest.mark.parametrize("transpose", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 1, 5), (1, 4, 7), (5, 6, 1), (33, 17, 65)])
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("type_config", ["float", "half", "bfloat16", "double"])
def test_batch_matmul(transpose, sizes, batch, type_config):
    m, n, k = sizes
    a = numbers(0, *batch, *((k, m) if transpose[0] else (m, k)))
    b = numbers(1, *batch, *((n, k) if transpose[1] else (k, n)))
    x, w = leaf(a), leaf(b)
    turn = [(lambda v: np.swapaxes(v, -1, -2)) if t else (lambda v: v) for t in transpose]
    gy = numbers(2, *batch, m, n)
    with nn.context_scope(get_extension_context(BACKEND, type_config=type_config)):
        y = F.batch_matmul(x, w, transpose_a=transpose[0], transpose_b=transpose[1])
        y.forward()
        x.g = w.g = 1  # the gradients are added to what is there
        y.backward(nn.NdArray.from_numpy_array(gy))
    left, right, seed = turn[0](a).astype(float), turn[1](b).astype(float), gy.astype(float)
    close = {"float": 1e-5, "double": 1e-6, "half": 1e-2, "bfloat16": 8e-2}[type_config]
    for found, wanted in [
        (y.d, left @ right),
        (x.g, 1 + turn[0](seed @ np.swapaxes(right, -1, -2))),
        (w.g, 1 + turn[1](np.swapaxes(left, -1, -2) @ seed)),
    ]:
        np.testing.assert_allclose(np.asarray(found, float), wanted, rtol=close, atol=close * np.sqrt(k + n + m) * 4)


CONVOLUTIONS = [
    {"shape": (2, 4, 9), "kernel": (3,), "pad": (1,), "stride": (2,)},
    {"shape": (2, 4, 9, 8), "kernel": (3, 2), "pad": (1, 0), "stride": (2, 1), "dilation": (1, 2)},
    {"shape": (2, 4, 5, 6, 4), "kernel": (3, 3, 2), "pad": (1, 1, 1)},
    {"shape": (2, 6, 7, 7), "kernel": (3, 3), "pad": (1, 1), "group": 2},
    {"shape": (2, 6, 7, 7), "kernel": (3, 3), "pad": (1, 1), "group": 6},
]


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize("backwards", [False, True], ids=["convolution", "deconvolution"])
def test_convolutions_as_by_kernels_of_our_own(case, channel_last, backwards):
    from nnrs.ext import cuda

    case = dict(case)
    shape, kernel, group = case.pop("shape"), case.pop("kernel"), case.get("group", 1)
    maps, inside = (shape[1], 12 // group) if backwards else (12, shape[1] // group)
    arrange = (lambda v: np.ascontiguousarray(np.moveaxis(v, 1, -1))) if channel_last else (lambda v: v)
    x, w, b = numbers(0, *shape), numbers(1, maps, inside, *kernel), numbers(2, 12)
    results = []
    for libraries in (True, False):
        cuda.set_libraries(libraries)
        v = [leaf(arrange(x)), leaf(arrange(w)), leaf(b)]
        f = F.deconvolution if backwards else F.convolution
        y = f(*v, channel_last=channel_last, **case)
        y.forward()
        for u in v:
            u.g = 1
        y.backward(nn.NdArray.from_numpy_array(numbers(3, *y.shape)))
        results.append([y.d.copy(), *(u.g.copy() for u in v)])
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("type_config", ["float", "bfloat16"])
@pytest.mark.parametrize("channel_last", [False, True])
def test_ways_that_are_measured_give_what_estimated_ones_give(channel_last, type_config):
    from nnrs.ext import cuda

    found = []
    for on in (False, True):
        old = cuda.set_autotune(on)
        try:
            with nn.context_scope(get_extension_context(BACKEND, type_config=type_config)):
                x, w = (
                    leaf(numbers(0, 4, 16, 10, 12)),
                    leaf(numbers(1, 32, *((3, 3, 12) if channel_last else (16, 3, 3)))),
                )
                y = F.convolution(x, w, pad=(1, 1), channel_last=channel_last)
                gy = nn.NdArray.from_numpy_array(numbers(2, *y.shape))
                runs = []
                for _ in range(5):  # the last ones captured
                    x.g = w.g = 0
                    y.forward()
                    y.backward(gy)
                    runs.append([a.astype(float) for a in (y.d, x.g, w.g)])
        finally:
            assert cuda.set_autotune(old) is on
        for a, b in zip(runs[0], runs[-1], strict=True):
            np.testing.assert_array_equal(a, b)
        found.append(runs[0])
    close = {"float": 1e-4, "bfloat16": 2e-2}[type_config]
    for a, b in zip(*found, strict=True):
        assert np.linalg.norm(a - b) < close * np.linalg.norm(a)


def test_the_libraries_do_it():
    """What they say is used in the graph: emulated ones sum in double precision, so the float is the nearest."""
    from nnrs.ext import cuda

    if cuda.libraries()["cuBLASLt"] != "emulated":
        pytest.skip("NVIDIA's own libraries round as they do")
    a, b = numbers(0, 40, 301), numbers(1, 301, 20)
    y = F.affine(leaf(a), leaf(b))
    y.forward()
    nearest = (a.astype(float) @ b.astype(float)).astype(np.float32)
    np.testing.assert_array_equal(y.d, nearest)
    cuda.set_libraries(False)
    y.forward()
    assert (y.d != nearest).any()


def test_captured_runs_have_the_libraries_in_them():
    from nnrs.ext import cuda

    x, w = leaf(numbers(0, 2, 3, 8, 8)), leaf(numbers(1, 8, 3, 3, 3))
    h = F.relu(F.convolution(x, w, pad=(1, 1)))
    y = F.sum(F.affine(h, leaf(numbers(2, 8 * 64, 5))) ** 2)
    found = []
    for _ in range(6):
        w.grad.zero()
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)
        found.append((y.d.copy(), w.g.copy()))
    for d, g in found[1:]:
        np.testing.assert_array_equal(d, found[0][0])
        np.testing.assert_array_equal(g, found[0][1])
    assert any("replayed" in line and "replayed 0" not in line for line in cuda.graphs(y)), cuda.graphs(y)
    x.d *= 2
    y.forward()
    cuda.set_libraries(False)
    again = y.d.copy()
    y.forward()
    np.testing.assert_allclose(again, y.d, rtol=1e-4)
