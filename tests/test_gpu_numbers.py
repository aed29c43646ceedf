"""Random numbers, dropout and ranges of a GPU are those of the CPU: the same bits, but for logarithms and cosines.

And numbers of packed sequences that nobody looks at there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs.ext_utils import get_extension_context

SIZES = [1, 31, 32, 33, 127, 129, 100_003]
TYPES = ["float", "half", "bfloat16", "double"]


@pytest.fixture(autouse=True)
def _a_gpu() -> None:
    try:
        get_extension_context("cudnn", device_id="0")
    except Exception as e:  # noqa: BLE001 (whatever it is, there is no GPU)
        pytest.skip(str(e).splitlines()[0])


def both(f: Callable[[], nn.Variable], type_config: str) -> list[np.ndarray]:
    """What f gives on the CPU and on the GPU, from the same random stream."""
    found = []
    for backend in ("cpu", "cudnn"):
        nn.random.set_function_seed(5)
        with nn.context_scope(get_extension_context(backend, type_config=type_config)):
            y = f()
            y.forward()
            found.append(y.d.copy())
    return found


@pytest.mark.parametrize("type_config", TYPES)
@pytest.mark.parametrize("n", SIZES)
def test_uniform_numbers_and_integers(n: int, type_config: str) -> None:
    for f in (lambda: F.rand(-1, 3, shape=[n]), lambda: F.randint(-5, 1000, shape=[n])):
        np.testing.assert_array_equal(*both(f, type_config))


@pytest.mark.parametrize(("type_config", "tolerance"), [("float", 1e-6), ("double", 1e-14), ("half", 1e-3)])
@pytest.mark.parametrize("n", SIZES)
def test_normal_numbers(n: int, type_config: str, tolerance: float) -> None:
    np.testing.assert_allclose(*both(lambda: F.randn(1, 2, shape=[n]), type_config), rtol=tolerance, atol=tolerance * 4)


@pytest.mark.parametrize("type_config", TYPES)
@pytest.mark.parametrize("n", SIZES)
def test_dropout(n: int, type_config: str) -> None:
    x = np.random.default_rng(0).integers(-40, 41, n).astype(np.float32) / 16

    def gradient() -> nn.Variable:
        v = nn.Variable.from_numpy_array(x, need_grad=True)
        y = F.dropout(v, p=0.3)
        y.forward()
        y.backward()
        return F.concatenate(y.unlinked(), nn.Variable.from_numpy_array(v.g), axis=0)

    np.testing.assert_array_equal(*both(gradient, type_config))


@pytest.mark.parametrize("type_config", TYPES)
def test_ranges(type_config: str) -> None:
    for args in ((0, 1000), (3, -5, -0.1), (0, 1, 0.001), (5, 5)):
        np.testing.assert_array_equal(*both(lambda args=args: F.arange(*args), type_config))
    for args in ((0, 1, 7), (0, 10, 1), (3, -5, 2001)):
        np.testing.assert_array_equal(*both(lambda args=args: F.linspace(*args), type_config))


def test_each_run_drops_other_elements() -> None:
    """Also where runs of the rest of the graph are captured."""
    with nn.context_scope(get_extension_context("cudnn", device_id="0")):
        x = nn.Variable.from_numpy_array(np.ones(1000, np.float32), need_grad=True)
        places = nn.Variable.from_numpy_array(np.arange(1000, dtype=np.float32))
        y = F.sum(F.dropout(x * 2, p=0.5) * places)
        (gx,) = nn.grad([y], [x])
        sums, grads = [], []
        for _ in range(8):
            nn.forward_all([y, gx])
            sums.append(float(y.d))
            grads.append(float((gx.d * x.d).sum()))
        assert len(set(sums)) == 8
        np.testing.assert_allclose(grads, sums, rtol=1e-5)


NUMBERS = ([1, 3], [3, -1], [2**62, 2**62], [-(2**62), 5], [7, 7])


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
def test_wrong_numbers_stay_in_the_memory_of_a_gpu(numbers: list[int]) -> None:
    """Nobody looks at them there: each row is one of the given ones, or none of them."""
    with nn.context_scope(get_extension_context("cudnn", device_id="0")):
        counts = nn.NdArray.from_numpy_array(np.array(numbers, np.int64))
        x = nn.NdArray.from_numpy_array(np.arange(1.0, 9)[:, None] * [[1, 10]])
        rows = F._pack_padded_sequence(x, counts, False, 6)[0].data
        assert rows.shape == (6,) and set(rows[~np.isnan(rows)]) <= {*range(1, 9), *range(10, 90, 10)}
        packed = nn.NdArray.from_numpy_array(np.arange(1.0, 7))
        padded = F._pad_packed_sequence(packed, counts, False, None, 4, 3)[0].data
        found = padded[padded != 0]
        assert padded.shape == (4, 3) and len(set(found)) == len(found) and set(found) <= set(range(1, 7))
