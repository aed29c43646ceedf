"""A data source over a folder of cache files, which reads the next files in advance."""

from __future__ import annotations

import csv
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._errors import (
    ArgumentError,
    FileError,
    FormatError,
    MissingFileError,
    NetworkError,
    is_of_user_code,
    message,
)
from .._settings import data_number
from ._cache_files import (
    INDEX,
    INFO,
    Arrays,
    SampleOrder,
    check_count,
    check_rows,
    gathered,
    h5_lengths,
    read_h5,
    read_index,
    read_npy,
)
from ._file_reader import FileReader
from ._source import DataSource


class CachePrefetcher:
    """Reads one `.npy` cache file at a time in a thread of its own.

    Args:
        cachedir: Folder of the cache.
        variables: Names of what the files have, in order.
    """

    def __init__(self, cachedir: str, variables: Sequence[str]) -> None:
        self.file_name: str | None = None
        self._cachedir = cachedir
        self._variables = variables
        self._thread: threading.Thread | None = None
        self._found: list[Any] = []

    def read_cache(self, file_name: str, variables: Sequence[str]) -> Arrays:
        """The arrays of a file, read at once."""
        return read_npy("CacheDataSource", file_name, variables)

    def request(self, cache_file_name: str) -> None:
        """Begin to read a file."""
        self.close()
        self.file_name = None
        found: list[Any] = []
        thread = threading.Thread(target=self._work, args=(cache_file_name, found), daemon=True)
        thread.start()  # Ctrl-C may cut it short: then no file was asked for
        self._thread, self._found, self.file_name = thread, found, cache_file_name

    def _work(self, name: str, found: list[Any]) -> None:
        try:
            found.append(self.read_cache(name, self._variables))
        except BaseException as error:  # raised by who asks for the file
            found.append(error)

    def check_if_hit(self, fn: str) -> bool:
        """Whether that file is being read or was; `read` gives it then."""
        hit = fn == self.file_name
        self.file_name = None if hit else self.file_name
        return hit

    def read(self) -> Arrays | None:
        """The arrays of the file that was asked for, when they are there; None if none was."""
        self.close()
        found, self._found, self.file_name = self._found, [], None
        if found and isinstance(found[0], BaseException):
            raise found[0]
        return found[0] if found else None

    def close(self) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None:
            self._thread.join()  # in a forked child it counts as ended
            self._thread = None


class CacheReaderWithPrefetch:
    """Reads `.npy` cache files, the next ones in advance.

    Args:
        cachedir: Folder of the cache.
        num_threads: How many files are read in advance.
        variables: Names of what the files have, in order.
    """

    def __init__(self, cachedir: str, num_threads: int, variables: Sequence[str]) -> None:
        self._variables = variables
        self._direct = CachePrefetcher(cachedir, variables)
        self._cache_prefetchers = [CachePrefetcher(cachedir, variables) for _ in range(num_threads)]

    def open_and_prefetch_cache(self, file_name: str, file_names_to_prefetch: Sequence[str]) -> Arrays:
        """The arrays of a file; those that are named are read in the meantime, for a later call."""
        hits = [p for p in self._cache_prefetchers if p.check_if_hit(file_name)]
        found = hits[0].read() if hits else None
        if found is None:  # not asked for, or its thread was the parent's, before a fork
            found = self._direct.read_cache(file_name, self._variables)
        wanted = list(file_names_to_prefetch)
        for prefetcher in self._cache_prefetchers:
            if prefetcher.file_name in wanted:
                wanted.remove(prefetcher.file_name)
        for prefetcher in self._cache_prefetchers:
            if prefetcher.file_name not in file_names_to_prefetch and wanted:
                prefetcher.request(wanted.pop(0))
        return found

    def close(self) -> None:
        """Wait until all threads have ended."""
        for prefetcher in self._cache_prefetchers:
            prefetcher.close()


