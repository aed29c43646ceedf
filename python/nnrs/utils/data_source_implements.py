"""Sources of samples: a function, a csv file, a folder of cache files, several sources in a row.

>>> source = SimpleDataSource(lambda i: (i, i * i), 4)
>>> source.size, list(source.variables), [source.next() for _ in range(2)] == [(0, 0), (1, 1)]
(4, ['x0', 'x1'], True)
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._borrowed import borrower
from .._errors import (
    ArgumentError,
    ArgumentTypeError,
    check_callable,
    check_integer,
    check_type,
    describe,
    is_of_user_code,
    message,
)
from ._batches import columns
from ._cache_source import CacheDataSource, CachePrefetcher, CacheReaderWithPrefetch
from ._csv_source import CsvDataSource
from ._source import DataSource

__all__ = [
    "CacheDataSource",
    "CachePrefetcher",
    "CacheReaderWithPrefetch",
    "ConcatDataSource",
    "CsvDataSource",
    "SimpleDataSource",
]

__getattr__ = borrower(__name__)


class SimpleDataSource(DataSource):
    """Samples that a function gives.

    Args:
        load_func: Called with the number of a sample; gives a tuple of values, of the same shapes for each.
        num_examples: Number of samples.
        shuffle: Whether each epoch has an order of its own.
        rng: Random generator for the orders; by default a `RandomState(313)`.
    """

    _keeps_orders = True

    def __init__(
        self, load_func: Callable[[int], Any], num_examples: int, shuffle: bool = False, rng: Any = None
    ) -> None:
        check_callable("SimpleDataSource", "load_func", load_func)
        super().__init__(shuffle=shuffle, rng=rng)
        self._load_func = load_func
        count: Any = num_examples
        if isinstance(count, float) and count.is_integer():  # 1e4
            count = int(count)
        self._size = check_integer("SimpleDataSource", "num_examples", count, 1)
        self._generation = 0
        self._variables = [f"x{i}" for i in range(_values_of(load_func(0)))]
        self._orders: deque[tuple[int, np.ndarray]] = deque(maxlen=15)  # a slice may be that many epochs behind
        self._lock = threading.Lock()
        self._generate_order(0)
        self._first_order = self._orders[0][1]  # with which each slice begins, however late it is made

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def _get_data(self, position: int) -> Any:
        return self._get_data_of_generation(position, self._generation)

    def _get_data_of_generation(self, position: int, generation: int) -> Any:
        return self._load_func(self._order_of(generation)[position])

    def _order_of(self, generation: int) -> np.ndarray:
        if generation == 0:
            return self._first_order
        for known, order in reversed(self._orders):
            if known == generation:
                return order
        text = f"the order of epoch {generation} is gone: slices of a source are to be read at the same pace"
        raise ArgumentError(message("SimpleDataSource", None, text))

    def _sample_orders(self, generation: int | None) -> list[Any]:
        wanted = self._generation if generation is None else generation
        return [self._first_order] if wanted == 0 else [order for known, order in self._orders if known == wanted]

    def _batch(self, start: int, stop: int, generation: int | None = None) -> list[np.ndarray]:
        order = self._order_of(self._generation if generation is None else generation)
        load = self._load_func
        return columns([load(i) for i in order[start:stop]], self._variables)

    def apply_order(self) -> None:
        self._generation += 1
        self._generate_order(self._generation)

    def _generate_order(self, generation: int) -> None:
        with self._lock:
            if all(known != generation for known, _ in self._orders) and not (generation == 0 and self._orders):
                order = self._rng.permutation(self._size) if self._shuffle else np.arange(self._size)
                self._orders.append((generation, order))


def _values_of(sample: Any) -> int:
    try:
        return len(sample)
    except TypeError as error:
        if is_of_user_code(error):
            raise
        expected = "a function that gives a tuple of values"
        raise ArgumentTypeError(message("SimpleDataSource", "load_func", expected, describe(sample))) from None


class ConcatDataSource(DataSource):
    """Several sources of the same variables, one after the other or mixed.

    Args:
        data_source_list: Data sources; they stay open.
        shuffle: Whether each epoch has an order of its own, over all of them.
        rng: Random generator for the orders; by default a `RandomState(313)`.
    """

    def __init__(self, data_source_list: Sequence[Any], shuffle: bool = True, rng: Any = None) -> None:
        super().__init__(shuffle=shuffle, rng=rng)
        check_type("ConcatDataSource", "data_source_list", data_source_list, Iterable, "a list of data sources")
        self._data_sources = list(data_source_list)
        if not self._data_sources:
            raise ArgumentError(message("ConcatDataSource", "data_source_list", "one data source or more", "none"))
        for source in self._data_sources:
            if not hasattr(source, "_get_data"):
                expected = "a list of data sources"
                raise ArgumentTypeError(message("ConcatDataSource", "data_source_list", expected, describe(source)))
        self._ends = np.cumsum([source.size for source in self._data_sources])
        self._size = int(self._ends[-1])
        self._variables = self._data_sources[0].variables
        for source in self._data_sources:
            if len(source.variables) != len(self._variables):
                expected = f"sources of {len(self._variables)} variables"
                raise ArgumentError(message("ConcatDataSource", "data_source_list", expected, source.variables))
        self.reset()

    def _get_data(self, position: int) -> Any:
        index = int(self._indexes[position])
        place = int(np.searchsorted(self._ends, index, side="right"))
        source = self._data_sources[place]
        return source._get_data(index - (int(self._ends[place]) - source.size))

    def _sample_orders(self, generation: int | None) -> list[Any]:
        return [self._indexes]

    def reset(self) -> None:
        self._indexes = self._rng.permutation(self._size) if self._shuffle else np.arange(self._size)
        super().reset()
