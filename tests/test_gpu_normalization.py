"""Batch normalization on a GPU beside NumPy in double, over sizes that its kernels take differently: by single numbers,
by fours along a channel and across channels, in one part and in many.
"""

from __future__ import annotations

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from gpu_helpers import gpu, needs_gpu, numbers, works_on_gpu  # noqa: F401 (a fixture)

pytestmark = [needs_gpu, pytest.mark.usefixtures("works_on_gpu")]

# The shape, and the axis of the channels.
CASES = [
    ((3, 5, 7, 7), 1),
    ((2, 3, 4, 1), 1),
    ((4, 6, 4, 4), 1),
    ((5, 2, 16, 18), 1),
    ((2, 3, 200, 202), 1),
    ((64, 1, 28, 28), 1),
    ((7, 3, 5, 4), 3),
    ((7, 3, 5, 12), 3),
    ((2, 40, 60, 64), 3),
    ((9, 260), 1),
    ((3, 2, 2052), 2),
    ((2, 4), 1),
    ((5000, 8), 1),
]


@pytest.mark.parametrize(
    ("type_config", "close"), [("float", 1e-5), ("bfloat16", 2e-2), ("half", 3e-3), ("double", 1e-10)]
)
@pytest.mark.parametrize("begin", [0, 1, 4])
@pytest.mark.parametrize(("shape", "axis"), CASES)
def test_as_numpy_does_it(shape, axis, begin, type_config, close):
    """`begin`: the array is a part of another one, and begins at that element."""
    size, channels = int(np.prod(shape)), shape[axis]
    broad = [channels if i == axis else 1 for i in range(len(shape))]
    with nn.context_scope(gpu(type_config=type_config)):
        whole = nn.NdArray.from_numpy_array(numbers(size + begin, seed=1) * 3 + 2)
        x = nn.Variable(shape, need_grad=True)
        x.data = whole.narrow(0, begin, size).view(shape)
        beta, gamma, mean, variance = (
            nn.Variable.from_numpy_array(numbers(*broad, seed=k) + 2, need_grad=k < 4) for k in (2, 3, 4, 5)
        )
        y = F.batch_normalization(x, beta, gamma, mean, variance, axes=[axis], decay_rate=0.75)
        given = [np.asarray(v.d, float) for v in (x, beta, gamma, mean, variance)]
        for v in (x, beta, gamma):
            v.g = 1  # the gradients are added to what is there
        y.forward()
        seed = numbers(*shape, seed=6)
        y.backward(nn.NdArray.from_numpy_array(seed))
    a, b, c, m, v = given
    gy = seed.astype(float)
    axes, n = tuple(i for i in range(len(shape)) if i != axis), size // channels

    def over(values):
        return values.mean(axes, keepdims=True)

    centred = a - over(a)
    inverse = 1 / np.sqrt(over(centred**2) + 1e-5)
    unit = centred * inverse
    gx = c * inverse * (gy - over(gy) - unit * over(gy * unit))
    unbiased = over(centred**2) * n / (n - 1)
    scale = np.sqrt(n)
    np.testing.assert_allclose(np.asarray(y.d, float), unit * c + b, atol=close * 6, rtol=close)
    np.testing.assert_allclose(np.asarray(variance.d, float), 0.75 * v + 0.25 * unbiased, rtol=close, atol=close)
    np.testing.assert_allclose(np.asarray(mean.d, float), 0.75 * m + 0.25 * over(a), rtol=close, atol=close)
    np.testing.assert_allclose(np.asarray(x.g, float), 1 + gx, atol=close * 20 * np.abs(gx).max() + close, rtol=close)
    np.testing.assert_allclose(np.asarray(beta.g, float), 1 + n * over(gy), atol=close * scale * 10, rtol=close)
    np.testing.assert_allclose(np.asarray(gamma.g, float), 1 + n * over(gy * unit), atol=close * scale * 10, rtol=close)
