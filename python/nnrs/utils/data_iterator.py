"""Mini-batches of a data source, made by a thread while the last one is used.

>>> import numpy as np
>>> x = np.arange(12, dtype=np.float32).reshape(6, 2)
>>> with data_iterator_simple(lambda i: (x[i], i), 6, batch_size=4) as batches:
...     rows, numbers = batches.next()
...     rows.shape, numbers.tolist(), batches.next()[1].tolist(), batches.epoch
((4, 2), [0, 1, 2, 3], [4, 5, 0, 1], 1)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from .._borrowed import borrower
from ._iterator import DataIterator, EpochCallback
from ._source import check_source
from .data_source import DataSourceWithFileCache, DataSourceWithMemoryCache, SlicedDataSource
from .data_source_implements import CacheDataSource, ConcatDataSource, CsvDataSource, SimpleDataSource

__all__ = [  # the sources are found here, too, as in NNabla
    "CacheDataSource",
    "ConcatDataSource",
    "CsvDataSource",
    "DataIterator",
    "DataSourceWithFileCache",
    "DataSourceWithMemoryCache",
    "SimpleDataSource",
    "SlicedDataSource",
    "data_iterator",
    "data_iterator_cache",
    "data_iterator_concat_datasets",
    "data_iterator_csv_dataset",
    "data_iterator_simple",
]

__getattr__ = borrower(__name__)


def data_iterator(
    data_source: Any,
    batch_size: int,
    rng: Any = None,
    use_thread: bool = True,
    with_memory_cache: bool = True,
    with_file_cache: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    epoch_begin_callbacks: Sequence[EpochCallback] = (),
    epoch_end_callbacks: Sequence[EpochCallback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Mini-batches of a data source, with caches.

    Args:
        data_source: Where samples are from; it is closed with the iterator.
        batch_size: Samples of a batch.
        rng: Random generator for the orders of caches; by default each has a `RandomState(313)`.
        use_thread: Whether a thread makes the next batch while the last one is used.
        with_memory_cache: Whether samples are kept in memory once they were read, as far as they fit
            (`data_source_buffer_max_size` in `nnrs.config.nnabla_config`).
        with_file_cache: Whether all samples are written to files first.
        cache_dir: Folder of these files, which then stay; by default a temporary one.
        epoch_begin_callbacks: Functions that are called with the number of an epoch when it begins.
        epoch_end_callbacks: The same for its end.
        stop_exhausted: Whether iteration ends when no whole batch is left; else the next epoch begins within the batch.
    """
    check_source("data_iterator", data_source)
    source = data_source
    if with_file_cache:
        source = DataSourceWithFileCache(source, cache_dir, shuffle=source.shuffle, rng=rng)  # type: ignore[arg-type]
    if with_memory_cache:
        source = DataSourceWithMemoryCache(source, shuffle=source.shuffle, rng=rng)
    events = (epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted)
    return DataIterator(source, batch_size, None, use_thread, *events)


def data_iterator_simple(
    load_func: Callable[[int], Any],
    num_examples: int,
    batch_size: int,
    shuffle: bool = False,
    rng: Any = None,
    use_thread: bool = True,
    with_memory_cache: bool = False,
    with_file_cache: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    epoch_begin_callbacks: Sequence[EpochCallback] = (),
    epoch_end_callbacks: Sequence[EpochCallback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Mini-batches of samples that a function gives.

    Args:
        load_func: Called with the number of a sample, by the iterator's thread; gives a tuple of values, of the same
            shapes for each.
        num_examples: Number of samples.
        batch_size: Samples of a batch.
        shuffle: Whether each epoch has an order of its own.
        rng: Random generator for the orders; by default a `RandomState(313)`.
        use_thread, with_memory_cache, with_file_cache, cache_dir: As in `data_iterator`.
        epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted: As in `data_iterator`.

    >>> batches = data_iterator_simple(lambda i: (i, -i), 4, 2, stop_exhausted=True)
    >>> [(a.tolist(), b.tolist()) for a, b in batches]
    [([0, 1], [0, -1]), ([2, 3], [-2, -3])]
    """
    source = SimpleDataSource(load_func, num_examples, shuffle=shuffle, rng=rng)
    caches = (with_memory_cache, with_file_cache, cache_dir)
    events = (epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted)
    return data_iterator(source, batch_size, None, use_thread, *caches, *events)


def data_iterator_csv_dataset(
    uri: str,
    batch_size: int,
    shuffle: bool = False,
    rng: Any = None,
    use_thread: bool = True,
    normalize: bool = True,
    with_memory_cache: bool = True,
    with_file_cache: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
    epoch_begin_callbacks: Sequence[EpochCallback] = (),
    epoch_end_callbacks: Sequence[EpochCallback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Mini-batches of a csv file (see `CsvDataSource`).

    Args:
        uri: Path, 'http://..', 'https://..' or 's3://..'.
        batch_size: Samples of a batch.
        shuffle: Whether each epoch has an order of its own.
        rng: Random generator for the orders; by default a `RandomState(313)`.
        normalize: Whether images go from 0 to 1.
        use_thread, with_memory_cache, with_file_cache, cache_dir: As in `data_iterator`.
        epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted: As in `data_iterator`.
    """
    source = CsvDataSource(uri, shuffle=shuffle, rng=rng, normalize=normalize)
    caches = (with_memory_cache, with_file_cache, cache_dir)
    events = (epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted)
    return data_iterator(source, batch_size, None, use_thread, *caches, *events)


def data_iterator_cache(
    uri: str,
    batch_size: int,
    shuffle: bool = False,
    rng: Any = None,
    use_thread: bool = True,
    normalize: bool = True,
    with_memory_cache: bool = True,
    epoch_begin_callbacks: Sequence[EpochCallback] = (),
    epoch_end_callbacks: Sequence[EpochCallback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Mini-batches of a folder of cache files (see `CacheDataSource`).

    Args:
        uri: Folder.
        batch_size: Samples of a batch.
        shuffle: Whether each epoch has an order of its own.
        rng: Random generator for the orders; by default a `RandomState(313)`.
        normalize: Whether uint8 and uint16 become float32 from 0 to 1.
        use_thread, with_memory_cache: As in `data_iterator`.
        epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted: As in `data_iterator`.
    """
    source = CacheDataSource(uri, shuffle=shuffle, rng=rng, normalize=normalize)
    events = (epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted)
    return data_iterator(source, batch_size, None, use_thread, with_memory_cache, False, None, *events)


def data_iterator_concat_datasets(
    data_source_list: Sequence[Any],
    batch_size: int,
    shuffle: bool = False,
    rng: Any = None,
    use_thread: bool = True,
    with_memory_cache: bool = True,
    with_file_cache: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    epoch_begin_callbacks: Sequence[EpochCallback] = (),
    epoch_end_callbacks: Sequence[EpochCallback] = (),
    stop_exhausted: bool = False,
) -> DataIterator:
    """Mini-batches of several data sources of the same variables.

    Args:
        data_source_list: Data sources; they stay open.
        batch_size: Samples of a batch.
        shuffle: Whether each epoch has an order of its own, over all of them.
        rng: Random generator for the orders; by default a `RandomState(313)`.
        use_thread, with_memory_cache, with_file_cache, cache_dir: As in `data_iterator`.
        epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted: As in `data_iterator`.
    """
    source = ConcatDataSource(data_source_list, shuffle=shuffle, rng=rng)
    caches = (with_memory_cache, with_file_cache, cache_dir)
    events = (epoch_begin_callbacks, epoch_end_callbacks, stop_exhausted)
    return data_iterator(source, batch_size, None, use_thread, *caches, *events)
