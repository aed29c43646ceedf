"""300 random graphs against a reference interpreter: see `machine/`. `make soak` runs as many as you like."""

from __future__ import annotations

import gc

import pytest

import nnrs as nn
from machine import engine
from machine.shrink import failure

GRAPHS, PARTS = 300, 4


@pytest.fixture(autouse=True)
def settings():
    """The machine changes fusion and the number of threads."""
    threads, fusion = nn.get_num_threads(), nn.set_fusion(True)
    engine.prepare()
    yield
    nn.backward_functions.unregister(engine.Square.name)
    nn.set_fusion(fusion)
    nn.set_num_threads(threads)


@pytest.mark.parametrize("part", range(PARTS))
def test_random_graphs(part):
    gc.collect()  # what other tests left must not go while a graph counts what is alive
    gc.disable()
    try:
        found = [failure(seed) for seed in range(part, GRAPHS, PARTS)]
    finally:
        gc.enable()
    assert not any(found), "\n".join(filter(None, found))
