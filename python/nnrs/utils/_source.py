"""What all data sources have in common."""

from __future__ import annotations

import atexit
import contextlib
import copy
import weakref
import zlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from .._errors import ArgumentTypeError, describe, message
from ._batches import columns

_SEED = 313

_open_sources: weakref.WeakSet[DataSource] = weakref.WeakSet()


def check_source(function: str, source: Any) -> None:
    """Raise TypeError unless samples can be read from `source`."""
    missing = [name for name in ("size", "shuffle", "position", "next", "reset") if not hasattr(source, name)]
    if isinstance(source, DataSource) and missing:
        hint = f"its class {type(source).__name__} has to call super().__init__()"
        raise ArgumentTypeError(
            message(
                function, "data_source", "a data source whose DataSource.__init__ was called", describe(source), hint
            )
        )
    if missing:
        hint = "data_iterator_simple reads samples from a function, e.g. lambda i: (x[i], y[i])"
        raise ArgumentTypeError(message(function, "data_source", "a DataSource", describe(source), hint))


class DataSource:
    """A sequence of samples that is read again and again.

    Args:
        shuffle: Whether each epoch has an order of its own.
        rng: Random generator for the orders, with a method `permutation`; by default a `RandomState(313)`.
    """

    _keeps_orders = False
    """Whether slices find the orders of the epochs that they are in."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """A class with its own way to read one sample reads several so, too."""
        super().__init_subclass__(**kwargs)
        if {"_get_data", "_get_data_of_generation"} & set(vars(cls)) and "_batch" not in vars(cls):
            cls._batch = DataSource._batch  # type: ignore[method-assign]

    def __init__(self, shuffle: bool = False, rng: Any = None) -> None:
        if rng is not None and not callable(getattr(rng, "permutation", None)):
            expected = "a random generator of NumPy's, such as numpy.random.RandomState(313)"
            raise ArgumentTypeError(message(type(self).__name__, "rng", expected, describe(rng)))
        self._rng: Any = np.random.RandomState(_SEED) if rng is None else rng
        self._variables: Sequence[str] = ()
        self._generation = -1
        self._shuffle = shuffle
        self._position = 0
        self._size = 0
        self._closed = False
        self._order: Any = None
        self._original_order: Any = None
        self._original_source_uri: str | None = None
        with contextlib.suppress(TypeError):  # one that cannot be hashed is not closed at exit
            _open_sources.add(self)

    def _get_data(self, position: int) -> Any:
        """The sample at a position of the epoch."""
        raise NotImplementedError(f"{type(self).__name__} has no _get_data(position)")

    def _get_data_of_generation(self, position: int, generation: int) -> Any:
        """The same in the order of an epoch of its own count."""
        return self._get_data(position)

    def _generate_order(self, generation: int) -> None:
        """Make the order of that epoch, if it is not there; slices of one source share it."""

    def _batch(self, start: int, stop: int, generation: int | None = None) -> list[np.ndarray]:
        """An array for each variable of the samples from one position to another; `generation` as above."""
        if generation is None:
            samples = [self._get_data(p) for p in range(start, stop)]
        else:
            samples = [self._get_data_of_generation(p, generation) for p in range(start, stop)]
        return columns(samples, self._variables, lambda number: self._origin_of(start + number))

    def _origin_of(self, position: int) -> str | None:
        """Where the sample at a position is from, as `file:line`, where that is known: for errors."""
        return None

    def _sample_orders(self, generation: int | None) -> list[Any]:
        """All that says which sample is at which position, in an epoch of a slice or (None) in the source's own."""
        return [v for v in own_position(self).values() if isinstance(v, (list, np.ndarray))]

    def __iter__(self) -> DataSource:
        return self

    def __next__(self) -> Any:
        return self.next()

    def __enter__(self) -> DataSource:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: Any, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Free what the source holds; a second call does nothing."""
        self._closed = True

    @property
    def order(self) -> Any:
        """The order of the samples in this epoch, for sources that have one (else None)."""
        return self._order

    @property
    def variables(self) -> Sequence[str]:
        """Names of what a sample has."""
        return self._variables

    def next(self) -> Any:
        """The sample at the position, which moves on."""
        data = self._get_data(self._position)
        self._position += 1
        return data

    @property
    def position(self) -> int:
        """How many samples of this epoch were read."""
        return self._position

    @property
    def size(self) -> int:
        """Samples of an epoch."""
        return self._size

    @property
    def shuffle(self) -> bool:
        """Whether each epoch has an order of its own."""
        return self._shuffle

    @shuffle.setter
    def shuffle(self, value: bool) -> None:
        self._shuffle = value

    def reset(self) -> None:
        """Begin an epoch."""
        self._position = 0

    def apply_order(self) -> None:
        """Take the order of the next epoch: called when the batch in which an epoch ended is made."""


# What every source has, and is kept as such or not at all. A user's own `_order` is one of its orders.
_NO_POSITION = {"_rng", "_variables", "_generation", "_shuffle", "_position", "_size", "_closed", "_original_order"}
_NO_POSITION |= {"_original_source_uri", "_data_source", "_data_sources"}


def own_position(source: DataSource) -> dict[str, Any]:
    """What a user's source may keep of its position: numbers and flags, and orders of all samples, as ints."""
    if type(source).__module__.startswith("nnrs."):
        return {}
    size = source.size
    return {k: v for k, v in vars(source).items() if k not in _NO_POSITION and _is_position(v, size)}


