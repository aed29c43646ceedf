"""Sources of samples, and what wraps them: caches in files and in memory, and slices.

A source of one's own sets `_size` and `_variables`; its `_get_data(position)` gives a value for each variable:

>>> import numpy as np
>>> class Squares(DataSource):
...     def __init__(self):
...         super().__init__()
...         self._size, self._variables = 4, ("x", "y")
...     def _get_data(self, position):
...         return np.array(position), np.array(position**2)
>>> source = DataSourceWithMemoryCache(Squares())
>>> [int(y) for x, y in (source.next() for _ in range(4))]
[0, 1, 4, 9]
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from typing import Any

import numpy as np

from .._borrowed import borrower
from .._errors import ArgumentError, Error, FileError, check_integer, failures_as, message, reason
from .._settings import data_number, data_setting
from ._batches import by_variable, columns
from ._cache_files import Arrays, SampleOrder, check_rows, gathered, read_h5, read_npy, write_cache
from ._file_reader import FileReader
from ._memory_cache import MemoryCache, read_batch
from ._source import DataSource, SliceReader, for_slice, order_mark

__all__ = [
    "DataSource",
    "DataSourceWithFileCache",
    "DataSourceWithFileCacheError",
    "DataSourceWithMemoryCache",
    "SlicedDataSource",
]

__getattr__ = borrower(__name__)


class DataSourceWithFileCacheError(Error, Exception):
    """A file cache that cannot be used any more."""


class DataSourceWithFileCache(DataSource):
    """All samples of another source in files, which are made at once; an epoch reads file after file.

    Args:
        data_source: Where the samples are from; it is closed with this one.
        cache_dir: Folder, which stays; by default a temporary one, which goes with the source.
        cache_file_name_prefix: Beginning of the files' names.
        shuffle: Whether each epoch has an order of its own: of the files, and of the samples in each.
        rng: Random generator for the orders; by default a `RandomState(313)`.

    How many samples a file has, its format and the number of threads are in `nnrs.config.nnabla_config`.

    Raises:
        OSError: If the files cannot be written. No file is left of it then, and an older cache stays.
    """

    def __init__(
        self,
        data_source: Any,
        cache_dir: str | None = None,
        cache_file_name_prefix: str = "cache",
        shuffle: bool = False,
        rng: Any = None,
    ) -> None:
        super().__init__(shuffle=shuffle, rng=rng)
        name = "DataSourceWithFileCache"
        self._cache_size = data_number(name, "data_source_file_cache_size")
        self._num_of_threads = data_number(name, "data_source_file_cache_num_of_threads")
        self._cache_file_format = data_setting("cache_file_format")
        self._data_source = data_source
        self._size = data_source.size
        self._variables = data_source.variables
        self._original_order = list(range(self._size))
        self._lock = threading.Lock()
        self._loaded: tuple[int, Arrays] = (-1, {})
        self._remove: weakref.finalize[Any, Any] | None = None
        self._cache_dir = self._temporary() if cache_dir is None else os.fspath(cache_dir)
        try:
            self._files = self._write(cache_file_name_prefix)
        except BaseException:
            self._remove_folder()
            raise
        self._basis = order_mark(data_source)
        self._file_order = np.arange(len(self._files))
        self._rows = [np.arange(length) for _, length in self._files]
        self._arrange()

    def _temporary(self) -> str:
        text = message("DataSourceWithFileCache", None, "cannot make a temporary folder: ")
        with failures_as(lambda error: FileError(text + reason(error)), OSError):
            folder = tempfile.mkdtemp(prefix="nnrs-cache-", dir=data_setting("data_source_file_cache_location") or None)
        self._remove = weakref.finalize(self, _remove_own, folder, os.getpid())
        return folder

    def _remove_folder(self) -> None:
        if self._remove is not None:
            self._remove()

    def _write(self, prefix: str) -> list[tuple[str, int]]:
        source = self._data_source
        original = getattr(source, "_original_order", None)
        order = getattr(source, "_order", None)
        rows = None if original is None or order is None else list(zip(original, source.order, strict=False))
        return write_cache(
            "DataSourceWithFileCache",
            self._cache_dir,
            prefix,
            self._cache_file_format,
            self._size,
            self._cache_size,
            self._num_of_threads,
            source._get_data,
            self._variables,
            getattr(source, "_original_source_uri", None),
            rows,
            getattr(source, "_origin_of", None),
        )

    def _arrange(self) -> None:
        self._samples = SampleOrder([(int(i), self._rows[i]) for i in self._file_order])

    def _sample_orders(self, generation: int | None) -> list[Any]:
        return [self._file_order, *self._rows]

    @property
    def order(self) -> list[int]:
        """Which sample of the other source is at each position."""
        chunks = self._samples.chunks
        return [int(row) + file * self._cache_size for file, rows in chunks for row in rows]

    def _file(self, index: int) -> Arrays:
        """The arrays of a file; the last one is kept."""
        with self._lock:
            if self._loaded[0] != index:
                self._loaded = (index, self._load(*self._files[index]))
            return self._loaded[1]

    def _load(self, path: str, length: int) -> Arrays:
        name = "DataSourceWithFileCache"
        if self._closed or not os.path.exists(path):
            why = "the source is closed" if self._closed else f"its file {path!r} is gone"
            raise DataSourceWithFileCacheError(message(name, None, f"the cache cannot be read: {why}"))
        if self._cache_file_format == ".npy":
            found = read_npy(name, path, self._variables)
        else:
            with FileReader(os.path.dirname(path)).open_cache(os.path.basename(path)) as h5:
                found = read_h5(name, h5)
        return check_rows(name, path, found, self._variables, length)

    def _get_data(self, position: int) -> Any:
        self._position = position
        return [array[0] for array in self._batch(position, position + 1)]

    def _batch(self, start: int, stop: int, generation: int | None = None) -> list[np.ndarray]:
        samples = self._samples  # another slice may begin an epoch in the meantime
        parts = [(self._file(samples.chunks[place][0]), rows) for place, rows in samples.parts(start, stop)]
        return gathered(parts, self._variables)

    def close(self) -> None:
        if not self._closed:
            super().close()
            self._loaded = (-1, {})
            self._remove_folder()
            self._data_source.close()

    def reset(self) -> None:
        if self._shuffle:
            self._file_order = self._rng.permutation(self._file_order)
            self._rows = [self._rng.permutation(rows) for rows in self._rows]
            self._arrange()
        self._data_source.reset()
        self._generation += 1
        super().reset()


def _remove_own(folder: str, process: int) -> None:
    """Remove a folder, but not in a forked child, where it is the parent's."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


