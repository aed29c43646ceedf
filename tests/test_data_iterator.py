"""Orders, shuffling and batches of data iterators are NNabla's; what goes wrong is told, and nothing hangs or is left.

golden/data_feeding.json has what NNabla gave for the runs of feeding_scenarios.py (golden/make_data.py).
"""

from __future__ import annotations

import copy
import gc
import inspect
import json
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import feeding_scenarios as scenarios
import nnrs as nn
from nnrs.utils import data_source as sources
from nnrs.utils.data_iterator import (
    DataIterator,
    data_iterator,
    data_iterator_concat_datasets,
    data_iterator_csv_dataset,
    data_iterator_simple,
)
from nnrs.utils.data_source_implements import ConcatDataSource, SimpleDataSource

GOLDEN = json.loads((Path(__file__).parent / "golden" / "data_feeding.json").read_text(encoding="utf-8"))
WAIT = 20  # seconds until a test counts as hung


@pytest.fixture(autouse=True)
def settings():
    from nnrs import config

    before = dict(config.nnabla_config["DATA_ITERATOR"])
    yield
    config.nnabla_config.read_dict({"DATA_ITERATOR": before})
    gc.collect()
    for thread in threads():
        thread.join(WAIT)
    assert not threads()


def threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "nnrs-batches"]


# --- as in NNabla -----------------------------------------------------------------------------------------------------


def needs(spec: dict[str, Any]) -> None:
    if spec["kind"] == ".h5":
        pytest.importorskip("h5py")


# Every other one without a thread, the ones between with one; both in the long test.
RUNS = [
    pytest.param(name, thread, marks=[] if (i + thread) % 2 == 0 else pytest.mark.long)
    for i, name in enumerate(scenarios.SPECS)
    for thread in (False, True)
]


@pytest.mark.parametrize(("name", "thread"), RUNS)
def test_a_run_is_nnablas(name, thread, tmp_path):
    spec = scenarios.SPECS[name]
    needs(spec)
    theirs = GOLDEN["runs"][name]
    mine = scenarios.run(spec, tmp_path, thread)
    assert mine == {k: v for k, v in theirs.items() if k in mine}


@pytest.mark.parametrize("name", scenarios.SLICES)
def test_slices_are_nnablas(name, tmp_path):
    assert scenarios.run_slices(scenarios.SLICES[name], tmp_path) == GOLDEN["slices"][name]


@pytest.mark.parametrize("name", scenarios.CACHED_SLICES)
def test_a_slice_with_caches_is_nnablas(name, tmp_path):
    assert scenarios.run_cached_slice(scenarios.CACHED_SLICES[name], tmp_path) == GOLDEN["cached slices"][name]


@pytest.mark.parametrize("name", scenarios.WRAPPED)
def test_functions_for_each_kind_of_data_are_nnablas(name, tmp_path):
    assert scenarios.run_wrapped(scenarios.WRAPPED[name], tmp_path) == GOLDEN["wrapped"][name]


def test_a_copy_of_a_source_goes_its_own_way():
    source = SimpleDataSource(lambda i: (i,), 5, shuffle=True, rng=np.random.RandomState(3))
    with data_iterator(copy.deepcopy(source), 5, with_memory_cache=False) as one:
        first = [one.next()[0].tolist() for _ in range(3)]
    with data_iterator(source, 5, with_memory_cache=False) as other:
        assert [other.next()[0].tolist() for _ in range(3)] == first


