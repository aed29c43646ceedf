"""An epoch over 20,000 samples of 784 floats and a label, shuffled, in batches of 128: what a training step waits for.

A worker is a thread of NNabla's and nnrs's iterators and a process (one that stays) of torch's DataLoader.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np

from .case import Case, Kit, Step

SAMPLES, SIZE, BATCH = 20_000, 784, 128


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((SAMPLES, SIZE), dtype=np.float32), rng.integers(0, 10, SAMPLES)


def nabla_epoch(worker: bool, memory: bool) -> Callable[[Kit], Step]:
    """An epoch of `data_iterator_simple`; with memory, one in which the cache is full."""

    def build(kit: Kit) -> Step:
        x, t = data()
        made = import_module(f"{kit.package}.utils.data_iterator")
        batches = made.data_iterator_simple(
            lambda i: (x[i], t[i]), SAMPLES, BATCH, shuffle=True, use_thread=worker, with_memory_cache=memory
        )

        def step():
            for _ in range(SAMPLES // BATCH):
                batches.next()

        return step

    return build


def torch_epoch(worker: bool) -> Callable[[], Step]:
    def build() -> Step:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        x, t = data()
        pairs = TensorDataset(torch.from_numpy(x), torch.from_numpy(t))
        batches = DataLoader(pairs, BATCH, shuffle=True, num_workers=int(worker), persistent_workers=worker)

        def step():
            for _ in batches:
                pass

        return step

    return build


def case(name: str, title: str, worker: bool, memory: bool) -> Case:
    return Case(name, title, nabla_epoch(worker, memory), torch_epoch(worker), {"torch": 0.3}, SAMPLES)


CASES = [
    case("feed", "a sample of 784 floats by a function", False, False),
    case("feed-worker", "the same, one worker", True, False),
    case("feed-memory", "a sample of 784 floats from the memory cache", False, True),
    case("feed-memory-worker", "the same, one worker", True, True),
]