class DataSourceWithMemoryCache(DataSource):
    """The samples of another source in memory, once they were read for the first time.

    Args:
        data_source: Where the samples are from; it is closed with this one.
        shuffle: Whether each epoch has an order of its own: from the third on, as in NNabla.
        rng: Random generator for the orders; by default a `RandomState(313)`.

    Sources that are too large for `data_source_buffer_max_size` in `nnrs.config.nnabla_config` are read each time.
    """

    def __init__(self, data_source: Any, shuffle: bool = False, rng: Any = None) -> None:
        super().__init__(shuffle=shuffle, rng=rng)
        most = data_number("DataSourceWithMemoryCache", "data_source_buffer_max_size", least=0)
        self._data_source = data_source
        self._size = data_source.size
        self._variables = data_source.variables
        self._order = np.arange(self._size)
        self._touched = False
        values = by_variable([data_source._get_data(0)], self._variables)
        total = sum(_bytes(value) for (value,) in values) * self._size
        self._cache = MemoryCache(data_source, self._size) if total < most else None
        self._basis = order_mark(data_source)  # the order that the cache is filled in

    def _sample_orders(self, generation: int | None) -> list[Any]:
        return [self._order]

    @property
    def order(self) -> list[int]:
        """Which sample of the other source is at each position."""
        return self._order.tolist()  # type: ignore[no-any-return]

    def _get_data(self, position: int) -> Any:
        self._position = position
        if self._cache is None:
            return self._data_source._get_data(position)
        return self._cache.sample(int(self._order[position]))

    def _batch(self, start: int, stop: int, generation: int | None = None) -> list[np.ndarray]:
        if self._cache is None:
            return read_batch(self._data_source, start, stop)
        self._touched = self._touched or generation is not None  # by a slice, which has a position of its own
        return self._cache.batch(self._order[start:stop])

    def close(self) -> None:
        if not self._closed:
            super().close()
            self._data_source.close()

    def reset(self) -> None:
        if self._cache is None:
            self._data_source.reset()
            self._generation = getattr(self._data_source, "_generation", -1)
        else:
            self._shuffle_again(self._cache)
        super().reset()

    def _shuffle_again(self, cache: MemoryCache) -> None:
        self._generation += 1
        again = self._shuffle and self._generation > 0
        self._order = self._rng.permutation(self._size) if again else np.arange(self._size)
        if self._position == 0 and not self._touched:  # nothing was read yet
            self._generation = -1
        else:
            self._touched = False
            if self._shuffle or getattr(self._data_source, "shuffle", False):
                cache.fill()  # what the other source calls its first sample is another one then
            self._data_source._position = self._position
            self._data_source.reset()