def test_names_and_defaults_are_nnablas():
    events = "epoch_begin_callbacks=(), epoch_end_callbacks=(), stop_exhausted=False"
    signatures = {
        data_iterator: "data_source, batch_size, rng=None, use_thread=True, with_memory_cache=True, "
        f"with_file_cache=False, cache_dir=None, {events}",
        data_iterator_simple: "load_func, num_examples, batch_size, shuffle=False, rng=None, use_thread=True, "
        f"with_memory_cache=False, with_file_cache=False, cache_dir=None, {events}",
        data_iterator_csv_dataset: "uri, batch_size, shuffle=False, rng=None, use_thread=True, normalize=True, "
        f"with_memory_cache=True, with_file_cache=True, cache_dir=None, {events}",
        DataIterator: f"data_source, batch_size, rng=None, use_thread=True, {events}",
        ConcatDataSource: "data_source_list, shuffle=True, rng=None",
        DataIterator.slice: "self, rng, num_of_slices=None, slice_pos=None, slice_start=None, slice_end=None, "
        "cache_dir=None, use_cache=False, drop_last=False",
    }
    for function, text in signatures.items():
        found = [p.replace(annotation=inspect.Parameter.empty) for p in inspect.signature(function).parameters.values()]
        assert str(inspect.Signature(found)) == f"({text})", function


# --- where nnrs does what is right ------------------------------------------------------------------------------------


def test_slices_with_a_memory_cache_are_the_whole_in_each_epoch():
    """As in processes of a data-parallel training, each with a source of its own. NNabla's read some twice."""
    parts = []
    for i in range(2):
        source = scenarios.custom_source(12, True, 4)
        whole = data_iterator(source, 3, rng=np.random.RandomState(4))
        parts.append(whole.slice(None, 2, i))
    for _ in range(5):
        epoch = [int(v) for part in parts for _ in range(2) for v in part.next()[1]]
        assert sorted(epoch) == list(range(12))


@pytest.mark.parametrize("kind", ["memory", "file", "both", "csv", "concatenated", "slices of a slice"])
def test_slices_beside_each_other_are_in_epochs_of_their_own(kind, tmp_path):
    """Whichever comes first to an end of an epoch: an epoch has all samples, and its order is the same in each run."""
    caches = {"with_memory_cache": kind in ("memory", "both"), "with_file_cache": kind in ("file", "both")}
    (tmp_path / "d.csv").write_text("x\n" + "\n".join(map(str, range(24))))

    def run(steps):
        rng = np.random.RandomState(7)
        if kind == "csv":
            whole = data_iterator_csv_dataset(str(tmp_path / "d.csv"), 4, shuffle=True, rng=rng, **caches)
        elif kind == "concatenated":
            sources = [SimpleDataSource(lambda i, k=k: (np.array(12 * k + i),), 12, shuffle=True) for k in range(2)]
            whole = data_iterator_concat_datasets(sources, 4, shuffle=True, rng=rng, **caches)
        else:
            whole = data_iterator_simple(lambda i: (np.array(i),), 24, 4, shuffle=True, rng=rng, **caches)
        if kind == "slices of a slice":
            whole = whole.slice(rng, slice_start=0, slice_end=24)
        parts = [whole.slice(None, 3, i) for i in range(3)]
        found = [[], [], []]
        for i in steps:
            found[i] += parts[i].next()[0].ravel().astype(int).tolist()
        for it in (*parts, whole):
            it.close()
        return found

    found = run([0, 1, 2] * 8)
    for epoch in range(4):
        assert sorted(v for part in found for v in part[8 * epoch : 8 * epoch + 8]) == list(range(24))
    orders = {tuple(v for part in found for v in part[8 * epoch : 8 * epoch + 8]) for epoch in range(4)}
    assert len(orders) >= (1 if kind == "slices of a slice" else 3 - caches["with_memory_cache"])
    steps = np.random.RandomState(0).permutation([0, 1, 2] * 8)
    assert run(steps) == found and run([0] * 8 + [2] * 8 + [1] * 8) == found
    closed = run([1] * 8)
    assert closed[1] == found[1]


