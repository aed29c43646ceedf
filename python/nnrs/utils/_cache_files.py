"""Folders of cached samples, `.npy` or `.h5` files as NNabla writes and reads them.

A file `cache_00000000_00000099.npy` has the arrays of all variables for some samples, one after the other;
`cache_index.csv` has the files and how many samples each has, `cache_info.csv` (with `.npy`) the variables in order.
A folder is written beside its place: what fails leaves the older cache whole.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import _core
from .._errors import (
    ArgumentError,
    ArgumentTypeError,
    Error,
    FileError,
    FormatError,
    failures_as,
    is_of_user_code,
    message,
    reason,
)
from .._files import h5py_module
from .._interrupts import uninterrupted
from ._batches import Place, by_variable, joined, stack
from ._file_reader import FileReader
from ._hdf5_reading import check_node, h5_array
from ._npy import read_array
from ._workers import Check, in_order
from .progress import progress

INDEX, INFO, ORIGINAL, ORDER = "cache_index.csv", "cache_info.csv", "original.csv", "order.csv"
Arrays = dict[str, np.ndarray]


class SampleOrder:
    """In which order samples of several files are read.

    Args:
        chunks: Files by number, each with the samples to read of it.
    """

    def __init__(self, chunks: list[tuple[int, np.ndarray]]) -> None:
        self.chunks = chunks
        self._ends = np.cumsum([len(rows) for _, rows in chunks], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.chunks else 0

    def parts(self, start: int, stop: int) -> Iterator[tuple[int, np.ndarray]]:
        """The places in `chunks` of the samples at these positions, and their rows."""
        if stop > len(self):
            raise IndexError(f"sample {stop - 1} of an epoch of {len(self)}: reset() begins the next one")
        place = int(np.searchsorted(self._ends, start, side="right"))
        while start < stop:
            rows = self.chunks[place][1]
            first = start - (int(self._ends[place]) - len(rows))
            part = rows[first : first + stop - start]
            yield place, part
            start += len(part)
            place += 1


# --- reading ----------------------------------------------------------------------------------------------------------


def read_npy(function: str, path: str, variables: Sequence[str]) -> Arrays:
    """The arrays of a `.npy` cache file."""
    with FileReader(path).open() as f:
        return {v: read_array(function, f) for v in variables}


def read_h5(function: str, h5: Any) -> Arrays:
    """The arrays of an open `.h5` cache file, which is not believed to hold what it claims."""
    size = os.path.getsize(h5.filename)
    with _h5_errors(function, h5):
        check_node(h5py_module(function), "", h5)
        return {name: h5_array(name, dataset, size) for name, dataset in h5.items()}


def h5_lengths(function: str, h5: Any) -> dict[str, int]:
    """How many samples an open `.h5` cache file has of each variable; -1 for what is no array of them."""
    with _h5_errors(function, h5):
        return {name: len(dataset) if getattr(dataset, "shape", ()) else -1 for name, dataset in h5.items()}


def _h5_errors(function: str, h5: Any) -> contextlib.AbstractContextManager[None]:
    """For h5py, which raises nearly every kind, by what the bytes happen to be."""
    text = message(function, None, f"cannot read the cache file {h5.filename!r}: ")
    return failures_as(lambda error: FormatError(f"{text}{error}"))


def check_rows(function: str, path: str, found: Arrays, variables: Iterable[str], rows: int) -> Arrays:
    """Give the arrays, if each variable has that many rows."""
    for v in variables:
        if v not in found:
            raise FormatError(message(function, None, f"{path!r} has no variable {v!r}"))
        if found[v].shape[:1] < (rows,):
            text = f"{rows} samples of {v!r} in {path!r}, as the index says"
            raise FormatError(message(function, None, text, f"an array of shape {found[v].shape}"))
    return found


_FEW_SAMPLES = 1 << 16
_MOST_OF_A_BYTE = {".npy": 1, ".h5": 1032}  # samples; what deflate can do


def check_count(function: str, path: str, count: int) -> None:
    """Refuse more samples than a file of its size can hold, before memory is taken for their order."""
    if count > _FEW_SAMPLES and "://" not in path and os.path.isfile(path):
        most = os.path.getsize(path) * _MOST_OF_A_BYTE.get(os.path.splitext(path)[1], 1)
        if count > most:
            raise FormatError(message(function, None, f"{path!r} to hold {most} samples at most, by its size", count))


def gathered(parts: list[tuple[Arrays, np.ndarray]], variables: Sequence[str]) -> list[np.ndarray]:
    """An array for each variable of these rows of several files, which have them."""
    found = []
    for v in variables:
        arrays = [arrays[v] for arrays, _ in parts]
        if len({(a.dtype, a.shape[1:]) for a in arrays}) > 1:
            (joint,) = joined([[a[rows]] for a, (_, rows) in zip(arrays, parts, strict=True)], [v])
        else:
            joint = np.empty((sum(len(rows) for _, rows in parts), *arrays[0].shape[1:]), arrays[0].dtype)
            at = 0
            for a, (_, rows) in zip(arrays, parts, strict=True):  # "clip" writes in place, "raise" does not
                a.take(rows, axis=0, out=joint[at : at + len(rows)], mode="clip")
                at += len(rows)
        found.append(joint)
    return found


def read_index(function: str, reader: FileReader, name: str) -> list[tuple[str, int]]:
    """Names of cache files and how many samples each has."""
    with reader.open(name, textmode=True) as f:
        try:
            return [(row[0], _count(row[1])) for row in csv.reader(f) if row]
        except (ValueError, IndexError, csv.Error) as error:
            if is_of_user_code(error):
                raise
            expected = f"lines of a file's name and its number of samples in {name!r}"
            raise FormatError(message(function, None, expected, str(error))) from error


def _count(text: str) -> int:
    count = int(text)
    if not 0 <= count < 1 << 40:
        raise ValueError(f"{count} samples")
    return count


# --- writing ----------------------------------------------------------------------------------------------------------


def write_cache(
    function: str,
    folder: str,
    prefix: str,
    kind: str,
    size: int,
    chunk: int,
    threads: int,
    sample: Callable[[int], Any],
    variables: Sequence[str],
    original: str | None,
    order: Iterable[Sequence[Any]] | None,
    place: Place | None = None,
) -> list[tuple[str, int]]:
    """Write a cache folder and return paths and lengths of its files.

    Args:
        function: Name of the caller, for errors.
        folder: Where; made if it is not there.
        prefix: Beginning of the files' names.
        kind: '.npy' or '.h5'.
        size: Number of samples.
        chunk: Samples of a file.
        threads: Files that are made at once.
        sample: Gives the values of the sample of a number; several threads call it.
        variables: Names, in order.
        original: Path or URL of the csv file that the samples are of, to be copied.
        order: Rows for order.csv.
        place: Where the sample of a number is from, for errors.
    """
    if kind not in (".npy", ".h5"):
        raise ArgumentError(message(function, "cache_file_format", "'.npy' or '.h5' in nnabla_config", repr(kind)))
    stage = os.fspath(_core.temporary_beside(os.path.join(folder, prefix))[1])
    try:
        with _unwritable(function, f"into the folder {folder!r}", folder):
            os.makedirs(folder, exist_ok=True)
            os.mkdir(stage)
        with _unwritable(function, f"the cache in {folder!r}", folder):
            files = _write_chunks(function, stage, prefix, kind, size, chunk, threads, sample, variables, place)
            _write_tables(stage, files, variables if kind == ".npy" else None, order)
            if original is not None:
                with FileReader(original).open() as source, open(os.path.join(stage, ORIGINAL), "wb") as f:
                    shutil.copyfileobj(source, f)
            with uninterrupted():
                _move_all(stage, folder)
    finally:
        with uninterrupted():
            shutil.rmtree(stage, ignore_errors=True)
    return [(os.path.join(folder, name), length) for name, length in files]


def _unwritable(function: str, what: str, folder: str) -> contextlib.AbstractContextManager[None]:
    text = message(function, None, f"cannot write {what}: ")
    return failures_as(lambda error: FileError(text + reason(error, folder)), OSError, but=Error)


def _write_chunks(
    function: str,
    stage: str,
    prefix: str,
    kind: str,
    size: int,
    chunk: int,
    threads: int,
    sample: Callable[[int], Any],
    variables: Sequence[str],
    place: Place | None,
) -> list[tuple[str, int]]:
    write = _write_npy if kind == ".npy" else _h5_writer(function)

    def one(start: int, check: Check) -> tuple[str, int]:
        stop = min(start + chunk, size)
        name = f"{prefix}_{start:08d}_{stop - 1:08d}{kind}"
        write(os.path.join(stage, name), _read(sample, range(start, stop), variables, check, place))
        return name, stop - start

    starts = range(0, size, chunk)
    files = []
    progress("Create cache", 0.0)
    try:
        with in_order(one, starts, threads) as made:
            for file in made:
                files.append(file)
                if len(files) % (len(starts) // 20 + 1) == 0 or len(files) == len(starts):
                    progress("Create cache", len(files) / len(starts))
    finally:
        progress(None)
    return files


def _read(
    sample: Callable[[int], Any], numbers: range, variables: Sequence[str], check: Check, place: Place | None
) -> Arrays:
    """The arrays that a file has of these samples: arrays as they are, anything else as float32."""
    samples = []
    for number in numbers:
        check()
        samples.append(sample(number))
    found = {}
    for name, values in zip(variables, by_variable(samples, variables), strict=False):
        arrays = [v if isinstance(v, np.ndarray) else np.array(v, np.float32) for v in values]
        found[name] = stack(arrays, name, None if place is None else lambda i: place(numbers[i]))
    return found


_MORE_THAN_FITS = 1 << 20


def _write_npy(path: str, arrays: Arrays) -> None:
    with open(path, "wb") as f:
        for name, array in arrays.items():
            if array.dtype.hasobject:
                raise ArgumentTypeError(message("cache", None, f"numbers or texts for {name!r}", "Python objects"))
            try:
                np.lib.format.write_array(f, array, allow_pickle=False)
            except OSError as error:
                if error.errno is not None:
                    raise
                f.seek(0, os.SEEK_END)  # NumPy's own, that fewer bytes were written: the next write says why
                f.write(bytes(_MORE_THAN_FITS))
                f.flush()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error


def _h5_writer(function: str) -> Callable[[str, Arrays], None]:
    h5py = h5py_module(function)

    def write(path: str, arrays: Arrays) -> None:
        try:
            with h5py.File(path, "w") as h5:
                for name, array in arrays.items():
                    h5.create_dataset(name, data=array)
        except (RuntimeError, TypeError) as error:  # h5py's, where the disk is full, and for texts
            there = os.path.join(os.path.dirname(os.path.dirname(path)), os.path.basename(path))  # `path` is hidden
            raise FileError(message(function, None, f"cannot write {there!r}: {reason(error, path)}")) from error

    return write


def _write_tables(
    stage: str, files: list[tuple[str, int]], variables: Sequence[str] | None, order: Iterable[Sequence[Any]] | None
) -> None:
    _write_rows(os.path.join(stage, INDEX), files)
    if variables is not None:
        _write_rows(os.path.join(stage, INFO), [(v,) for v in variables])
    if order is not None:
        _write_rows(os.path.join(stage, ORDER), order)


def _write_rows(path: str, rows: Iterable[Sequence[Any]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows(rows)


def _move_all(stage: str, folder: str) -> None:
    """Give all files their places, the index last: with it the folder is a cache."""
    for name in {INFO, ORIGINAL, ORDER}.difference(os.listdir(stage)):  # they would speak of an older cache
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    for name in sorted(os.listdir(stage), key=lambda name: (name == INDEX, name)):
        os.replace(os.path.join(stage, name), os.path.join(folder, name))
