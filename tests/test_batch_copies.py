"""Large arrays that are copied in: on all threads and past the caches, where no conversion is needed."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import nnrs as nn

N = (5 << 20) // 4 + 13  # of float32: more than one part, not a multiple of a cache line

PLAIN = np.random.default_rng(0).integers(0, 1 << 15, N).astype(np.float32)
KINDS = {
    "plain": PLAIN,
    "read only": np.frombuffer(PLAIN.tobytes(), np.float32),
    "not aligned to lines": np.concatenate([PLAIN[:3], PLAIN])[3:],
    "not aligned to elements": np.frombuffer(b"." + PLAIN.tobytes(), np.float32, offset=1),
    "reversed": PLAIN[::-1],
    "big-endian": PLAIN.astype(">f4"),
    "double": PLAIN.astype(np.float64),
    "half": np.concatenate([PLAIN, PLAIN]).astype(np.float16),
    "booleans": np.random.default_rng(1).integers(0, 255, N * 4).astype(np.uint8).view(bool),
    "long": np.arange(N, dtype=np.int64) << 33,
}


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_numpys(kind):
    values = KINDS[kind]
    x = nn.Variable(values.shape)
    x.d = values
    expected = np.zeros(values.shape, x.d.dtype)
    expected[...] = values.astype(bool) if kind != "booleans" else values.view(np.uint8) != 0
    if kind != "booleans":
        expected[...] = values
    np.testing.assert_array_equal(x.d, expected)
    np.testing.assert_array_equal(nn.NdArray.from_numpy_array(values).data, expected)


def test_values_that_overlap():
    x = nn.Variable((N,))
    x.d = PLAIN
    x.d = x.d
    np.testing.assert_array_equal(x.d, PLAIN)
    whole = nn.NdArray((2, N))
    whole.data = np.stack([PLAIN, PLAIN + 1])
    part = whole.narrow(0, 0, 1)
    part.data = whole.data.reshape(-1)[5 : N + 5].reshape(1, N)
    np.testing.assert_array_equal(whole.data[0], np.concatenate([PLAIN[5:], (PLAIN + 1)[:5]]))
    np.testing.assert_array_equal(whole.data[1], PLAIN + 1)


def test_values_that_are_broadcast():
    x = nn.Variable((8, N))
    x.d = PLAIN
    assert all(np.array_equal(row, PLAIN) for row in x.d)


def test_a_view_sees_them():
    x = nn.Variable((N,))
    view = x.d
    x.d = PLAIN
    np.testing.assert_array_equal(view, PLAIN)


def test_threads_write_and_shapes_change():
    x = nn.Variable((N,))
    values = [np.full(N, i, np.float32) for i in range(4)]

    def write(own):
        for _ in range(10):
            try:
                x.d = own
            except ValueError:  # the other shape
                pass

    threads = [threading.Thread(target=write, args=(v,)) for v in values]
    for t in threads:
        t.start()
    for n in (N // 2, N, N - 1, N):
        x.reset_shape((n,), True)
    for t in threads:
        t.join()
    x.d = values[3]
    assert (x.d == 3).all()
