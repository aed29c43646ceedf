"""How the datasets of a file are opened: from the csv, or from a cache of it."""

from __future__ import annotations

import os
import weakref
from typing import Any

import numpy as np

from ..logger import logger


class DatasetOpener:
    """The `data_iterator` of a dataset. As in NNabla, its iterators share a generator, and whether they read the cache
    is decided when the file is loaded: else each one reads the csv, and writes the cache anew."""

    def __init__(self, d: Any, index: int, normalize: bool) -> None:
        self._d, self._index = d, index
        self._options: dict[str, Any] = {"rng": np.random.RandomState(index), "normalize": normalize}
        has_cache = bool(d.cache_dir and os.path.isdir(d.cache_dir) and os.listdir(d.cache_dir))
        is_explicit = bool(d.cache_dir) and d.create_cache_explicitly
        self._reads_cache = is_explicit or has_cache and not d.overwrite_cache
        has_index = has_cache and os.path.exists(os.path.join(d.cache_dir, "cache_index.csv"))
        self._is_due = is_explicit and (d.overwrite_cache or not has_index)
        self._writer: Any = lambda: None

    def __call__(self, from_cache: bool = False) -> Any:
        """A new iterator; with `from_cache` over what another process has just written, if there is a cache."""
        from . import data_iterator  # type: ignore[attr-defined, unused-ignore]

        d = self._d
        if self._is_due and not from_cache:
            self._create_cache()
            self._is_due = False
        if self._reads_cache or from_cache and d.cache_dir:
            return data_iterator.data_iterator_cache(d.cache_dir, d.batch_size, d.shuffle, **self._options)
        is_read = getattr(self._writer(), "_closed", True) is False  # writing would change what that iterator gives
        if not d.cache_dir or is_read:
            return data_iterator.data_iterator_csv_dataset(d.uri, d.batch_size, d.shuffle, **self._options)
        os.makedirs(d.cache_dir, exist_ok=True)
        own = {**self._options, "cache_dir": d.cache_dir}
        made = data_iterator.data_iterator_csv_dataset(d.uri, d.batch_size, d.shuffle, **own)
        self._writer = weakref.ref(made)
        return made

    def _create_cache(self) -> None:
        from .create_cache import CreateCache

        d = self._d
        logger.log(99, 'Creating cache data for "%s"', d.uri)
        made = CreateCache(d.uri, rng=np.random.RandomState(self._index), shuffle=d.shuffle)
        made.create(d.cache_dir, normalize=False)
