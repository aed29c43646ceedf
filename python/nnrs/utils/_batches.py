"""Batches out of a data source: samples stacked to arrays, epochs begun anew in the midst of a batch.

What is done so far is kept when a sample fails: the next attempt goes on from there, so nothing is lost or given twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from .._errors import ArgumentError, ArgumentTypeError, ShapeError, StateError, describe, is_of_user_code, message


class Batch(NamedTuple):
    """What one call of `next` gives: arrays (None at the end), epochs that ended in it, the position behind it."""

    data: tuple[np.ndarray, ...] | None
    resets: int
    position: int


_ARRAYS = {np.ndarray}
# How large a batch is copied as bytes: below, concatenate takes less time, and above it has huge pages.
_AS_BYTES = range(1 << 15, 1 << 22)
_SHAPE, _DTYPE = attrgetter("shape"), attrgetter("dtype")
_SEQUENCES = {tuple, list, np.ndarray}


Place = Callable[[int], "str | None"]
"""Where a sample is from, as `file:line`, by its number; None where that is not known."""


def stack(values: Sequence[Any], variable: str, place: Place | None = None) -> np.ndarray:
    """Values of equal shape as one array with a new first axis, as `numpy.array` makes it, in less time.

    Args:
        values: A value for each sample.
        variable: Name, for errors.
        place: Where the sample of a number is from, for errors.
    """
    first = values[0]
    try:
        plain = set(map(type, values)) == _ARRAYS and first.ndim and first.flags.c_contiguous and first.dtype.isnative
        made = _joined(values) if plain and first.nbytes * len(values) in _AS_BYTES else None
        if made is None and plain and set(map(len, values)) == {len(first)}:
            made = np.ascontiguousarray(np.concatenate(values))
        if made is not None:
            return made.reshape((len(values), *first.shape))
        return np.array(values)
    except (ValueError, TypeError) as error:  # an array without axes has no length
        if is_of_user_code(error):
            raise
        expected = f"values of one shape for {variable!r} in all samples of a batch"
        raise ShapeError(message("data source", None, expected, _shapes(values, place))) from error


def _joined(values: Sequence[np.ndarray]) -> np.ndarray | None:
    """As `numpy.concatenate` in three quarters of the time, by way of bytes; None where that is not to be done."""
    kind, shape = values[0].dtype, values[0].shape
    if kind.kind not in "biufc" or set(map(_DTYPE, values)) != {kind} or set(map(_SHAPE, values)) != {shape}:
        return None
    try:
        return np.frombuffer(bytearray().join(values), kind)  # type: ignore[arg-type, unused-ignore]
    except TypeError as error:  # the elements do not lie in order
        if is_of_user_code(error):
            raise
        return None


def _shapes(values: Sequence[Any], place: Place | None) -> str:
    """The shapes of values, each with the first place that has it."""
    first: dict[Any, int] = {}
    for number, value in enumerate(values):
        first.setdefault(_shape(value), number)
    places = {shape: place(number) if place is not None else None for shape, number in first.items()}
    return ", ".join(
        f"{shape} in {places[shape]}" if places[shape] else f"{shape}"
        for shape in sorted(first, key=lambda s: (isinstance(s, str), s))
    )


def _shape(value: Any) -> Any:
    try:
        return np.shape(value)
    except ValueError as error:
        if is_of_user_code(error):
            raise
        return f"{type(value).__name__} of parts of several shapes"


def columns(samples: Sequence[Any], variables: Sequence[str], place: Place | None = None) -> list[np.ndarray]:
    """An array for each variable, of samples that have a value for each; `place` as of `stack`."""
    return [stack(values, v, place) for values, v in zip(by_variable(samples, variables), variables, strict=False)]


def by_variable(samples: Sequence[Any], variables: Sequence[str]) -> list[Any]:
    """The values of each variable; samples may have more."""
    if set(map(type, samples)) <= _SEQUENCES:
        try:
            found = list(zip(*samples, strict=True))
        except ValueError as error:
            if is_of_user_code(error):
                raise
            found = []  # of several lengths
        if len(found) >= len(variables):
            return found[: len(variables)]
    for sample in samples:
        _check_sample(sample, variables)
    return [[sample[i] for sample in samples] for i in range(len(variables))]


def _check_sample(sample: Any, variables: Sequence[str]) -> None:
    expected = f"a tuple of {len(variables)} values ({', '.join(variables)}) for each sample"
    if not hasattr(sample, "__getitem__") or not hasattr(sample, "__len__") or isinstance(sample, Mapping):
        raise ArgumentTypeError(message("data source", None, expected, describe(sample)))
    if len(sample) < len(variables):
        raise ArgumentError(message("data source", None, expected, f"{len(sample)} values"))


def joined(parts: Sequence[Sequence[np.ndarray]], variables: Sequence[str]) -> list[np.ndarray]:
    """Parts of a batch, each with an array for each variable, one after the other."""
    if len(parts) == 1:
        return list(parts[0])
    found = []
    for variable, arrays in zip(variables, zip(*parts, strict=True), strict=False):
        shapes = sorted({a.shape[1:] for a in arrays})
        if len(shapes) > 1:
            expected = f"values of one shape for {variable!r} in all samples of a batch"
            raise ShapeError(message("data source", None, expected, ", ".join(map(str, shapes))))
        found.append(np.concatenate(arrays))
    return found


class BatchMaker:
    """Makes one batch after the other of a data source.

    Args:
        source: Data source, at its beginning.
        batch_size: Samples of a batch.
        stop_exhausted: Whether batches end where a whole one is no longer there; else a new epoch begins.
    """

    def __init__(self, source: Any, batch_size: int, stop_exhausted: bool) -> None:
        self.source = source
        self.size: int = source.size
        self._batch_size = batch_size
        self._stop = stop_exhausted
        self._as_arrays = _gives_arrays(source)
        self._place: Place = getattr(source, "_origin_of", None) or (lambda position: None)
        self.drop()

    def drop(self) -> None:
        """Forget what is done of the next batch."""
        self._parts: list[list[np.ndarray]] = []
        self._samples: list[Any] = []
        self._places: list[str | None] = []
        self._have = 0
        self._resets = 0

    def make(self) -> Batch:
        """The next batch."""
        source = self.source
        if self._stop and not self._have and source.position + self._batch_size > self.size:
            return Batch(None, 0, source.position)
        try:
            while self._have < self._batch_size or self._at_end():
                self._go_on()
        except StopIteration as error:  # it would end the caller's loop without a word
            raise StateError(message("next", None, "the data source raised StopIteration")) from error
        return self._finish()

    def _at_end(self) -> bool:
        return not self._stop and self.source.position >= self.size

    def _go_on(self) -> None:
        """Begin a new epoch, or read until this one ends."""
        source = self.source
        if self._at_end():
            source.reset()
            if self._at_end():
                expected = f"a source of {self.size} samples whose reset() goes back to the first"
                raise StateError(message("next", None, expected, f"position {source.position} after it"))
            self._resets += 1
        elif self._as_arrays:
            start = source.position
            stop = min(start + self._batch_size - self._have, self.size)
            self._parts.append(source._batch(start, stop))
            source._position = stop
            self._have += stop - start
        else:
            place = self._place(source.position)
            sample = source.next()
            if sample is None:
                raise ArgumentTypeError(message("next", None, "a tuple from the data source", "None"))
            self._samples.append(sample)
            self._places.append(place)
            self._have += 1

    def _finish(self) -> Batch:
        parts, samples, places, resets = self._parts, self._samples, self._places, self._resets
        self.drop()
        if resets:
            self.source.apply_order()
        variables = self.source.variables
        found = joined(parts, variables) if parts else columns(samples, variables, places.__getitem__)
        return Batch(tuple(found), resets, self.source.position)


def _gives_arrays(source: Any) -> bool:
    """Whether the source makes arrays of several samples itself; a user's own one may have but `next`."""
    from ._source import DataSource

    kind = type(source)
    return isinstance(source, DataSource) and kind.next is DataSource.next and kind._batch is not DataSource._batch