@pytest.mark.parametrize("kind", ["memory", "file", "csv"])
@pytest.mark.parametrize("bound", ["function", "name", "list"])
def test_slices_made_for_each_epoch_go_on(kind, bound, tmp_path):
    """As training loops make them, whether and when the last one is freed: each epoch has an order of its own."""
    (tmp_path / "d.csv").write_text("x\n" + "\n".join(map(str, range(24))))
    caches = {"with_memory_cache": kind == "memory", "with_file_cache": kind == "file"}

    def run(which):
        rng = np.random.RandomState(7)
        if kind == "csv":
            whole = data_iterator_csv_dataset(str(tmp_path / "d.csv"), 4, shuffle=True, rng=rng, **caches)
        else:
            whole = data_iterator_simple(lambda i: (np.array(i),), 24, 4, shuffle=True, rng=rng, **caches)
        kept, found = [], []

        def batches(part):
            return tuple(int(v) for _ in range(3) for v in part.next()[0].ravel())

        for _ in range(6):
            if bound == "function":
                found.append(batches(whole.slice(None, 2, which)))
                continue
            part = whole.slice(None, 2, which)
            kept += [part] if bound == "list" else []
            found.append(batches(part))
        for it in (*kept, whole):
            it.close()
        return found

    both = [run(which) for which in range(2)]
    assert all(sorted(a + b) == list(range(24)) for a, b in zip(*both, strict=True))
    assert len(set(both[0])) >= 5 and both[0] == run(0)


def test_a_slice_leaves_the_whole_where_it_was():
    whole = data_iterator_simple(scenarios.load, 8, 2)
    whole.next()
    part = whole.slice(None, slice_start=4, slice_end=8)
    assert part.next()[1].tolist() == [4, 5]
    assert [whole.next()[1].tolist() for _ in range(2)] == [[2, 3], [4, 5]]
    assert part.next()[1].tolist() == [6, 7]


def test_a_source_that_is_in_a_list_twice():
    source = SimpleDataSource(scenarios.load, 3)
    with data_iterator_concat_datasets([source, source], 6) as di:
        assert di.next()[1].tolist() == [0, 1, 2, 0, 1, 2]


def test_the_folder_of_concatenated_sources_is_used(tmp_path):
    source = SimpleDataSource(scenarios.load, 3)
    data_iterator_concat_datasets([source], 3, with_file_cache=True, cache_dir=str(tmp_path)).close()
    assert (tmp_path / "cache_index.csv").exists()


def test_position_is_of_what_was_given():
    with data_iterator_simple(scenarios.load, 5, 2) as di:
        found = [(di.next(), di.position, di.epoch)[1:] for _ in range(4)]
    assert found == [(2, 0), (4, 0), (1, 1), (3, 1)]


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        lambda n: n,
        lambda n: float(n),
        lambda n: n if n < 3 else n + 0.5,
        lambda n: np.float32(n),
        lambda n: [n, n + 1],
        lambda n: np.full((2, 0), n),
        lambda n: np.array(n),
        lambda n: np.full((2, 3), n)[:, ::-1],
        lambda n: np.asfortranarray(np.full((2, 3), n, ">i2")),
        lambda n: np.full(2, n, np.float32 if n % 2 else np.int64),
        lambda n: np.full(2, n, ">i2" if n % 2 else "<i2"),
        lambda n: np.full((2, 1), n, "<i2" if n % 2 else ">i2"),
        lambda n: "ab" * (n + 1),
        lambda n: np.ma.array([n, n]),
        lambda n: (n, [n, n]),
        lambda n: n > 2,
        lambda n: np.full((3, 4, 2), n).transpose(2, 0, 1),
        lambda n: np.full((40, 50), n),
        lambda n: np.full((40, 50), n)[:, ::-1],
        lambda n: np.asfortranarray(np.arange(2000.0).reshape(40, 50) + n),
        lambda n: np.full((40, 50), n, np.float32 if n % 2 else np.int64),
        lambda n: np.full((40, 50), n, "m8[s]"),
        lambda n: np.full((40, 50), n % 2, bool) if n else np.asfortranarray(np.ones((40, 50), bool)),
    ],
)
def test_a_batch_is_what_numpy_makes_of_its_samples(value, memory):
    def load(n):
        return [value(n)] if not isinstance(value(n), tuple) else value(n)

    with data_iterator_simple(load, 5, 5, with_memory_cache=memory) as di:
        for _ in range(3):
            batch = di.next()
            for i, found in enumerate(batch):
                expected = np.array([load(n)[i] for n in range(5)])
                assert found.dtype == expected.dtype and found.shape == expected.shape and found.flags.c_contiguous
                assert (found == expected).all() and found.flags.writeable