def _bytes(value: Any) -> int:
    """What a value of a sample takes: lists as float32, as NNabla counts."""
    array = np.array(value, np.float32) if isinstance(value, list) else np.asarray(value)
    return int(array.nbytes)


class SlicedDataSource(DataSource):
    """A part of each epoch of another source, which several slices may share: each is in an epoch of its own.

    Args:
        data_source: Where the samples are from; it stays open.
        shuffle: What `shuffle` says; the order is the other source's.
        rng: Not used.
        slice_start: Position of the first sample; by default 0.
        slice_end: Position behind the last one; by default the source's size.
    """

    def __init__(
        self,
        data_source: Any,
        shuffle: bool = False,
        rng: Any = None,
        slice_start: int | None = None,
        slice_end: int | None = None,
    ) -> None:
        super().__init__(shuffle=shuffle, rng=rng)
        name, size = "SlicedDataSource", data_source.size
        start = 0 if slice_start is None else check_integer(name, "slice_start", slice_start, 0)
        end = size if slice_end is None else check_integer(name, "slice_end", slice_end, start)
        if end > size:
            raise ArgumentError(message(name, "slice_end", f"{size} at most, the source's samples", end))
        self._reader = SliceReader(start, end)
        self._data_source = for_slice(data_source, self._reader)
        self._whole = data_source  # whose files go with it
        self._variables = data_source.variables[:]
        self._slice_start, self._slice_end = start, end
        self._size = end - start
        self._generation = 0

    def _sample_orders(self, generation: int | None) -> list[Any]:
        return [[self._slice_start, self._slice_end, self._generation]]

    def apply_order(self) -> None:
        self._generation += 1
        self._data_source._generate_order(self._generation)

    def close(self) -> None:
        super().close()
        self._reader.is_closed = True

    def reset(self) -> None:
        source = self._data_source
        before = source.position
        source.reset()
        source._position = before  # who reads the source itself goes on where he was
        self._position = 0

    def _get_data(self, position: int) -> Any:
        self._position = position
        return self._data_source._get_data_of_generation(self._slice_start + position, self._generation)

    def _batch(self, start: int, stop: int, generation: int | None = None) -> list[np.ndarray]:
        first, source = self._slice_start, self._data_source
        if isinstance(source, DataSource):
            return source._batch(first + start, first + stop, self._generation)
        return columns([self._get_data(p) for p in range(start, stop)], self._variables)
