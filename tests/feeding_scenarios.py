"""Ways to iterate over data, run on nnrs by test_data_iterator.py and on NNabla by golden/make_data.py.

A sample is its number n: variables x (float32 of shape (3,): n, n + 0.5, -n) and y (n itself). Of a run are noted
the numbers in each batch, the epoch after each, and the types and shapes of a batch.
"""

from __future__ import annotations

import csv
import importlib
import itertools
import os
import random
from pathlib import Path
from typing import Any

import numpy as np

NAME = os.environ.get("NNRS_TEST_MODULE", "nnrs")
FILE_SIZE = 5  # samples of a cache file


def module(name: str) -> Any:
    return importlib.import_module(f"{NAME}.{name}")


def configure(kind: str = ".npy", size: int = FILE_SIZE) -> None:
    config = module("config").nnabla_config
    config.set("DATA_ITERATOR", "data_source_file_cache_size", str(size))
    config.set("DATA_ITERATOR", "cache_file_format", kind)


def row(n: int) -> np.ndarray:
    return np.array([n, n + 0.5, -n], np.float32)


def load(n: int) -> tuple[np.ndarray, np.ndarray]:
    return row(n), np.array(n)


def write_csv(folder: Path, size: int, first: int = 0) -> str:
    """A data set of numbers, with a file of another kind in each line."""
    path = folder / f"data_{first}_{size}.csv"
    with path.open("w", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["x__0:first", "x__1:second", "x__2", "# note", "y:number", "z"])
        for n in range(first, first + size):
            np.save(folder / f"{n}.npy", np.array([n, -n], np.int16))
            writer.writerow([*map(str, row(n)), "left out", n, f"{n}.npy"])
    return str(path)


def rng_of(seed: int | None) -> Any:
    return None if seed is None else np.random.RandomState(seed)


def custom_source(size: int, shuffle: bool, seed: int | None) -> Any:
    """One of a user's own, with an order of its own."""

    class Own(module("utils.data_source").DataSource):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(shuffle=shuffle, rng=rng_of(seed))
            self._size, self._variables = size, ("x", "y")
            self.reset()

        def _get_data(self, position: int) -> Any:
            return load(self._mine[position])

        def reset(self) -> None:
            self._mine = self._rng.permutation(self._size) if self._shuffle else np.arange(self._size)
            super().reset()

    return Own()