@pytest.mark.parametrize("size", [1, 2000])
def test_a_batch_of_several_shapes(size):
    """Of one length, or of as many elements, too."""
    for shapes in ([(size, 6), (size, 3, 2)], [(size, 4), (4, size)], [(size + 1, 2), (size - 1, 2)]):
        with pytest.raises(ValueError, match="values of one shape for 'x0'"):
            data_iterator_simple(lambda n, s=shapes: (np.zeros(s[n]),), 2, 2, use_thread=False).next()


def test_batches_own_their_memory():
    data = np.zeros((4, 3))
    with data_iterator_simple(lambda i: (data[i],), 4, 4, with_memory_cache=True) as di:
        for _ in range(3):
            (x,) = di.next()
            assert not x.any()
            x += 1
    assert not data.any()


def test_a_function_may_use_one_buffer_again():
    buffer = np.zeros(3)

    def load(n):
        buffer[:] = n
        return buffer.copy(), np.array(n)

    with data_iterator_simple(load, 4, 4, with_memory_cache=True) as di:
        for _ in range(3):
            assert di.next()[0][:, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("memory", [False, True])
def test_single_samples_may_differ_in_shape(memory):
    with data_iterator_simple(lambda n: (np.full(n, n),), 4, 1, with_memory_cache=memory) as di:
        assert [di.next()[0].shape for _ in range(6)] == [(1, n) for n in (0, 1, 2, 3, 0, 1)]


def test_a_variable_takes_a_batch():
    x, t = nn.Variable((2, 3)), nn.Variable((2,))
    with data_iterator_simple(scenarios.load, 4, 2, shuffle=True, rng=np.random.RandomState(0)) as di:
        x.d, t.d = di.next()
        order = np.random.RandomState(0).permutation(4)
        assert t.d.tolist() == order[:2].tolist() and x.d[:, 0].tolist() == order[:2].tolist()


def test_loops_end_where_they_are_told_to():
    di = data_iterator_simple(scenarios.load, 5, 2, stop_exhausted=True)
    assert [b[1].tolist() for b in di] == [[0, 1], [2, 3]]
    assert list(di) == []
    with pytest.raises(StopIteration):
        di.next()
    di._reset()
    assert len(list(di)) == 2
    di.close()


# --- what goes wrong --------------------------------------------------------------------------------------------------


def fails_at(number: int, times: int = 10**9, kind: type[BaseException] = KeyError) -> Callable[[int], Any]:
    left = [times]

    def load(n):
        if n == number and left[0] > 0 and calls[0]:
            left[0] -= 1
            raise kind(f"sample {n}")
        calls[0] = True
        return scenarios.load(n)

    calls = [False]
    return load


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("thread", [False, True])
def test_what_a_source_raises_arrives_with_its_traceback(thread, memory):
    di = data_iterator_simple(fails_at(3), 6, 2, use_thread=thread, with_memory_cache=memory)
    assert di.next()[1].tolist() == [0, 1]
    for _ in range(3):
        with pytest.raises(KeyError, match="sample 3") as e:
            di.next()
        assert any(entry.name == "load" for entry in e.traceback)
    di.close()


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("thread", [False, True])
def test_after_an_error_nothing_is_lost_or_given_twice(thread, own):
    """Also where the batch that failed has begun another epoch."""
    load = fails_at(1, times=4)
    source = SimpleDataSource(load, 5)
    if own:
        source = scenarios.custom_source(5, False, 0)
        source._get_data = lambda position: load(position)
        load(0)
    di = DataIterator(source, 4, use_thread=thread)
    found, failed = [], 0
    while len(found) < 5:
        try:
            found.append(di.next()[1].tolist())
        except KeyError:
            failed += 1
    assert failed == 4
    assert [n for batch in found for n in batch] == [n % 5 for n in range(20)]
    assert di.epoch == 4
    di.close()


@pytest.mark.parametrize("kind", [StopIteration, SystemExit, KeyboardInterrupt, MemoryError])
def test_errors_of_every_kind_arrive(kind):
    di = data_iterator_simple(fails_at(0, kind=kind), 2, 2)
    with pytest.raises(RuntimeError if kind is StopIteration else kind):
        di.next()
    di.close()


def test_samples_that_do_not_fit_are_an_error_that_says_so():
    cases = {
        "(0,), (1,)": lambda n: (np.zeros(n), n),
        "(), (1,)": lambda n: (np.zeros((1,) * n), n),
        "(1,), (1, 2)": lambda n: (np.zeros((1, 2)[: 2 - n]), n),
        "2 values": lambda n: (n, n) if n == 0 else (n,),
        "a tuple": lambda n: (n, n) if n == 0 else 3,
    }
    for text, load in cases.items():
        di = data_iterator_simple(load, 2, 2)
        with pytest.raises((ValueError, TypeError)) as e:
            di.next()
        assert isinstance(e.value, nn.Error) and text in str(e.value)
        di.close()
    with pytest.raises(TypeError, match="load_func"):
        data_iterator_simple(lambda n: 3, 2, 2)


class Duck:
    """All that NNabla asks of a source, without its base class."""

    size, variables, shuffle, position = 3, ["a"], False, 0

    def _get_data(self, position):
        return (np.array(position),)

    def _get_data_of_generation(self, position, generation):
        return self._get_data(position)

    def next(self):
        self.position += 1
        return self._get_data(self.position - 1)

    def reset(self):
        self.position = 0

    def apply_order(self):
        pass

    close = apply_order


@pytest.mark.parametrize("memory", [False, True])
def test_a_source_without_the_base_class(memory):
    with data_iterator(Duck(), 2, with_memory_cache=memory) as di:
        assert [di.next()[0].tolist() for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]
    with sources.SlicedDataSource(Duck(), slice_start=1) as part:
        assert [int(v) for (v,) in (part.next(), part.next())] == [1, 2] and part._batch(0, 2)[0].tolist() == [1, 2]


class Wrong(sources.DataSource):
    """Sources that break their word."""

    def __init__(self, way: str):
        super().__init__()
        self._size, self._variables, self.way = 2, ("x",), way

    def _get_data(self, position):
        return None if self.way == "none" else (position,)

    def reset(self):
        if self.way != "reset":
            super().reset()


@pytest.mark.parametrize("way", ["none", "reset"])
def test_sources_that_break_their_word(way):
    di = DataIterator(Wrong(way), 3)
    with pytest.raises((TypeError, RuntimeError)) as e:
        di.next()
    assert isinstance(e.value, nn.Error)
    di.close()


def test_arguments_that_do_not_fit():
    source = SimpleDataSource(scenarios.load, 4)
    for make in (
        lambda: DataIterator(source, 0),
        lambda: DataIterator(source, 1.5),
        lambda: SimpleDataSource(scenarios.load, 0),
        lambda: SimpleDataSource(3, 4),
        lambda: SimpleDataSource(scenarios.load, 4, rng=3),
        lambda: ConcatDataSource([]),
        lambda: sources.SlicedDataSource(source, slice_start=2, slice_end=5),
        lambda: sources.SlicedDataSource(source, slice_start=3, slice_end=2),
        lambda: DataIterator(sources.SlicedDataSource(source, slice_start=2, slice_end=2), 1),
    ):
        with pytest.raises((ValueError, TypeError)) as e:
            make()
        assert isinstance(e.value, nn.Error)
    with DataIterator(source, 2) as di:
        for wrong in ({}, {"num_of_slices": 2}, {"num_of_slices": 2, "slice_pos": 2}, {"slice_start": 1}):
            with pytest.raises(ValueError) as e:
                di.slice(None, **wrong)
            assert isinstance(e.value, nn.Error)


def test_closing_twice_and_reading_after_it():
    di = data_iterator_simple(scenarios.load, 4, 2)
    di.close()
    di.close()
    with pytest.raises(ValueError, match="closed"):
        di.next()
    with di:
        pass


@pytest.mark.parametrize("memory", [False, True])
def test_an_iterator_that_is_dropped_ends_its_thread_and_frees_its_source(memory):
    def load(n):
        return (np.zeros(3),)

    di = data_iterator_simple(load, 100, 4, with_memory_cache=memory)
    di.next()
    gone = weakref.ref(load)
    del di, load
    for thread in threads():
        thread.join(WAIT)
    gc.collect()
    assert not threads() and gone() is None


def test_a_thread_is_reused():
    with data_iterator_simple(scenarios.load, 4, 2) as di:
        (before,) = threads()
        for _ in range(10):
            di.next()
        assert threads() == [before]


def test_callbacks_come_in_the_caller_and_may_be_added():
    seen = []
    with data_iterator_simple(scenarios.load, 4, 4) as di:
        di.register_epoch_begin_callback(lambda e: seen.append(("begin", e, threading.current_thread().name)))
        di.register_epoch_end_callback(lambda e: seen.append(("end", e, di.epoch)))
        di.next()
        with pytest.raises(TypeError):
            di.register_epoch_end_callback(3)
    assert seen == [("end", 0, 0), ("begin", 1, threading.current_thread().name)]


def child(code: str, **more: Any) -> subprocess.CompletedProcess[str]:
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n{code}"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, **more
    )