def _is_position(value: Any, size: int) -> bool:
    if value is None or isinstance(value, (bool, int, float, np.integer)):
        return True
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "iu" and len(value) == size
    return isinstance(value, list) and len(value) == size and all(isinstance(v, (int, np.integer)) for v in value)


def _is_ours(source: Any) -> bool:
    return isinstance(source, DataSource) and type(source).__module__.startswith("nnrs.")


def replica(source: Any, copies: dict[int, Any]) -> Any:
    """A source of the same samples, with orders of its own that go on as those of `source` do.

    Args:
        source: The source; one of a class of the user's is itself.
        copies: Of random generators, by the id of the one that several sources of one replica share.
    """
    if not _is_ours(source):
        return source
    made: Any = copy.copy(source)
    if id(source._rng) not in copies:
        copies[id(source._rng)] = _copied(source._rng)
    made._rng = copies[id(source._rng)]
    if hasattr(made, "_orders"):
        made._orders = copy.copy(made._orders)
    if hasattr(made, "_data_source"):
        made._data_source = replica(made._data_source, copies)
    if hasattr(made, "_data_sources"):
        made._data_sources = [replica(one, copies) for one in made._data_sources]
    return made


def _copied(rng: Any) -> Any:
    if rng is np.random:
        made = np.random.RandomState()
        made.set_state(np.random.get_state())
        return made
    try:
        return copy.deepcopy(rng)
    except TypeError:  # one of the user's that has no copy
        return rng


class SliceReader:
    """Which part of its source a slice reads, and how far it is."""

    def __init__(self, start: int, end: int) -> None:
        self.part = (start, end)
        self.epochs = 0
        """How many have ended in the batches that were given."""
        self.is_closed = False
        self.replica: Any = None
        """What it reads in place of the source."""


class _Slices:
    """Slices of a source that are read beside each other; they begin with one order."""

    def __init__(self, basis: Any) -> None:
        self.basis = basis
        self.readers: list[SliceReader] = []

    def furthest(self) -> Any:
        """What the one reads that has read most; None: the source itself."""
        return max(self.readers, key=lambda r: r.epochs).replica

    def is_joined_by(self, reader: SliceReader) -> bool:
        """Whether a new one is beside these, and not made anew after them; when these are freed must not decide."""
        first = self.readers[0]
        return not (first.is_closed or first.part == reader.part or any(r.epochs > 0 for r in self.readers))


_slices: weakref.WeakKeyDictionary[DataSource, _Slices] = weakref.WeakKeyDictionary()


def for_slice(source: Any, reader: SliceReader) -> Any:
    """What a slice of a source reads, so that slices beside each other do not take each other's orders.

    The first one reads the source itself, others replicas of what that was then. One that is made when these have read
    epochs goes on where the furthest of them is, whichever this process has read.
    """
    if not _is_ours(source) or source._keeps_orders:
        return source
    known = _slices.get(source)
    if known is None or not known.is_joined_by(reader):
        goes_on = None if known is None else known.furthest()
        reader.replica = None if goes_on is None else replica(goes_on, {})
        known = _slices[source] = _Slices(replica(source if goes_on is None else goes_on, {}))
    else:
        reader.replica = replica(known.basis, {})
    known.readers.append(reader)
    if reader.replica is None:
        return source
    return reader.replica


def order_mark(source: Any, generation: int | None = None) -> int:
    """A checksum of the order in which a source and those that it reads give their samples (of a slice's epoch)."""
    crc = 0
    for order in source._sample_orders(generation) if isinstance(source, DataSource) else ():
        crc = zlib.crc32(np.asarray(order, np.int64).tobytes(), crc)
    of_slice = source._generation if hasattr(source, "_slice_start") else None
    for child in (*getattr(source, "_data_sources", ()), getattr(source, "_data_source", None)):
        crc = crc if child is None else zlib.crc32(str(order_mark(child, of_slice)).encode(), crc)
    return crc


def _close_all() -> None:
    for source in list(_open_sources):
        with contextlib.suppress(Exception):  # the others are closed all the same
            source.close()


atexit.register(_close_all)
