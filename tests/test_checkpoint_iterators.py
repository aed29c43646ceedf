"""Iterators go on with the batches that would have come, whatever source, cache or slice, in the midst of epochs."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnrs as nn
from nnrs.checkpoint import Checkpoints
from nnrs.utils import data_source as sources
from nnrs.utils.create_cache import CreateCache
from nnrs.utils.data_iterator import (
    DataIterator,
    data_iterator,
    data_iterator_cache,
    data_iterator_concat_datasets,
    data_iterator_csv_dataset,
    data_iterator_simple,
)
from nnrs.utils.data_source_implements import CsvDataSource, SimpleDataSource

SIZE, BATCH = 23, 4


def load(i):
    return np.full((2,), i, np.float32), i


class Digits(sources.DataSource):
    """As users of NNabla write theirs: an order and a generator of their own."""

    def __init__(self, shuffle=True):
        super().__init__(shuffle=shuffle)
        self._images = np.arange(SIZE * 2, dtype=np.float32).reshape(SIZE, 2)
        self._size, self._variables = SIZE, ("x", "y")
        self.rng = np.random.RandomState(3)
        self.passes = 0
        self.reset()

    def _get_data(self, position):
        return self._images[self._indexes[position]], np.array(self.passes)

    def reset(self):
        self._indexes = self.rng.permutation(self._size) if self._shuffle else np.arange(self._size)
        self.passes += 1
        super().reset()


class InPlace(Digits):
    """One that shuffles its order in place, with NumPy's newer generator."""

    def __init__(self):
        self.fresh = np.random.default_rng(4)
        super().__init__()

    def reset(self):
        if not hasattr(self, "_indexes"):
            self._indexes = np.arange(self._size)
        self.fresh.shuffle(self._indexes)
        sources.DataSource.reset(self)