@pytest.mark.parametrize(
    "code",
    [
        "data_iterator_simple(load, 10, 2).next()",
        "di = data_iterator_simple(load, 10, 2); di.next()",
        "di = data_iterator_simple(load, 10, 2, with_file_cache=True, with_memory_cache=True); di.next()",
        "di = data_iterator_simple(load, 10, 2); di.next(); sys.exit()",
        "import time; di = data_iterator_simple(lambda n: n and time.sleep(60) or (n,), 10, 2)",
    ],
)
def test_a_program_ends_with_an_open_iterator(code):
    start = time.monotonic()
    done = child(f"from feeding_scenarios import load; from nnrs.utils.data_iterator import *\n{code}")
    assert (done.returncode, done.stderr) == (0, "") and time.monotonic() - start < 40


def test_a_thread_is_not_cut_off_in_another_library(tmp_path):
    """One whose owner is gone, too: h5py's lock would be left behind, which the end of the interpreter takes."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f["x"] = np.zeros((4, 3))
    done = child(f"""
import h5py, time
from nnrs.utils.data_iterator import data_iterator_simple
at_work = []
def load(n):
    at_work.append(n)
    with h5py._objects.phil:
        time.sleep(1.5 * (n > 1))
    return (n,)
def use():
    it = data_iterator_simple(load, 4, 2)
    it.next()
    while len(at_work) < 3:
        time.sleep(0.01)
