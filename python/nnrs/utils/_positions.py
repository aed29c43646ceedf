"""Where data iterators are: all that decides about their next batches, to be kept and brought back.

An iterator's thread makes the next batch ahead, and may draw random numbers for it. So that batch itself is kept.
Sources and random generators may be shared, by the slices of one source for example: each is kept once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .. import _random_state
from .._errors import ArgumentError, ArgumentTypeError, Error, FormatError, GraphError, describe, message
from ._batches import Batch
from ._source_states import SAME, SourceSet, like, take_state
from .data_iterator import DataIterator

Positions = dict[str, Any]
_Named = Mapping[str, Any]  # iterators by their names in the checkpoint


def check_iterators(function: str, iterators: _Named) -> None:
    """Raise an error unless the positions of all iterators can be kept."""
    for name, iterator in iterators.items():
        if not isinstance(iterator, DataIterator) and not _tells(iterator):
            expected = "a DataIterator, or an object with get_state() and set_state(state)"
            raise ArgumentTypeError(message(function, f"iterators[{name!r}]", expected, describe(iterator)))
        if getattr(iterator, "_closed", False):
            raise ArgumentError(message(function, f"iterators[{name!r}]", "an open iterator", "a closed one"))


def _tells(iterator: Any) -> bool:
    return callable(getattr(iterator, "get_state", None)) and callable(getattr(iterator, "set_state", None))


def _ours(iterators: _Named) -> dict[str, DataIterator]:
    return {name: found for name, found in iterators.items() if isinstance(found, DataIterator)}


@contextlib.contextmanager
def _held_still(iterators: _Named) -> Iterator[None]:
    """Wait until no thread makes a batch; others that read these iterators wait meanwhile."""
    with contextlib.ExitStack() as turns:
        for iterator in sorted(_ours(iterators).values(), key=id):  # one order for all who do this
            turns.enter_context(iterator._alone())
            if iterator._prefetcher is not None:
                iterator._prefetcher.settle()
        yield


def positions_of(iterators: _Named) -> Positions:
    """Where iterators are. Their threads are idle until the next batch is asked for."""
    check_iterators("save", iterators)
    with _held_still(iterators):
        return _positions(iterators)


def _positions(iterators: _Named) -> Positions:
    ours = _ours(iterators)
    sources = SourceSet([iterator._data_source for iterator in ours.values()])
    return {
        "shape": _shape(iterators, sources),
        "iterators": {name: _iterator_state(iterator) for name, iterator in ours.items()},
        "told": {name: iterator.get_state() for name, iterator in iterators.items() if name not in ours},
        "sources": sources.states(),
        "generators": [_random_state.state_of(generator) for generator in sources.generators],
    }


def _shape(iterators: _Named, sources: SourceSet) -> dict[str, Any]:
    """What has to be the same where the positions are brought back."""
    ours = {
        name: {"source": sources.place(i._data_source), "batch_size": i._batch_size, "stop": i._stop_exhausted}
        for name, i in _ours(iterators).items()
    }
    kinds = [type(source).__name__ for source in sources.sources]
    return {"names": sorted(iterators), "data sources": kinds, "iterators": ours, "sources": sources.shapes()}


def _iterator_state(iterator: DataIterator) -> dict[str, Any]:
    maker = iterator._maker
    return {
        "epoch": iterator._current_epoch,
        "position": iterator._position,
        "held": _batch_out(iterator._held),
        "ahead": _batch_out(_ahead(iterator)),
        "begun": (maker._parts, maker._samples, maker._have, maker._resets),
    }


def _ahead(iterator: DataIterator) -> Batch | None:
    """The batch that the thread has made; an error in its place is no part of the position: it is tried again."""
    made = iterator._prefetcher._made if iterator._prefetcher is not None else ()
    return made[0][0] if made else None


def _batch_out(batch: Batch | None) -> tuple[Any, ...] | None:
    return None if batch is None else tuple(batch)


def _batch_in(batch: tuple[Any, ...] | None) -> Batch | None:
    if batch is None:
        return None
    data, resets, position = batch
    if data is not None and not (isinstance(data, tuple) and all(isinstance(array, np.ndarray) for array in data)):
        raise FormatError(message("load", "path", "a batch as a tuple of arrays", describe(data)))
    return Batch(data, like(0, resets), like(0, position))


def check_positions(iterators: _Named, state: Positions) -> None:
    """Raise a FormatError unless these iterators are as those of `positions_of` were."""
    check_iterators("load", iterators)
    sources = SourceSet([iterator._data_source for iterator in _ours(iterators).values()])
    now, then = _shape(iterators, sources), state["shape"]
    for part, here in now.items():
        if then[part] != here:
            expected, got = _difference(here, then[part])
            raise FormatError(message("load", "iterators", f"a checkpoint of {part} {expected}", got, SAME))
    for i, generator in enumerate(sources.generators):
        _random_state.check_state("load", generator, state["generators"][i], "iterators")


def _difference(here: Any, then: Any) -> tuple[str, str]:
    """The first thing in which two shapes differ."""
    if isinstance(here, dict) and isinstance(then, dict) and here.keys() == then.keys():
        key = next(key for key in here if here[key] != then[key])
        expected, got = _difference(here[key], then[key])
        return f"{key} {expected}", got
    if isinstance(here, list) and isinstance(then, list) and len(here) == len(then):
        return next(_difference(a, b) for a, b in zip(here, then, strict=True) if a != b)
    return str(here), str(then)


def go_to(iterators: _Named, state: Positions) -> None:
    """Bring iterators back to where they were; if that fails they stay where they are."""
    check_positions(iterators, state)
    with _held_still(iterators):
        _go_or_stay(iterators, state)


def _go_or_stay(iterators: _Named, state: Positions) -> None:
    before = _positions(iterators)
    try:
        _go_to(iterators, state)
    except BaseException as error:
        try:
            _go_to(iterators, before)
        except Exception as second:
            raise GraphError(message("load", "iterators", f"their positions are lost: {second}")) from error
        if isinstance(error, Exception) and not isinstance(error, (Error, OSError, MemoryError)):
            text = f"a checkpoint of this version of nnrs: {type(error).__name__} {error}"
            raise FormatError(message("load", "path", text, hint=SAME)) from error
        raise


def _go_to(iterators: _Named, state: Positions) -> None:
    ours = _ours(iterators)
    for iterator in ours.values():
        if iterator._prefetcher is not None:
            iterator._prefetcher.drop()
    sources = SourceSet([iterator._data_source for iterator in ours.values()])
    # Caches come before what they read: they may want to be filled first.
    for source, where in reversed(list(zip(sources.sources, state["sources"], strict=True))):
        take_state(source, where)
    for name, told in state["told"].items():
        iterators[name].set_state(told)
    for name, iterator in ours.items():
        _take_iterator(iterator, state["iterators"][name])
    for generator, where in zip(sources.generators, state["generators"], strict=True):
        _random_state.set_state(generator, where)


def _take_iterator(iterator: DataIterator, state: dict[str, Any]) -> None:
    maker, held, ahead = iterator._maker, _batch_in(state["held"]), _batch_in(state["ahead"])
    parts, samples, have, resets = state["begun"]
    maker._parts, maker._samples = list(parts), list(samples)
    maker._have, maker._resets = like(0, have), like(0, resets)
    iterator._current_epoch, iterator._position = like(0, state["epoch"]), like(0, state["position"])
    if ahead is not None and iterator._prefetcher is not None:
        iterator._prefetcher.give(ahead)
    elif ahead is not None and ahead.data is not None:
        if held is not None:
            raise FormatError(message("load", "iterators", "an iterator with a thread", "one without", SAME))
        held = ahead
    iterator._held = held
