"""What the tests of threads and forks share: work on several threads, and a network that several threads run."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from graph_helpers import leaf


@pytest.fixture(autouse=True)
def threads():
    old = nn.get_num_threads()
    yield
    nn.set_num_threads(old)


def parallel(*works):
    """Runs each work on a thread of its own; raises the first exception."""
    failed = []

    def guard(work):
        try:
            work()
        except BaseException as e:
            failed.append(e)

    ts = [threading.Thread(target=guard, args=(w,)) for w in works]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    if failed:
        error = failed[0]
        failed.clear()
        raise error


def network(n=64, seed=0):
    """A network with a product, a reduction and element-wise parts, large enough to be run by several threads."""
    rng = np.random.default_rng(seed)
    x = leaf(rng.normal(size=(n, 300)), False)
    w1, b1 = leaf(rng.normal(size=(300, 200)) * 0.1), leaf(rng.normal(size=200))
    w2 = leaf(rng.normal(size=(200, 10)) * 0.1)
    h = F.tanh(F.affine(x, w1, b1))
    y = F.softmax(F.affine(h * F.sigmoid(h), w2))
    return F.sum(y * y), [x, w1, b1, w2]


def step(y, leaves):
    for v in leaves:
        v.grad.zero()
    y.forward()
    y.backward()
    return [y.d.tobytes()] + [v.g.tobytes() for v in leaves]
