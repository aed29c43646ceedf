"""Where data sources are: what decides about their next samples, and how each kind of source takes it back."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._errors import ArgumentTypeError, FormatError, UnsupportedError, message
from ._cache_source import CacheDataSource
from ._csv_source import CsvDataSource
from ._source import DataSource, order_mark, own_position
from .data_source import DataSourceWithFileCache, DataSourceWithMemoryCache, SlicedDataSource
from .data_source_implements import ConcatDataSource, SimpleDataSource

SourceState = dict[str, Any]
SAME = "the script that resumes has to make its iterators as the other one did, from the same data and seeds"
_BASE = ("_position", "_generation", "_shuffle")


def state_of(source: Any, since: int) -> SourceState:
    """Where a source is.

    Args:
        source: The source.
        since: First epoch of which its readers still want the order, where it keeps several.
    """
    found = {name: getattr(source, name) for name in _BASE if hasattr(source, name)}
    if _tells(source):
        return found | {"told": source.get_state()}
    if not isinstance(source, DataSource):
        hint = "give it methods get_state() and set_state(state), or derive it from DataSource"
        expected = "a data source that can tell where it is"
        raise ArgumentTypeError(message("save", "iterators", expected, type(source).__name__, hint))
    found["own"] = own_position(source)
    rule = _rule(source)
    return found | (rule[1](source, since) if rule else {})


def take_state(source: Any, state: SourceState) -> None:
    """Bring a source back to what `state_of` gave; sources that it reads come after it."""
    rule = _rule(source)
    if _tells(source):
        source.set_state(state["told"])
    elif rule:
        rule[2](source, state)
    for name in _BASE:
        if hasattr(source, name):
            setattr(source, name, like(getattr(source, name), state[name]))
    own = own_position(source) if isinstance(source, DataSource) and not _tells(source) else {}
    for name in own:
        setattr(source, name, state["own"][name])


def like(now: Any, then: Any) -> Any:
    """`then`, if it is a number or flag as `now` is."""
    if isinstance(now, bool) != isinstance(then, bool) or not isinstance(then, (int, np.integer)) or then < -1:
        raise FormatError(message("load", "path", "a checkpoint of this version of nnrs", f"{then!r} for {now!r}"))
    return then


def _tells(source: Any) -> bool:
    return callable(getattr(source, "get_state", None)) and callable(getattr(source, "set_state", None))


def _order_out(order: Any) -> np.ndarray | None:
    """An order as a small array; None for 0, 1, 2, .."""
    array = np.asarray(order, np.int64)
    return None if np.array_equal(array, np.arange(len(array))) else array.astype(np.int32)


def _order_in(order: np.ndarray | None, size: int) -> np.ndarray:
    found = np.arange(size) if order is None else np.array(order, np.int64)
    if not np.array_equal(np.sort(found), np.arange(size)):
        raise FormatError(message("load", "path", f"an order of {size} samples", "another one", SAME))
    return found


def _rows_in(rows: np.ndarray, lengths: Sequence[int]) -> list[np.ndarray]:
    """The orders of the rows in each of several files, from all in a row."""
    parts = np.split(np.asarray(rows), np.cumsum(lengths)[:-1])
    return [_order_in(part, n) for part, n in zip(parts, lengths, strict=True)]


def _simple_state(source: SimpleDataSource, since: int) -> SourceState:
    with source._lock:
        orders = [(known, _order_out(order)) for known, order in source._orders if known >= since]
        return {"orders": orders, "first": _order_out(source._first_order)}


def _set_simple(source: SimpleDataSource, state: SourceState) -> None:
    orders = [(like(0, known), _order_in(order, source.size)) for known, order in state["orders"]]
    first = _order_in(state["first"], source.size)
    with source._lock:
        source._orders.clear()
        source._orders.extend(orders)
        source._first_order = first


def _csv_state(source: CsvDataSource, since: int) -> SourceState:
    return {"order": _order_out(source._order)}


def _set_csv(source: CsvDataSource, state: SourceState) -> None:
    source._order = _order_in(state["order"], source.size).tolist()


def _concat_state(source: ConcatDataSource, since: int) -> SourceState:
    return {"order": _order_out(source._indexes)}


def _set_concat(source: ConcatDataSource, state: SourceState) -> None:
    source._indexes = _order_in(state["order"], source.size)


def _folder_state(source: CacheDataSource, since: int) -> SourceState:
    chunks = source._samples.chunks
    rows = np.concatenate([rows for _, rows in chunks]).astype(np.int64)
    return {"files": _order_out([file for file, _ in chunks]), "rows": rows}


def _set_folder(source: CacheDataSource, state: SourceState) -> None:
    files = _order_in(state["files"], len(source._cache_files))
    rows = _rows_in(state["rows"], [source._cache_files[i][1] for i in files])
    with source._lock:
        source._arrange(rows, files.tolist())


def _file_cache_state(source: DataSourceWithFileCache, since: int) -> SourceState:
    rows = np.concatenate(source._rows).astype(np.int64)
    return {"files": _order_out(source._file_order), "rows": rows, "basis": source._basis}


def _set_file_cache(source: DataSourceWithFileCache, state: SourceState) -> None:
    _check_basis(source, state["basis"])
    files = _order_in(state["files"], len(source._files))
    source._rows = _rows_in(state["rows"], [length for _, length in source._files])
    source._file_order = files
    source._arrange()


def _memory_cache_state(source: DataSourceWithMemoryCache, since: int) -> SourceState:
    cache = source._cache
    moved = order_mark(source._data_source) != source._basis
    if cache is not None and moved and cache.is_begun and cache.is_partial:
        hint = "give both the same shuffle"
        text = "a memory cache is partly filled, and its source has another order already"
        raise UnsupportedError(message("save", "iterators", text, hint=hint))
    found = {"cached": cache is not None, "refill": moved and cache is not None and not cache.is_partial}
    return found | {"order": _order_out(source._order), "touched": bool(source._touched), "basis": source._basis}


def _set_memory_cache(source: DataSourceWithMemoryCache, state: SourceState) -> None:
    cache = source._cache
    if (cache is not None) != state["cached"]:
        hint = "give data_source_buffer_max_size of the settings its former value"
        expected = f"{'a' if cache else 'no'} cache in memory"
        raise FormatError(message("load", "path", expected, "the opposite", hint))
    if cache is not None:
        _check_basis(source, state["basis"])
        if cache.is_partial and cache.is_begun and order_mark(source._data_source) != source._basis:
            hint = "load before the first epoch ends"
            raise UnsupportedError(message("load", "path", "a memory cache is partly filled", hint=hint))
        if state["refill"]:
            cache.fill()  # while the other source still has the order in which the cache was filled
    source._order = _order_in(state["order"], source.size)
    source._touched = like(source._touched, state["touched"])


def _check_basis(source: Any, basis: int) -> None:
    """A cache names samples by their places in another source, which has to begin with the order that it had."""
    if basis != source._basis:
        text = f"a {type(source).__name__} over a source in the order of then"
        raise FormatError(message("load", "path", text, "another order", SAME))


_Rule = tuple[type, Callable[[Any, int], SourceState], Callable[[Any, SourceState], None]]
_RULES: tuple[_Rule, ...] = (
    (SimpleDataSource, _simple_state, _set_simple),
    (CsvDataSource, _csv_state, _set_csv),
    (ConcatDataSource, _concat_state, _set_concat),
    (CacheDataSource, _folder_state, _set_folder),
    (DataSourceWithFileCache, _file_cache_state, _set_file_cache),
    (DataSourceWithMemoryCache, _memory_cache_state, _set_memory_cache),
)


def _rule(source: Any) -> _Rule | None:
    return next((rule for rule in _RULES if isinstance(source, rule[0])), None)


# --- several sources --------------------------------------------------------------------------------------------------


def _children(source: Any) -> list[Any]:
    """The sources that a source reads."""
    found = list(getattr(source, "_data_sources", ()))
    return [*found, source._data_source] if hasattr(source, "_data_source") else found


def _generators(source: Any) -> dict[str, Any]:
    """The random generators that a source holds, by their attributes."""
    kinds = (np.random.RandomState, np.random.Generator, random.Random)
    return {name: v for name, v in vars(source).items() if isinstance(v, kinds) or name == "_rng"}


def _place(value: Any, among: list[Any]) -> int:
    return next((i for i, other in enumerate(among) if other is value), -1)


class SourceSet:
    """All sources that some others read, each once, children first, and the random generators that they hold."""

    def __init__(self, roots: Sequence[Any]) -> None:
        self.sources: list[Any] = []
        self.generators: list[Any] = []
        self._readers: list[tuple[Any, Any]] = [(None, root) for root in roots]
        for root in roots:
            self._add(root)

    def _add(self, source: Any) -> None:
        if _place(source, self.sources) >= 0:
            return
        for child in _children(source):
            self._readers.append((source, child))
            self._add(child)
        self.sources.append(source)
        for generator in _generators(source).values():
            if _place(generator, self.generators) < 0:
                self.generators.append(generator)

    def place(self, source: Any) -> int:
        """The number of a source."""
        return _place(source, self.sources)

    def shapes(self) -> list[dict[str, Any]]:
        """What has to be the same where the states are brought back."""
        return [self._shape(source) for source in self.sources]

    def _shape(self, source: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": type(source).__name__, "size": int(source.size)}
        found["children"] = [self.place(child) for child in _children(source)]
        found["generators"] = {name: _place(v, self.generators) for name, v in _generators(source).items()}
        if isinstance(source, SlicedDataSource):
            found["range"] = (source._slice_start, source._slice_end)
        return found

    def states(self) -> list[SourceState]:
        """Where the sources are."""
        return [state_of(source, self._since(source)) for source in self.sources]

    def _since(self, source: Any) -> int:
        """The earliest epoch that is read: slices count epochs of their own."""
        readers = [reader for reader, read in self._readers if read is source]
        own = getattr(source, "_generation", 0)
        return min(reader._generation if isinstance(reader, SlicedDataSource) else own for reader in readers)
