"""A csv data set turned into a folder of cache files, which `data_iterator_cache` reads.

>>> import os, pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as d:
...     _ = pathlib.Path(d, "a.csv").write_text("x,y\\n1,2\\n3,4\\n")
...     CreateCache(os.path.join(d, "a.csv")).create(os.path.join(d, "cache"))
...     sorted(os.listdir(os.path.join(d, "cache")))
['cache_00000000_00000001.npy', 'cache_index.csv', 'cache_info.csv', 'order.csv', 'original.csv']
"""

from __future__ import annotations

import os
from typing import Any

from .._borrowed import borrower
from .._errors import check_integer
from .._settings import data_number, data_setting
from ._cache_files import write_cache
from .data_source_implements import CsvDataSource


class CreateCache(CsvDataSource):
    """The samples of a csv file (see `CsvDataSource`), to be written as a cache.

    Args:
        input_csv_filename: Path or URL.
        rng: Random generator for the order; by default a `RandomState(313)`.
        shuffle: Whether the samples are written in a random order.
        num_of_threads: How many files are made at once; by default what `nnrs.config.nnabla_config` says.
    """

    def __init__(
        self, input_csv_filename: str, rng: Any = None, shuffle: bool = False, num_of_threads: int | None = None
    ) -> None:
        super().__init__(input_csv_filename, shuffle=shuffle, rng=rng)
        self._cache_size = data_number("CreateCache", "data_source_file_cache_size")
        self._num_of_threads = (
            check_integer("CreateCache", "num_of_threads", num_of_threads, 1)
            if num_of_threads
            else data_number("CreateCache", "data_source_file_cache_num_of_threads")
        )

    def create(self, output_cache_dirname: str, normalize: bool = True, cache_file_name_prefix: str = "cache") -> None:
        """Write the cache; what fails leaves the folder as it was.

        Args:
            output_cache_dirname: Folder, made if it is not there.
            normalize: Whether images go from 0 to 1.
            cache_file_name_prefix: Beginning of the files' names.

        The files' format and how many samples each has are in `nnrs.config.nnabla_config`.
        """
        self._normalize = normalize
        write_cache(
            "CreateCache",
            os.fspath(output_cache_dirname),
            cache_file_name_prefix,
            data_setting("cache_file_format"),
            self._size,
            self._cache_size,
            self._num_of_threads,
            self._get_data,
            self._variables,
            self._original_source_uri,
            list(zip(self._original_order, self._order, strict=True)),
            self._origin_of,
        )


__getattr__ = borrower(__name__)
