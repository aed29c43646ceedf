"""`nnrs conv_dataset` and `create_cache`: a data set as a folder of cache files, which is read faster.

>>> import pathlib, tempfile
>>> from nnrs.utils.cli.cli import main
>>> with tempfile.TemporaryDirectory() as folder:
...     _ = pathlib.Path(folder, "a.csv").write_text("x,y\\n1,2\\n3,4\\n")
...     main(["conv_dataset", f"{folder}/a.csv", f"{folder}/a.cache"])
Number of Data: 2
Shuffle:        False
Normalize:      False
0
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from ..._errors import ArgumentError, FileError, MissingFileError, message
from ..._interrupts import uninterrupted
from ._arguments import add_parser, positive
from ._progress import states_as_bar

_HERE = "conv_dataset"


def conv_dataset_command(args: Any) -> None:
    """Write a cache; with `--force` in the place of an older one, which stays until the new one is whole."""
    kind = os.path.splitext(args.source)[1].lower()
    if kind not in (".csv", ".cache"):
        raise ArgumentError(message(args.command, "source", "a .csv file or .cache folder", repr(args.source)))
    _check_place(args.command, args.destination, args.source, args.force)
    if "://" not in args.source and not os.path.exists(args.source):
        raise MissingFileError(message(args.command, "source", f"there is no {args.source!r}"))
    with states_as_bar(None):
        size = _in_place_of(args.destination, lambda folder: _convert(args, kind, folder))
    print(f"Number of Data: {size}")
    print(f"Shuffle:        {args.shuffle}")
    print(f"Normalize:      {args.normalize}")


def _check_place(command: str, path: str, source: str, force: bool) -> None:
    target = os.path.abspath(path)
    if not path or not os.path.basename(target):
        raise ArgumentError(message(command, "destination", "the name of a folder", repr(path)))
    for inside, what in ((os.getcwd(), "this folder"), (os.path.dirname(os.path.abspath(source)), "the source")):
        if os.path.commonpath([target, inside]) == target:
            raise FileError(message(command, "destination", f"{what} lies in {path!r}: it would be deleted"))
    if not os.path.lexists(target):
        return
    if not os.path.isdir(target) or os.path.islink(target):
        raise FileError(message(command, "destination", f"{path!r} is there and no folder: delete it first"))
    if not force:
        raise FileError(message(command, "destination", f"{path!r} is there", hint="-F writes it anew"))
    names = os.listdir(target)
    has_index = any(name.startswith("cache_index") for name in names)
    others = [name for name in names if not (has_index and _is_of_a_cache(name))]
    if others:
        text = f"{path!r} has other files than a cache, such as {others[0]!r}: they would be deleted"
        raise FileError(message(command, "destination", text))


def _is_of_a_cache(name: str) -> bool:
    return name.endswith((".csv", ".npy", ".h5"))


def _in_place_of(path: str, write: Callable[[str], int]) -> int:
    """Let `write` fill a folder beside `path` and give it that name; what fails or is stopped leaves all as it was."""
    target = os.path.abspath(path)
    parent = os.path.dirname(target)
    try:
        stage = tempfile.mkdtemp(prefix=".nnrs-", dir=parent)
    except OSError as error:
        raise FileError(message(_HERE, "destination", f"cannot write into {parent!r}: {error.strerror}")) from error
    new, old = os.path.join(stage, "new"), os.path.join(stage, "old")
    try:
        size = write(new)
        with uninterrupted():
            _exchange(new, target, old)
        return size
    except FileError as error:
        if stage not in str(error):
            raise
        raise FileError(str(error).replace(new, path)) from error  # the user knows of no other folder
    finally:
        with uninterrupted():
            shutil.rmtree(stage, ignore_errors=True)


def _exchange(new: str, target: str, old: str) -> None:
    """Give a folder the name `target`; what had it gets the name `old`."""
    if os.path.isdir(target):
        os.rename(target, old)
    try:
        os.rename(new, target)
    except BaseException:
        if os.path.isdir(old):
            os.rename(old, target)
        raise


def _convert(args: Any, kind: str, folder: str) -> int:
    from ..create_cache import CreateCache
    from ..data_source import DataSourceWithFileCache
    from ..data_source_implements import CacheDataSource

    if kind == ".csv":
        cache = CreateCache(args.source, shuffle=args.shuffle, num_of_threads=args.num_of_threads)
        cache.create(folder, normalize=args.normalize)
        return int(cache.size)
    source = CacheDataSource(args.source, shuffle=args.shuffle, normalize=args.normalize)
    with source, DataSourceWithFileCache(source, cache_dir=folder) as made:
        return int(made.size)


def _add(subparsers: Any, name: str, help: str, source: str) -> Any:
    example = f"example:\n  nnrs {name} -S train.csv train.cache"
    parser = add_parser(subparsers, name, help, examples=example)
    parser.add_argument("-F", "--force", action="store_true", help="write an existing cache anew")
    parser.add_argument("-S", "--shuffle", action="store_true", help="write the samples in a random order")
    parser.add_argument("-N", "--normalize", action="store_true", help="let images go from 0 to 1, not to 255")
    threads = "files that are made at once (default: what nnabla.conf says, else 10)"
    parser.add_argument("-t", "--num_of_threads", type=positive, metavar="N", help=threads)
    parser.add_argument("source", metavar="SOURCE", help=source)
    parser.add_argument("destination", metavar="DESTINATION", help="folder to write")
    parser.set_defaults(func=conv_dataset_command)
    return parser


def add_conv_dataset_command(subparsers: Any) -> None:
    """Add the command `conv_dataset`."""
    _add(subparsers, "conv_dataset", "turn a csv data set, or a cache, into a cache", ".csv file or .cache folder")


def add_create_cache_command(subparsers: Any) -> None:
    """Add the command `create_cache`."""
    _add(subparsers, "create_cache", "turn a csv data set into a cache (as conv_dataset)", ".csv file")
