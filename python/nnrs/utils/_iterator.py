"""The iterator over mini-batches of a data source: threads, epochs, slices."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from .. import _forks
from .._errors import ArgumentError, check_callable, check_flag, check_integer, check_type, message
from ._batches import Batch, BatchMaker
from ._prefetch import Prefetcher
from ._source import SliceReader, check_source
from .data_source import DataSourceWithFileCache, DataSourceWithMemoryCache, SlicedDataSource

EpochCallback = Callable[[int], Any]

_live: weakref.WeakSet[DataIterator] = weakref.WeakSet()


class DataIterator:
    """Gives mini-batches of a data source, without end or until an epoch is used up.

    Args:
        data_source: Where samples are from; it is closed with the iterator.
        batch_size: Samples of a batch.
        rng: Kept for `slice`, as `_rng`; the orders of this iterator are the source's.
        use_thread: Whether a thread makes the next batch while the last one is used.
        epoch_begin_callbacks: Functions that are called with the number of an epoch when it begins.
        epoch_end_callbacks: The same for its end.
        stop_exhausted: Whether iteration ends when no whole batch is left; else the next epoch begins within the batch.

    Several threads may read one iterator: each batch goes to one of them. An iterator that is dropped ends its thread.
    What the source raises is raised by `next`, also with a thread, and the next call tries again.
    """

    def __init__(
        self,
        data_source: Any,
        batch_size: int,
        rng: Any = None,
        use_thread: bool = True,
        epoch_begin_callbacks: Sequence[EpochCallback] = (),
        epoch_end_callbacks: Sequence[EpochCallback] = (),
        stop_exhausted: bool = False,
    ) -> None:
        name = "DataIterator"
        self._batch_size = check_integer(name, "batch_size", batch_size, 1)
        self._stop_exhausted = check_flag(name, "stop_exhausted", stop_exhausted)
        self._epoch_begin_callbacks = _callbacks("epoch_begin_callbacks", epoch_begin_callbacks)
        self._epoch_end_callbacks = _callbacks("epoch_end_callbacks", epoch_end_callbacks)
        check_source(name, data_source)
        if data_source.size < 1 and not self._stop_exhausted:
            raise ArgumentError(message(name, "data_source", "one sample or more", "none"))
        self._data_source = data_source
        self._rng = np.random.RandomState(313) if rng is None else rng  # scripts read it for `slice`
        self._shuffle = data_source.shuffle
        self._current_epoch = 0
        self._reader: SliceReader | None = None  # of one that `slice` has made
        self._closed = self._is_over = False
        self._held: Batch | None = None  # made, but a callback raised
        self._lock = threading.RLock()  # held by the caller whose turn it is
        self._data_source.reset()
        self._maker = BatchMaker(data_source, self._batch_size, self._stop_exhausted)
        self._position = data_source.position
        self._prefetcher = Prefetcher(self._maker.make) if check_flag(name, "use_thread", use_thread) else None
        if self._prefetcher is not None:
            weakref.finalize(self, self._prefetcher.stop)
            self._prefetcher.request()
        _live.add(self)

    def __iter__(self) -> DataIterator:
        return self

    def __next__(self) -> tuple[np.ndarray, ...]:
        return self.next()

    def __enter__(self) -> DataIterator:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: Any, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the thread, after the batch that it is at, and close the data source; a second call does nothing."""
        self._closed = True  # at once: who waits in `next` makes nothing more
        with self._alone():
            if self._is_over:
                return
            self._is_over = True
            if self._prefetcher is not None:
                self._prefetcher.stop()
                self._prefetcher.join()
            self._data_source.close()

    def _alone(self) -> contextlib.AbstractContextManager[Any]:
        """The turn of one caller of several. The iterator's own thread has none: who waits for its batch has it."""
        is_own = self._prefetcher is not None and self._prefetcher.is_current()
        return contextlib.nullcontext() if is_own else self._lock

    @property
    def epoch(self) -> int:
        """How many epochs have ended in the batches that were given."""
        return self._current_epoch

    @property
    def position(self) -> int:
        """How many samples of this epoch were given."""
        return self._position

    @property
    def size(self) -> int:
        """Samples of an epoch."""
        return self._maker.size

    @property
    def variables(self) -> Sequence[str]:
        """Names of what a batch has."""
        return self._data_source.variables  # type: ignore[no-any-return]

    _size, _variables = size, variables  # by NNabla's names of its attributes

    @property
    def batch_size(self) -> int:
        """Samples of a batch."""
        return self._batch_size

    def next(self) -> tuple[np.ndarray, ...]:
        """The next batch: an array for each variable, with the samples along its first axis.

        Raises:
            StopIteration: If no whole batch is left, with `stop_exhausted`.
            ValueError: If the iterator is closed, or values of a batch are of several shapes.
        """
        with self._alone():
            self._check_open("next")
            batch, self._held = self._held or self._take(), None
            self._position = batch.position
            for done in range(batch.resets):
                try:
                    self._end_epoch()
                except BaseException:  # of a callback: the next call gives the batch
                    self._held = batch._replace(resets=batch.resets - done - 1)
                    raise
            return batch.data  # type: ignore[return-value]

    def _check_open(self, function: str) -> None:
        if self._closed:
            raise ArgumentError(message(function, None, "an open iterator", "a closed one"))

    def _take(self) -> Batch:
        batch: Batch = self._prefetcher.take() if self._prefetcher is not None else self._maker.make()
        if batch.data is None:
            raise StopIteration
        if self._prefetcher is not None and not self._closed:  # a signal's handler may have closed it meanwhile
            self._prefetcher.request()
        return batch

    def _end_epoch(self) -> None:
        try:
            for callback in self._epoch_end_callbacks:
                callback(self._current_epoch)
        finally:
            self._current_epoch += 1
            if self._reader is not None:
                self._reader.epochs += 1
        for callback in self._epoch_begin_callbacks:
            callback(self._current_epoch)

    def _reset(self) -> None:
        """Begin the source anew; what was made ahead is forgotten."""
        with self._alone():
            self._held = None
            if self._prefetcher is not None:
                self._prefetcher.drop()
            self._maker.drop()
            self._data_source.reset()
            self._position = self._data_source.position

    def slice(
        self,
        rng: Any,
        num_of_slices: int | None = None,
        slice_pos: int | None = None,
        slice_start: int | None = None,
        slice_end: int | None = None,
        cache_dir: str | None = None,
        use_cache: bool = False,
        drop_last: bool = False,
    ) -> DataIterator:
        """An iterator over a part of each epoch, for data-parallel training: one of equal slices, or a range.

        Args:
            rng: Random generator for the orders of caches.
            num_of_slices: Number of slices.
            slice_pos: Which of them.
            slice_start: First position of a range.
            slice_end: Position behind its last one.
            cache_dir: Folder for a file cache of the slice; by default the one that the source has, if it has one.
            use_cache: Whether the slice has caches of its own: in files where there is a folder, and in memory.
            drop_last: Whether slices leave out what cannot be divided evenly; else some samples are in two slices.

        Returns:
            A DataIterator with a thread, without end and without callbacks. It reads the data source of this one, which
            is not to be read meanwhile; other slices may be. Where the batch size does not divide its size, a shuffled
            epoch has some samples twice, and lacks as many, as in NNabla.

        >>> from nnrs.utils.data_iterator import data_iterator_simple
        >>> with data_iterator_simple(lambda i: (i,), 10, 2) as whole, whole.slice(None, 5, 1) as part:
        ...     part.next()[0].tolist()
        [2, 3]
        """
        start, end = self._range(num_of_slices, slice_pos, slice_start, slice_end, drop_last)
        self._check_open("slice")
        if self._prefetcher is not None:  # both read one source
            with self._alone():
                self._prefetcher.settle()
        source = self._data_source
        part: Any = SlicedDataSource(source, source.shuffle, slice_start=start, slice_end=end)
        reader = part._reader
        if use_cache:
            folder = _cache_dir(source) if cache_dir is None else cache_dir
            if folder is not None:
                prefix = f"cache_sliced_{start:08d}_{end:08d}"
                part = DataSourceWithFileCache(part, folder, prefix, shuffle=self._shuffle, rng=rng)
            part = DataSourceWithMemoryCache(part, shuffle=self._shuffle, rng=rng)
        made = DataIterator(part, self._batch_size)
        made._reader = reader
        return made

    def _range(
        self, count: int | None, which: int | None, start: int | None, end: int | None, drop_last: bool
    ) -> tuple[int, int]:
        if count is not None and which is not None and start is None and end is None:
            count = check_integer("slice", "num_of_slices", count, 1)
            which = check_integer("slice", "slice_pos", which, 0)
            if which >= count:
                raise ArgumentError(message("slice", "slice_pos", f"less than {count}, the number of slices", which))
            return _slice_of(self.size, count, which, drop_last)
        if count is None and which is None and start is not None and end is not None:
            return start, end
        expected = "either num_of_slices and slice_pos, or slice_start and slice_end"
        raise ArgumentError(message("slice", None, expected, "another choice of them"))

    def register_epoch_begin_callback(self, callback: EpochCallback) -> None:
        """Have a function called with the number of each epoch that begins.

        Args:
            callback: Function of the epoch's number.
        """
        check_callable("register_epoch_begin_callback", "callback", callback)
        self._epoch_begin_callbacks.append(callback)

    def register_epoch_end_callback(self, callback: EpochCallback) -> None:
        """Have a function called with the number of each epoch that ends.

        Args:
            callback: Function of the epoch's number.
        """
        check_callable("register_epoch_end_callback", "callback", callback)
        self._epoch_end_callbacks.append(callback)


def _callbacks(argument: str, given: Any) -> list[EpochCallback]:
    check_type("DataIterator", argument, given, Iterable, "a list of functions of an epoch's number")
    found = list(given)
    for callback in found:
        check_callable("DataIterator", argument, callback)
    return found


def _slice_of(size: int, count: int, which: int, drop_last: bool) -> tuple[int, int]:
    """Start and end of one of `count` slices of equal lengths: short ones, or some that overlap at the end."""
    if drop_last:
        length = size // count
        return length * which, length * (which + 1)
    length = (size + count - 1) // count
    start = length * which % size
    end = min(start + length, size)
    return end - length, end


def _cache_dir(source: Any) -> str | None:
    """The folder of the innermost file cache that a source reads."""
    found = None
    while hasattr(source, "_data_source"):
        found = getattr(source, "_cache_dir", found)
        source = source._data_source
    return found


# After `_prefetch`, and so taken before its locks: who waits for a batch lets go of this one only when it is made.
_forks.hold(lambda: [iterator._lock for iterator in list(_live)])
