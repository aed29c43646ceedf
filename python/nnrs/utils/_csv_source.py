"""A data source over a csv file of numbers and names of files."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._errors import (
    ArgumentError,
    FileError,
    FormatError,
    MissingFileError,
    check_type,
    failures_as,
    is_of_user_code,
    message,
)
from ._batches import columns
from ._file_reader import FileReader
from ._source import DataSource
from .data_source_loader import kinds, load


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
        ValueError: If a line has more or fewer cells than the header, or, when it is read, one that is neither a number
            nor the name of a file that can be read; the text says which file, line and column.
    """

    def __init__(self, filename: str, shuffle: bool = False, rng: Any = None, normalize: bool = False) -> None:
        super().__init__(shuffle=shuffle, rng=rng)
        check_type("CsvDataSource", "filename", filename, (str, os.PathLike), "a path or URL")
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
                raise self._uneven(row, line, header)
        if not found or not header:
            raise self._wrong("it has no line below its header" if header else "it is empty")
        kept = [i for i, name in enumerate(header) if not name.startswith("#")]
        self._rows: list[list[str] | tuple[np.ndarray, ...]] = [[row[i] for i in kept] for row, _ in found]
        self._lines = [line for _, line in found]
        return [header[i] for i in kept]

    def _wrong(self, why: str) -> FormatError:
        return FormatError(message("CsvDataSource", "filename", f"cannot use {self._filename!r}: {why}"))

    def _uneven(self, row: list[str], line: int, header: list[str]) -> FormatError:
        """The error for a line that has more or fewer cells than the header."""
        names = ", ".join(header[:8]) + (", .." if len(header) > 8 else "")
        expected = f"{self._filename}:{line}: expected {len(header)} cells, as its header has ({names}), got {len(row)}"
        return FormatError(message("CsvDataSource", None, expected, hint=_separator_hint(header, row)))

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

    def _process_row(self, row: Sequence[str], line: int | None = None) -> list[Any]:
        """A list of numbers, or what a file holds, for each variable of a line, whose number is for errors."""
        found: list[Any] = []
        for cells in self._plan:
            values = _numbers([row[i] for i in cells]) or [self._cell(row, i, line) for i in cells]
            alone = self._columns[cells[0]][1] is None and not isinstance(values[0], float)
            found.append(values[0] if alone else values)
        return found

    def _cell(self, row: Sequence[str], column: int, line: int | None) -> Any:
        """The value of a cell; an error names its place."""

        def told(error: Exception) -> Exception:
            missing = isinstance(error, FileNotFoundError)
            kind = MissingFileError if missing else FileError if isinstance(error, OSError) else FormatError
            variable, index, _ = self._columns[column]
            name = variable if index is None else f"{variable}__{index}"
            hint = _separator_hint([c[0] for c in self._columns], row) if "hint:" not in str(error) else None
            place = self._filename if line is None else f"{self._filename}:{line}"
            text = f"{place}, column {name!r}: {str(error).removeprefix('FileReader: ')}"
            return kind(message("CsvDataSource", None, text, hint=hint))

        with failures_as(told, but=(ImportError, MemoryError)):
            return self._get_value(row[column])

    def _get_value(self, value: str) -> Any:
        try:
            return float(value)
        except ValueError as error:
            if is_of_user_code(error):
                raise
        read = self._loader(value)
        with self._filereader.open(value) as f:
            return read(f, normalize=self._normalize)

    def _loader(self, value: str) -> Callable[..., Any]:
        """What reads the file that a cell names."""
        try:
            return load(os.path.splitext(value)[1].lower())
        except ArgumentError:
            got = repr(value if len(value) <= 60 else value[:57] + "...") if value.strip() else "an empty cell"
            expected = f"expected a number or the name of a file of kind {', '.join(kinds())}, got {got}"
            raise FormatError(expected) from None

    def _origin_of(self, position: int) -> str | None:
        return f"{self._filename}:{self._lines[self._order[position]]}"

    def _sample(self, number: int) -> tuple[Any, ...]:
        """The values of a line; of one with numbers alone as arrays, which take its texts' place."""
        row = self._rows[number]
        if isinstance(row, tuple):
            return row
        found = tuple(self._process_row(row, self._lines[number]))
        if type(self) is CsvDataSource and all(isinstance(v, list) and set(map(type, v)) == {float} for v in found):
            self._rows[number] = found = tuple(map(np.array, found))
        return found

    def _get_data(self, position: int) -> Any:
        found = self._sample(self._order[position])
        return tuple(v.tolist() for v in found) if self._rows[self._order[position]] is found else found

    def _batch(self, start: int, stop: int, generation: int | None = None) -> list[np.ndarray]:
        numbers = self._order[start:stop]
        samples = [self._rows[number] for number in numbers]
        if set(map(type, samples)) != {tuple}:
            samples = [self._sample(number) for number in numbers]
        return columns(samples, self._variables, lambda number: self._origin_of(start + number))

    def _sample_orders(self, generation: int | None) -> list[Any]:
        return [self._order]

    def reset(self) -> None:
        if self._shuffle:
            self._order = self._rng.permutation(self._size).tolist()
        self._generation += 1
        super().reset()


def _numbers(texts: Sequence[str]) -> list[Any] | None:
    """The numbers; None where one of them is a file's name, or wrong."""
    try:
        return list(map(float, texts))
    except ValueError as error:
        if is_of_user_code(error):
            raise
        return None


def _separator_hint(header: Sequence[str], row: Sequence[str]) -> str | None:
    """What to say where other signs than commas and points seem to be meant."""
    for sign in (";", "\t", "|"):
        if len(header) == 1 and sign in header[0]:
            return f"columns are separated by ',', not by {sign!r}"
    if any(_numbers([cell.replace(",", ".").replace(" ", "")]) and not _numbers([cell]) for cell in row):
        return "numbers are written with a point and without blanks: 1000.5"
    return None