class CacheDataSource(DataSource):
    """Samples of a folder of cache files: NNabla's, of `DataSourceWithFileCache` or of `CreateCache`.

    Args:
        cachedir: Folder.
        shuffle: Whether each epoch has an order of its own: of the files, and of the samples in each.
        rng: Random generator for the orders; by default a `RandomState(313)`.
        normalize: Whether uint8 and uint16 become float32 from 0 to 1.

    Raises:
        OSError: If the folder or one of its tables cannot be read.
        ValueError: If a table or file is not what it should be.
    """

    def __init__(self, cachedir: str, shuffle: bool = False, rng: Any = None, normalize: bool = False) -> None:
        super().__init__(shuffle=shuffle, rng=rng)
        self._cachedir = os.fspath(cachedir)
        self._normalize = normalize
        self._filereader = FileReader(self._cachedir)
        self._num_of_threads = data_number("CacheDataSource", "cache_file_cache_num_of_threads", least=0)
        self._variables = []
        self._cache_files: list[tuple[str, int]] = []
        self._lock = threading.RLock()
        self._current: tuple[str | None, Arrays] = (None, {})
        self.initialize_cache_info(os.path.join(self._cachedir, INFO))
        self.initialize_cache_files_with_index(os.path.join(self._cachedir, INDEX))
        self._reader = CacheReaderWithPrefetch(self._cachedir, self._num_of_threads, self._variables)
        self.reset()

    def _absent(self) -> tuple[type[OSError], ...]:
        """The error of a table that is not there; a server's looks like any other one."""
        return (FileError, NetworkError) if "://" in self._cachedir else (MissingFileError,)

    def initialize_cache_info(self, info_filename: str) -> None:
        """Read which variables `.npy` files have; without that table the files are `.h5`."""
        absent = self._absent()
        try:
            with FileReader(info_filename).open(textmode=True) as f:
                self._variables = [row[0] for row in csv.reader(f) if row]
        except absent:
            self._cache_type = ".h5"
        except (ValueError, csv.Error) as error:
            if is_of_user_code(error):
                raise
            raise FormatError(message("CacheDataSource", None, f"cannot read {info_filename!r}: {error}")) from error
        else:
            self._cache_type = ".npy"

    def initialize_cache_files_with_index(self, index_filename: str) -> None:
        """Read which files there are; without that table they are all `.h5` files of the folder."""
        absent = self._absent()
        try:
            found = read_index("CacheDataSource", FileReader(index_filename), os.path.basename(index_filename))
        except absent:
            for name in self._filereader.listdir() or ():
                self.initialize_cache_files(name)
        else:
            self._cache_files = [(os.path.join(self._cachedir, name), length) for name, length in found]
            if not self._variables and found:
                with self._filereader.open_cache(found[0][0]) as h5:
                    self._variables = list(h5_lengths("CacheDataSource", h5))
        if not sum(length for _, length in self._cache_files):
            expected = f"a folder with {INDEX} or '.h5' files"
            raise ArgumentError(message("CacheDataSource", "cachedir", expected, repr(self._cachedir)))

    def initialize_cache_files(self, filename: str) -> None:
        """Add an `.h5` file of the folder."""
        with self._filereader.open_cache(filename) as h5:
            lengths = h5_lengths("CacheDataSource", h5)
        self._variables = self._variables or list(lengths)
        first, *others = set(lengths.values()) or {-1}
        if set(lengths) != set(self._variables) or others or first < 0:
            expected = f"as many samples of each of {', '.join(self._variables)} in {filename!r}"
            raise FormatError(message("CacheDataSource", None, expected, str(lengths)))
        self._cache_files.append((os.path.join(self._cachedir, filename), first))

    def _arrange(self, rows: Sequence[np.ndarray], files: Sequence[int]) -> None:
        self._samples = SampleOrder([(int(i), rows[k]) for k, i in enumerate(files)])
        self._size = len(self._samples)

    @property
    def order(self) -> list[tuple[str, int]]:
        """The file and the row of the sample at each position."""
        return [(self._cache_files[i][0], int(row)) for i, rows in self._samples.chunks for row in rows]

    def _rows_of(self, file: int) -> np.ndarray:
        path, length = self._cache_files[file]
        check_count("CacheDataSource", path, length)
        rows: np.ndarray = self._rng.permutation(length) if self._shuffle else np.arange(length)
        return rows

    def _load(self, samples: SampleOrder, place: int) -> Arrays:
        """The arrays of the file at a place in the order; the last one is kept."""
        path, length = self._cache_files[samples.chunks[place][0]]
        with self._lock:
            if self._current[0] != path:
                found = self._read_npy(path, samples, place) if self._cache_type == ".npy" else self._read_h5(path)
                self._current = (path, check_rows("CacheDataSource", path, found, self._variables, length))
            return self._current[1]

    def _read_npy(self, path: str, samples: SampleOrder, place: int) -> Arrays:
        following = samples.chunks[place + 1 : place + self._num_of_threads]
        return self._reader.open_and_prefetch_cache(path, [self._cache_files[i][0] for i, _ in following])

    def _read_h5(self, path: str) -> Arrays:
        with FileReader(os.path.dirname(path)).open_cache(os.path.basename(path)) as h5:
            return read_h5("CacheDataSource", h5)

    def _get_data(self, position: int) -> Any:
        self._position = position
        return [array[0] for array in self._batch(position, position + 1)]

    def _batch(self, start: int, stop: int, generation: int | None = None) -> list[np.ndarray]:
        samples = self._samples  # another slice may begin an epoch in the meantime
        parts = [(self._load(samples, place), rows) for place, rows in samples.parts(start, stop)]
        return [self._scaled(array) for array in gathered(parts, self._variables)]

    def _scaled(self, array: np.ndarray) -> np.ndarray:
        most = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}.get(array.dtype)
        return array.astype(np.float32) * np.float32(1.0 / most) if self._normalize and most else array

    def _sample_orders(self, generation: int | None) -> list[Any]:
        return [[file for file, _ in self._samples.chunks], *(rows for _, rows in self._samples.chunks)]

    def close(self) -> None:
        super().close()
        self._reader.close()

    def reset(self) -> None:
        with self._lock:
            count = len(self._cache_files)
            files = self._rng.permutation(count) if self._shuffle else range(count)
            self._arrange([self._rows_of(i) for i in files], files)
            self._generation += 1
            super().reset()
