"""Samples of a data source in memory: an array for each variable, so that a batch is one gather of its rows."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ._batches import columns, stack

_Rows = list[Any]


class MemoryCache:
    """Reads each sample of a source once.

    Args:
        source: Data source, whose samples do not change their places while the cache is not full.
        size: Number of samples.
    """

    def __init__(self, source: Any, size: int) -> None:
        self._source = source
        self._has = np.zeros(size, bool)
        self._missing = size
        self._kept: list[np.ndarray | _Rows] = []
        self._lock = threading.RLock()

    @property
    def is_begun(self) -> bool:
        """Whether some samples are there."""
        return bool(self._kept)

    @property
    def is_partial(self) -> bool:
        """Whether some samples are missing."""
        return self._missing > 0

    def sample(self, index: int) -> list[Any]:
        """The values of a sample."""
        self._load(np.array([index]))
        return [kept[index] for kept in self._kept]

    def batch(self, indices: np.ndarray) -> list[np.ndarray]:
        """An array for each variable of these samples."""
        self._load(indices)
        names = self._source.variables
        return [_gather(kept, indices, name) for kept, name in zip(self._kept, names, strict=False)]

    def fill(self) -> None:
        """Read what is missing, some samples at a time."""
        missing = np.flatnonzero(~self._has)
        for start in range(0, len(missing), 256):
            self._load(missing[start : start + 256])

    def _load(self, indices: np.ndarray) -> None:
        if not self._missing:
            return
        with self._lock:
            absent = np.unique(indices[~self._has[indices]])
            for run in np.split(absent, np.flatnonzero(np.diff(absent) != 1) + 1):
                if len(run):
                    self._keep(int(run[0]), int(run[-1]) + 1)

    def _keep(self, start: int, stop: int) -> None:
        found = read_batch(self._source, start, stop)
        if not self._kept:
            self._kept = [np.empty((len(self._has), *array.shape[1:]), array.dtype) for array in found]
        for i, array in enumerate(found):
            kept = self._kept[i]
            if isinstance(kept, np.ndarray) and (array.shape[1:] != kept.shape[1:] or array.dtype != kept.dtype):
                kept = self._kept[i] = list(kept)  # of several shapes or types: one by one
            kept[start:stop] = array
        self._has[start:stop] = True
        self._missing = int(np.count_nonzero(~self._has))


def read_batch(source: Any, start: int, stop: int) -> list[np.ndarray]:
    """The samples of any data source from one position to another."""
    from ._source import DataSource

    if isinstance(source, DataSource):
        return source._batch(start, stop)
    return columns([source._get_data(p) for p in range(start, stop)], source.variables)


def _gather(kept: np.ndarray | _Rows, indices: np.ndarray, name: str) -> np.ndarray:
    if isinstance(kept, np.ndarray):
        return kept.take(indices, axis=0)
    return stack([kept[i] for i in indices], name)