def source_of(kind: str, size: int, shuffle: bool, seed: int | None, folder: Path) -> Any:
    made = module("utils.data_source_implements")
    if kind == "simple":
        return made.SimpleDataSource(load, size, shuffle=shuffle, rng=rng_of(seed))
    if kind == "drawing":  # the function draws from the generator of the orders
        rng = np.random.RandomState(seed or 0)
        noisy = lambda n: (row(n) + np.float32(rng.rand()), np.array(n))  # noqa: E731
        return made.SimpleDataSource(noisy, size, shuffle=shuffle, rng=rng)
    if kind == "csv":
        return made.CsvDataSource(write_csv(folder, size), shuffle=shuffle, rng=rng_of(seed))
    if kind == "concat":
        parts = [made.SimpleDataSource(load, size // 3), custom_source(size, shuffle, seed)]
        return made.ConcatDataSource(parts, shuffle=shuffle, rng=rng_of(seed))
    if kind in (".npy", ".h5"):
        configure(kind)
        target = folder / f"cache{kind}"
        target.mkdir(exist_ok=True)
        module("utils.create_cache").CreateCache(write_csv(folder, size), num_of_threads=2).create(str(target))
        configure()
        return made.CacheDataSource(str(target), shuffle=shuffle, rng=rng_of(seed))
    return custom_source(size, shuffle, seed)


KINDS = ("simple", "drawing", "csv", "concat", ".npy", ".h5", "custom")


def choose(count: int) -> dict[str, dict[str, Any]]:
    """Some of all combinations, each by a name that says it."""
    every = itertools.product(
        KINDS, (10, 23), (1, 4, 7, 25), (False, True), (None, 0, 5), (False, True), (False, True), (False, True)
    )
    names = ("kind", "size", "batch", "shuffle", "seed", "memory", "file", "stop")
    found = {}
    for values in random.Random(1).sample(list(every), count):
        spec = dict(zip(names, values))  # noqa: B905
        spec["kind"] = "simple" if spec["file"] and spec["kind"] == "drawing" else spec["kind"]  # drawn by many threads
        found[" ".join(f"{k}={v}" for k, v in spec.items())] = spec
    return found


SPECS = choose(120)


def note(iterator: Any, batches: int) -> dict[str, Any]:
    """What is noted of a run."""
    numbers, epochs, form, x = [], [], None, np.zeros(0)
    names = list(iterator.variables)
    for _ in range(batches):
        try:
            batch = iterator.next()
        except StopIteration:
            numbers.append("end")
            break
        y = batch[names.index("y") if "y" in names else 1].reshape(-1)
        x = batch[names.index("x") if "x" in names else 0]
        numbers.append(" ".join(str(int(v)) for v in y))
        epochs.append(iterator.epoch)
        form = [f"{a.dtype}{list(a.shape)}" for a in batch]
    return {"numbers": numbers, "epochs": epochs, "form": form, "last": [float(v) for v in x.reshape(-1)]}


def run(spec: dict[str, Any], folder: Path, thread: bool) -> dict[str, Any]:
    """A run of three epochs and a bit."""
    configure()
    made = module("utils.data_iterator")
    source = source_of(spec["kind"], spec["size"], spec["shuffle"], spec["seed"], folder)
    events: list[str] = []
    with made.data_iterator(
        source,
        spec["batch"],
        rng=rng_of(spec["seed"]),
        use_thread=thread,
        with_memory_cache=spec["memory"],
        with_file_cache=spec["file"],
        epoch_begin_callbacks=[lambda e: events.append(f"begin {e}")],
        epoch_end_callbacks=[lambda e: events.append(f"end {e}")],
        stop_exhausted=spec["stop"],
    ) as iterator:
        found = note(iterator, 3 * spec["size"] // spec["batch"] + 3)
        found["events"] = events
        found["size"] = iterator.size
        if not thread:
            found["position"] = iterator.position
    return found


SLICES: dict[str, dict[str, Any]] = {
    f"slices={count} size={size} batch={batch} shuffle={shuffle} drop={drop}": dict(
        count=count, size=size, batch=batch, shuffle=shuffle, drop=drop
    )
    for count, size, batch in ((2, 10, 2), (3, 10, 4), (4, 23, 5), (3, 2, 1))
    for shuffle in (False, True)
    for drop in (False, True)
    if size >= count or not drop
}


def settle(iterator: Any) -> None:
    """Wait for NNabla's thread: two of them may make the order of one epoch at once, each another one."""
    if hasattr(iterator, "_next_thread"):
        iterator._next_thread.join()


def run_slices(spec: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Slices of one source, read in turn."""
    configure()
    made = module("utils.data_iterator")
    whole = made.data_iterator_simple(
        load, spec["size"], spec["batch"], shuffle=spec["shuffle"], rng=rng_of(7), use_thread=False
    )
    parts = []
    for i in range(spec["count"]):
        parts.append(whole.slice(None, spec["count"], i, drop_last=spec["drop"]))
        settle(parts[-1])
    found = [
        {"size": part.size, "numbers": [], "variables": list(part.variables), "batch": part.batch_size}
        for part in parts
    ]
    for _ in range(12):
        for part, noted in zip(parts, found):  # noqa: B905
            noted["numbers"].append(" ".join(str(int(v)) for v in part.next()[1]))
            settle(part)
    for iterator in (*parts, whole):
        iterator.close()
    return found


CACHED_SLICES: dict[str, dict[str, Any]] = {
    f"kind={kind} start={start} end={end} shuffle={shuffle} cached={cached}": dict(
        kind=kind, start=start, end=end, shuffle=shuffle, cached=cached
    )
    for kind in ("simple", "csv", "custom")
    for start, end in ((0, 7), (4, 12))
    for shuffle in (False, True)
    for cached in ("", "memory", "file")
}


def run_cached_slice(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One slice of a source, with caches of its own."""
    configure()
    made = module("utils.data_iterator")
    source = source_of(spec["kind"], 12, spec["shuffle"], 3, folder)
    whole = made.DataIterator(source, 4, use_thread=False)
    target = folder / "cache"
    target.mkdir(exist_ok=True)
    part = whole.slice(
        rng_of(11),
        slice_start=spec["start"],
        slice_end=spec["end"],
        cache_dir=str(target) if spec["cached"] == "file" else None,
        use_cache=bool(spec["cached"]),
    )
    found = note(part, 12)
    part.close()
    whole.close()
    return found


def read_cache(folder: Path) -> dict[str, Any]:
    """What a cache folder holds, in order, and its tables."""
    with module("utils.data_iterator").data_iterator_cache(str(folder), 3, normalize=False) as iterator:
        found = note(iterator, 4)
        found["variables"] = list(iterator.variables)
    found["tables"] = {p.name: p.read_text() for p in sorted(folder.glob("*.csv"))}
    found["files"] = sorted(p.name for p in folder.iterdir())
    return found


WRAPPED: dict[str, dict[str, Any]] = {
    f"kind={kind} shuffle={shuffle} memory={memory} file={file}": dict(
        kind=kind, shuffle=shuffle, memory=memory, file=file
    )
    for kind in ("simple", "csv", "cache", "concat")
    for shuffle in (False, True)
    for memory in (None, False, True)
    for file in (None, False, True)
    if not (file is not None and kind == "cache")
}


def run_wrapped(spec: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What the functions for each kind of data make of their arguments; None leaves the default."""
    configure()
    made = module("utils.data_iterator")
    options = {"with_memory_cache": spec["memory"], "with_file_cache": spec["file"]}
    options = {name: value for name, value in options.items() if value is not None}
    common = dict(batch_size=4, shuffle=spec["shuffle"], rng=rng_of(9), use_thread=False, **options)
    if spec["kind"] == "simple":
        iterator = made.data_iterator_simple(load, 11, **common)
    elif spec["kind"] == "csv":
        iterator = made.data_iterator_csv_dataset(write_csv(folder, 11), **common)
    elif spec["kind"] == "cache":
        (folder / "cache").mkdir()
        module("utils.create_cache").CreateCache(write_csv(folder, 11)).create(str(folder / "cache"))
        iterator = made.data_iterator_cache(str(folder / "cache"), **common)
    else:
        parts = [custom_source(4, False, 0), custom_source(7, True, 1)]
        iterator = made.data_iterator_concat_datasets(parts, **common)
    with iterator:
        return note(iterator, 12)