use()
kept = h5py.File({str(tmp_path / "x.h5")!r})
""")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_iterator_that_is_read_when_the_program_ends():
    """In a function that was registered first, and runs last."""
    done = child("""
import atexit
atexit.register(lambda: print(read()))
def read():
    try:
        return [int(di.next()[0][0]) for _ in range(2)]
    except RuntimeError as error:
        return "new thread" in str(error)
from nnrs.utils.data_iterator import data_iterator_simple
di = data_iterator_simple(lambda n: (n,), 10, 2)
""")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout in ("[0, 2]\n", "True\n")


@pytest.mark.host
def test_ctrl_c_while_a_batch_is_waited_for():
    done = child("""
import signal, time
from nnrs.utils.data_iterator import data_iterator_simple
signal.signal(signal.SIGALRM, signal.default_int_handler)
def load(n):
    time.sleep(0.5 * (n == 4))
    return (n,)
with data_iterator_simple(load, 20, 2) as di:
    di.next(), di.next()
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        di.next()
    except KeyboardInterrupt:
        print("interrupted")
    print([int(di.next()[0][0]) for _ in range(3)])
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n[4, 6, 8]\n", "")


def test_the_function_may_use_nnrs():
    def load(n):
        with nn.auto_forward():
            return nn.functions.relu(nn.Variable.from_numpy_array([n - 2.0, n])).d.copy(), np.array(n)

    with data_iterator_simple(load, 5, 5) as di:
        assert di.next()[0].tolist() == [[max(n - 2, 0), n] for n in range(5)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.host
def test_a_fork_goes_on_in_parent_and_child():
    """The batch that is being made is waited for; both sides go on with the same one."""
    done = child("""
import os, time
from nnrs.utils.data_iterator import data_iterator_simple
def load(n):
    time.sleep(0.002)
    return (n,)
with data_iterator_simple(load, 1000, 10) as di:
    for i in range(5):
        assert di.next()[0][0] == 10 * i
    here, there = os.pipe()
    child = os.fork()
    found = [int(di.next()[0][0]) for _ in range(5)]
    if not child:
        os.write(there, repr(found).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert eval(os.read(here, 1000)) == found == [50, 60, 70, 80, 90], found
""")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.host
def test_a_child_leaves_its_parents_cache_alone(tmp_path):
    done = child(f"""
import os, tempfile
tempfile.tempdir = {str(tmp_path)!r}
from nnrs.utils.data_iterator import data_iterator_simple
di = data_iterator_simple(lambda n: (n,), 10, 2, with_file_cache=True)
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0 and len(os.listdir(tempfile.tempdir)) == 1
    [di.next() for _ in range(9)]
""")
    assert (done.returncode, done.stderr) == (0, "") and not list(tmp_path.iterdir())


def test_a_source_that_reads_its_own_iterator_is_an_error():
    from nnrs.utils.data_iterator import data_iterator_simple

    made = []

    def load(i):
        if made:
            made[0].next()
        return (np.float32(i),)

    with data_iterator_simple(load, 8, 2, shuffle=False, with_memory_cache=False, with_file_cache=False) as it:
        made.append(it)
        with pytest.raises(ValueError, match="own iterator"):
            for _ in range(4):
                it.next()


@pytest.mark.parametrize("use_thread", [True, False])
def test_a_callback_that_raises_loses_no_batch(use_thread):
    from nnrs.utils.data_iterator import data_iterator_simple

    def fail(epoch):
        if epoch == 0:
            raise RuntimeError("mine")

    options = {"shuffle": False, "with_memory_cache": False, "with_file_cache": False, "use_thread": use_thread}
    with data_iterator_simple(lambda i: (np.float32(i),), 4, 2, epoch_end_callbacks=[fail], **options) as it:
        seen = []
        failures = 0
        while len(seen) < 6:
            try:
                seen.append(it.next()[0].tolist())
            except RuntimeError:
                failures += 1
    assert seen == [[0, 1], [2, 3]] * 3
    assert failures == 1 and it.epoch >= 2


def test_what_scripts_read_of_an_iterator():
    """NNabla's attributes, by which they slice: `iterator.slice(iterator._rng, ...)`."""
    rng = np.random.RandomState(2)
    with data_iterator_simple(lambda i: (np.array([i]),), 10, 4, shuffle=True, rng=rng) as d:
        assert (d._size, d._data_source.size, list(d._variables), d._batch_size) == (10, 10, ["x0"], 4)
        with d.slice(rng=d._rng, slice_start=2, slice_end=6) as part:
            assert part.size == 4 and part.next()[0].shape == (4, 1)


def test_a_dataset_of_no_file(tmp_path):
    """`nnabla.utils.load._create_dataset`, which nnabla-nas calls."""
    from nnrs.utils.load import _create_dataset

    (tmp_path / "d.csv").write_text("x:data,y:label\n" + "".join(f"{i},{i % 2}\n" for i in range(6)))
    made = _create_dataset(str(tmp_path / "d.csv"), 2, False, True, "", False, False, True, 313)
    assert (made.uri, made.cache_dir, made.normalize) == (str(tmp_path / "d.csv"), "", False)
    with made.data_iterator() as d:
        assert d.size == 6 and [v.ravel().tolist() for v in d.next()] == [[0, 1], [0, 1]]
    assert _create_dataset("d.csv", 2, False, False, None, False, False, False, 0).data_iterator is None