class Duck:
    """A source that is none of nnrs's, but can tell where it is."""

    size, variables, shuffle = SIZE, ("x",), False

    def __init__(self):
        self.position = self.seen = 0

    def next(self):
        self.position += 1
        self.seen += 1
        return (np.array(self.seen),)

    def reset(self):
        self.position = 0

    def apply_order(self): ...
    def close(self): ...

    def get_state(self):
        return {"position": self.position, "seen": self.seen}

    def set_state(self, state):
        self.position, self.seen = state["position"], state["seen"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    found = tmp_path_factory.mktemp("data")
    (found / "table.csv").write_text("x__0,x__1,y\n" + "".join(f"{i},{i * i},{-i}\n" for i in range(SIZE)))
    for kind in ("npy", "h5"):
        if kind == "npy" or pytest.importorskip("h5py"):
            before = dict(nn.config.nnabla_config["DATA_ITERATOR"])
            nn.config.nnabla_config["DATA_ITERATOR"]["data_source_file_cache_size"] = "5"
            nn.config.nnabla_config["DATA_ITERATOR"]["cache_file_format"] = f".{kind}"
            (found / kind).mkdir()
            CreateCache(str(found / "table.csv")).create(str(found / kind))
            nn.config.nnabla_config.read_dict({"DATA_ITERATOR": before})
    return found


def simple(**options):
    return data_iterator_simple(load, SIZE, BATCH, **options)


def draws_for_each(i):
    return (np.float32(i + nn.random.prng.rand()),)


MAKE: dict[str, Any] = {
    "plain": lambda f: simple(),
    "shuffled": lambda f: simple(shuffle=True),
    "no thread": lambda f: simple(shuffle=True, use_thread=False),
    "own generator": lambda f: simple(shuffle=True, rng=np.random.default_rng(1)),
    "memory": lambda f: simple(shuffle=True, with_memory_cache=True),
    "files": lambda f: simple(shuffle=True, with_file_cache=True),
    "memory over files": lambda f: simple(shuffle=True, with_memory_cache=True, with_file_cache=True),
    "one generator for all": lambda f: simple(
        shuffle=True, with_memory_cache=True, with_file_cache=True, rng=np.random.RandomState(8)
    ),
    "end": lambda f: simple(shuffle=True, stop_exhausted=True),
    "csv": lambda f: data_iterator_csv_dataset(str(f / "table.csv"), BATCH, shuffle=True, with_file_cache=False),
    "csv plain": lambda f: data_iterator_csv_dataset(
        str(f / "table.csv"), BATCH, with_file_cache=False, with_memory_cache=False
    ),
    "csv in files": lambda f: data_iterator_csv_dataset(str(f / "table.csv"), BATCH, shuffle=True),
    "npy": lambda f: data_iterator_cache(str(f / "npy"), BATCH, shuffle=True),
    "h5": lambda f: data_iterator_cache(str(f / "h5"), BATCH, shuffle=True, with_memory_cache=False),
    "joined": lambda f: data_iterator_concat_datasets(
        [SimpleDataSource(load, 10, shuffle=True), CsvDataSource(str(f / "table.csv")), SimpleDataSource(load, 5)][::2],
        BATCH,
        shuffle=True,
    ),
    "slice": lambda f: simple(shuffle=True).slice(None, 3, 1),
    "cached slice": lambda f: simple(shuffle=True).slice(np.random.RandomState(2), 3, 2, use_cache=True),
    "slice in files": lambda f: simple(shuffle=True, with_file_cache=True).slice(None, 3, 2, use_cache=True),
    "slice of a cache": lambda f: simple(shuffle=True, with_memory_cache=True).slice(None, 2, 1),
    "slice of csv": lambda f: data_iterator_csv_dataset(str(f / "table.csv"), BATCH, shuffle=True).slice(None, 2, 0),
    "user's": lambda f: data_iterator(Digits(), BATCH, with_memory_cache=False),
    "user's in memory": lambda f: data_iterator(Digits(), BATCH),
    "user's in files": lambda f: data_iterator(Digits(), BATCH, with_file_cache=True),
    "user's in place": lambda f: data_iterator(InPlace(), BATCH, with_memory_cache=False),
    "not nnrs's": lambda f: DataIterator(Duck(), BATCH),
    "random samples": lambda f: data_iterator_simple(draws_for_each, SIZE, BATCH, shuffle=True),
}


@pytest.fixture(autouse=True)
def no_thread_stays():
    yield
    gc.collect()
    for thread in [t for t in threading.enumerate() if t.name == "nnrs-batches"]:
        thread.join(20)
        assert not thread.is_alive()


def take(iterator, count: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(count):
        try:
            batch = iterator.next()
        except StopIteration:
            found.append("end")
            iterator._reset()
        else:
            found.append([a.tolist() for a in batch])
        found.append((iterator.epoch, iterator.position))
    return found


# Two numbers for each, others for the next; all in the long test.
TAKEN = [
    pytest.param(name, taken, marks=[] if (i + k) % 5 in (0, 2) else pytest.mark.long)
    for i, name in enumerate(MAKE)
    for k, taken in enumerate((0, 2, 7, 31, 103))
]


@pytest.mark.parametrize(("name", "taken"), TAKEN)
def test_the_next_batches_are_those_that_would_have_come(name, taken, folder, tmp_path):
    nn.seed(4)
    with MAKE[name](folder) as first:
        take(first, taken)
        Checkpoints(tmp_path, iterators=first).save(taken)
        expected = take(first, 40)
    nn.seed(4)
    with MAKE[name](folder) as second:
        Checkpoints(tmp_path, iterators=second).load()
        assert take(second, 40) == expected


@pytest.mark.parametrize("name", [name for name in MAKE if name != "end"])
def test_an_iterator_goes_back_and_forth(name, folder, tmp_path):
    with MAKE[name](folder) as iterator:
        points = Checkpoints(tmp_path, iterators=iterator, keep=None)
        take(iterator, 3)
        points.save(0)
        first = take(iterator, 20)
        points.save(1)
        second = take(iterator, 20)
        for step, expected in ((0, first), (1, second), (0, first)):
            points.load(points.path(step))
            assert take(iterator, 20) == expected


def test_slices_of_one_source_share_its_order(tmp_path):
    def make():
        whole = simple(shuffle=True)
        return {"a": whole.slice(None, 2, 0), "b": whole.slice(None, 2, 1)}

    first = make()
    for _ in range(5):
        take(first["a"], 2), take(first["b"], 2)
    Checkpoints(tmp_path, iterators=first).save(1)
    expected = [take(i, 20) for i in first.values()]
    second = make()
    Checkpoints(tmp_path, iterators=second).load()
    assert [take(i, 20) for i in second.values()] == expected


def test_callbacks_go_on_counting(tmp_path):
    ended: list[int] = []
    options = {"epoch_end_callbacks": [ended.append], "shuffle": True}
    with simple(**options) as first:
        take(first, 13)
        Checkpoints(tmp_path, iterators=first).save(1)
    ended.clear()
    with simple(**options) as second:
        Checkpoints(tmp_path, iterators=second).load()
        take(second, 11)
    assert ended == [2, 3]


def test_a_batch_that_failed_is_tried_again(tmp_path):
    def make():
        failures = [5]

        def load_or_fail(i):
            if i == 5 and failures:
                failures.pop()
                raise OSError("later")
            return (np.float32(i),)

        return data_iterator_simple(load_or_fail, 12, 4)

    with make() as first, make() as second:
        take(first, 1)
        with pytest.raises(OSError):
            first.next()
        Checkpoints(tmp_path, iterators=first).save(1)
        Checkpoints(tmp_path, iterators=second).load()
        with pytest.raises(OSError):
            second.next()
        assert second.next()[0].tolist() == [4, 5, 6, 7]


def test_a_batch_made_with_a_thread_is_held_where_there_is_none(tmp_path):
    with simple(shuffle=True) as first, simple(shuffle=True, use_thread=False) as second:
        take(first, 7)
        Checkpoints(tmp_path, iterators=first).save(1)
        Checkpoints(tmp_path, iterators=second).load()
        assert take(second, 9) == take(first, 9)


OTHERS = {
    "size": (lambda: data_iterator_simple(load, SIZE + 1, BATCH), "size"),
    "batch": (lambda: data_iterator_simple(load, SIZE, BATCH + 1), "batch_size 5, got 4"),
    "cache": (lambda: simple(with_memory_cache=True), "data sources .*Memory.*, got"),
    "slice": (lambda: simple().slice(None, 1, 0), "data sources .*Sliced.*, got"),
    "generator": (lambda: simple(rng=np.random.default_rng(0)), "Generator"),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_an_iterator_of_another_kind_stays_where_it_is(name, tmp_path):
    make, text = OTHERS[name]
    with simple() as first, make() as other, make() as same:
        take(first, 3)
        Checkpoints(tmp_path, iterators=first).save(1)
        with pytest.raises(ValueError, match=text):
            Checkpoints(tmp_path, iterators=other).load()
        assert take(other, 5) == take(same, 5)


def test_a_cache_over_another_order_is_told(tmp_path):
    def make(seed):
        return data_iterator(SimpleDataSource(load, SIZE, True, np.random.RandomState(seed)), BATCH)

    with make(1) as first, make(2) as other:
        Checkpoints(tmp_path, iterators=first).save(1)
        with pytest.raises(ValueError, match=r"order of then[^$]*the same data and seeds"):
            Checkpoints(tmp_path, iterators=other).load()


def test_what_cannot_tell_where_it_is(tmp_path):
    class Mute(Duck):
        get_state = set_state = None

    with DataIterator(Mute(), BATCH) as iterator, pytest.raises(TypeError, match=r"get_state\(\) and set_state"):
        Checkpoints(tmp_path, iterators=iterator).save(1)
    with pytest.raises(TypeError, match="iterators"):
        Checkpoints(tmp_path, iterators=iter([]))
    with pytest.raises(ValueError, match="a closed one"):
        Checkpoints(tmp_path, iterators=iterator)
