"""What the tests of GPUs share. They need one, or NNRS_CUDA=emulate in a build with the feature `emulate`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import nnrs as nn
from nnrs.ext import cuda
from nnrs.ext_utils import get_extension_context

Array = np.ndarray

try:
    DEVICES, WHY = cuda.get_device_count(), ""
except RuntimeError as e:
    DEVICES, WHY = 0, str(e)

needs_gpu = pytest.mark.skipif(not DEVICES, reason=WHY)


def gpu(**kw: str) -> nn.Context:
    return get_extension_context("cudnn", **kw)


def cpu() -> nn.Context:
    return get_extension_context("cpu")


@pytest.fixture
def works_on_gpu() -> Iterator[None]:
    """Works on the GPU, and says nothing of functions that run on the host."""
    with nn.context_scope(gpu()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "nnrs: .* runs on the host")
        yield


def replays(root: nn.Variable) -> list[int]:
    """How often each plan of a root was replayed; -1: nothing is captured."""
    words = [text.split() for text in cuda.graphs(root)]
    return [int(w[w.index("replayed") + 1]) if "replayed" in w else -1 for w in words]


@contextmanager
def graphs(on: bool) -> Iterator[None]:
    """With captured runs, or without."""
    old = cuda.set_graphs(on)
    try:
        yield
    finally:
        cuda.set_graphs(old)


def variable(values: object, need_grad: bool = False) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=need_grad)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
