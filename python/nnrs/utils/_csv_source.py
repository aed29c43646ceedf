"""A data source over a csv file of numbers and names of files."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from typing import Any

from .._errors import FileError, FormatError, MissingFileError, message
from ._file_reader import FileReader
from ._source import DataSource
from .data_source_loader import load


class CsvDataSource(DataSource):
    """Samples of a csv file, a line for each. Its header names the columns as `NAME[__INDEX][:LABEL]`.

    Columns `x__0`, `x__1`, .. are one variable, a list. A cell is a number or names a file (relative to the csv file)
    of a kind that `nnrs.utils.data_source_loader.load` knows. Columns whose name begins with '#' are left out, and so
    are empty lines.

    Args:
        filename: Path or URL.
        shuffle: Whether each epoch has an order of its own.
        rng: Random generator for the orders; by default a `RandomState(313)`.
        normalize: Whether images go from 0 to 1.

    Raises:
        ValueError: If a line has more or fewer columns than the header; the text says which.
    """

    def __init__(self, filename: str, shuffle: bool = False, rng: Any = None, normalize: bool = False) -> None:
        super().__init__(shuffle=shuffle, rng=rng)
        self._filename = os.fspath(filename)
        self._normalize = normalize
        self._filereader = FileReader(self._filename)
        header = self._read_rows()
        self._columns = self._process_header(header)
        names = dict.fromkeys(variable for variable, _, _ in self._columns)
        self._variables = tuple(names)
        self._plan = [[i for i, c in enumerate(self._columns) if c[0] == name] for name in names]
        self._size = len(self._rows)
        self._original_source_uri = self._filename
        self._original_order = list(range(self._size))
        self._order = list(range(self._size))
        self.reset()

    def _read_rows(self) -> list[str]:
        """Keep the lines, and give the header."""
        try:
            with self._filereader.open(textmode=True, encoding="utf-8-sig") as f:
                reader = csv.reader(f)
                header = next(reader, [])
                found = [(row, reader.line_num) for row in reader if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise self._wrong(f"it is no csv file in UTF-8: {error}") from error
        for row, line in found:
            if len(row) != len(header):
                raise self._wrong(f"line {line} has {len(row)} columns, its header {len(header)}")
        if not found or not header:
            raise self._wrong("it has no line below its header" if header else "it is empty")
        kept = [i for i, name in enumerate(header) if not name.startswith("#")]
        self._rows = [[row[i] for i in kept] for row, _ in found]
        self._lines = [line for _, line in found]
        return [header[i] for i in kept]

    def _wrong(self, why: str) -> FormatError:
        return FormatError(message("CsvDataSource", "filename", f"cannot use {self._filename!r}: {why}"))

    def _process_header(self, header: list[str]) -> list[tuple[str, str | None, str | None]]:
        """Variable, index and label of each column."""
        found = []
        for cell in header:
            name, _, label = cell.partition(":")
            variable, _, index = name.partition("__")
            found.append((variable, index if "__" in name else None, label if ":" in cell else None))
        single = [variable for variable, index, _ in found if index is None]
        for variable in single:
            if sum(other == variable for other, _, _ in found) > 1:
                raise self._wrong(f"its header has several columns {variable!r}; name them '{variable}__0', ..")
        if not found or any(not variable for variable, _, _ in found):
            raise self._wrong("its header has a column without a name" if found else "its header names no variable")
        return found

    def _process_row(self, row: Sequence[str]) -> list[Any]:
        """The values of a line: a list of numbers, or what a file holds, for each variable."""
        found: list[Any] = []
        for cells in self._plan:
            if self._columns[cells[0]][1] is None:
                value = self._get_value(row[cells[0]])
                found.append([value] if isinstance(value, float) else value)
            else:
                found.append([self._get_value(row[i]) for i in cells])
        return found

    def _get_value(self, value: str) -> Any:
        try:
            return float(value)
        except ValueError:
            pass
        with self._filereader.open(value) as f:
            return load(os.path.splitext(value)[1].lower())(f, normalize=self._normalize)

    def _get_data(self, position: int) -> Any:
        number = self._order[position]
        return tuple(self._row(number))

    def _row(self, number: int) -> list[Any]:
        """The values of a line; an error names it."""
        try:
            return self._process_row(self._rows[number])
        except Exception as error:
            if isinstance(error, (ImportError, MemoryError)):
                raise
            missing = isinstance(error, FileNotFoundError)
            kind = MissingFileError if missing else FileError if isinstance(error, OSError) else FormatError
            text = f"cannot read line {self._lines[number]} of {self._filename!r}: {error}"
            raise kind(message("CsvDataSource", None, text)) from error

    def _sample_orders(self, generation: int | None) -> list[Any]:
        return [self._order]

    def reset(self) -> None:
        if self._shuffle:
            self._order = self._rng.permutation(self._size).tolist()
        self._generation += 1
        super().reset()
