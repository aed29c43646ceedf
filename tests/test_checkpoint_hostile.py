"""Checkpoints whose checksum is right and whose values are anything: an error of nnrs, and nothing has changed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnrs as nn
from nnrs import _checkpoint_files as files
from nnrs import _core, _random_state
from nnrs.checkpoint import Checkpoints
from nnrs.utils import _positions
from nnrs.utils.data_iterator import data_iterator_simple
from test_checkpoint import Net, seeded

VALUES: list[Any] = [None, 0, -1, 10**30, "x", [], {}, (), np.zeros(3), np.zeros((2, 2)), True, 1.5, [1, 2], {"a": 1}]
GONE = object()


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values within one."""
    if before:
        yield before
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for key, inner in items:
        yield from places(inner, (*before, key))


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A copy in which another value stands at a place, or none."""
    if not place:
        return new
    made = dict(value) if isinstance(value, dict) else list(value)
    made[place[0]] = changed(value[place[0]], place[1:], new)
    if made[place[0]] is GONE:
        del made[place[0]]
    return tuple(made) if isinstance(value, tuple) else made


class Training:
    """One with all that a checkpoint has."""

    def __init__(self, folder: Any) -> None:
        self.net = Net().train(2)
        options = {"shuffle": True, "with_memory_cache": True, "with_file_cache": True}
        self.data = data_iterator_simple(lambda i: (np.float32(i), i), 23, 4, **options)
        self.own = np.random.default_rng(1)
        self.graph = seeded()
        self.graph.forward()
        self.points = self.net.points(folder, iterators=self.data, generators=self.own, graphs=self.graph)
        for _ in range(9):
            self.data.next()

    def all(self) -> str:
        positions = _positions.positions_of({"0": self.data})
        generators = [_random_state.state_of(g) for g in (self.own, nn.random.prng, np.random.mtrand._rand)]
        draws = _random_state.draws_of(self.graph), _core.random_stream()
        return repr((self.net.all(), positions, generators, random.getstate(), draws))


def attempt(load: Callable[[], Any]) -> bool:
    try:
        load()
    except nn.Error:
        return True
    return False


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.long) for s in (1, 2))])
def test_any_value_at_any_place(seed, tmp_path):
    training = Training(tmp_path)
    path = training.points.save(1)
    contents, stamp, _ = files.read("load", path)
    rng, all_places, errors = random.Random(seed), list(places(contents)), 0
    with training.data:
        for _ in range(60):
            place, new = rng.choice(all_places), rng.choice([*VALUES, GONE, GONE])
            files.write("save", path, changed(contents, place, new), stamp)
            before = training.all()
            if attempt(lambda: training.points.load(path)):
                errors += 1
                assert training.all() == before, (place, new)
            else:
                files.write("save", path, contents, stamp)
                training.points.load(path)
    assert errors > 30


STAMPS: list[dict[str, Any]] = [
    {},
    {"step": 1},
    {"step": "x", "size": 1, "parts": {}},
    {"step": 1, "size": "2", "parts": 3},
    {"step": 1, "size": 10**15, "parts": {}},
    {"step": 1, "size": 2, "parts": {"x": 1}},
]


@pytest.mark.parametrize("stamp", STAMPS)
def test_any_stamp(stamp, tmp_path):
    path = Checkpoints(tmp_path).path(1)
    files.write("save", path, {"parameters": {}, "solvers": {}, "own": {}}, stamp)
    with pytest.raises(ValueError, match=r"part of a checkpoint|this version"):
        Checkpoints(tmp_path).load(path)
    assert Checkpoints(tmp_path).latest() is None
