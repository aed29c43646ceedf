"""`nnrs create_tar`: a csv data set and its files as one archive. `upload`, which sends that away, is not here.

>>> import pathlib, tempfile
>>> from nnrs.utils.cli.cli import main
>>> with tempfile.TemporaryDirectory() as folder:
...     for name, text in (("a.csv", "x,y\\nb.csv,1\\n"), ("b.csv", "2\\n")):
...         _ = pathlib.Path(folder, name).write_text(text)
...     main(["create_tar", f"{folder}/a.csv", f"{folder}/a.tar"])
...     with tarfile.open(f"{folder}/a.tar") as tar:
...         tar.getnames()
0
['index.csv', 'data/000000000000_b.csv']
"""

from __future__ import annotations

import csv
import io
import os
import tarfile
from typing import Any

from ..._errors import FormatError, UnsupportedError, message
from ..._files import atomic_path
from ._arguments import add_parser
from ._progress import tracked


def create_tar_command(args: Any) -> None:
    """Write the archive: index.csv, and data/ with all files that the csv names."""
    rows, files = csv_and_files(args.source)
    with atomic_path(args.destination) as temporary, tarfile.open(temporary, "w") as tar:
        text = io.StringIO()
        csv.writer(text).writerows(rows)
        index = text.getvalue().encode()
        entry = tarfile.TarInfo("index.csv")
        entry.size = len(index)
        tar.addfile(entry, io.BytesIO(index))
        for name, path in tracked(files.items(), "Create TAR"):
            tar.add(path, name)


def csv_and_files(source: str) -> tuple[list[list[str]], dict[str, str]]:
    """The rows of a csv file with archive names in the places of files, and the files by those names.

    Args:
        source: Path of the csv file; names in it are relative to its folder, or to the current one.

    Raises:
        OSError: If it cannot be read.
        ValueError: If a row has more or fewer values than the first one.
    """
    files: dict[str, str] = {}

    def archived(item: str) -> str:
        path = next((p for p in (item, os.path.join(folder, *item.split("\\"))) if item and os.path.isfile(p)), None)
        if path is None:
            return item
        name = f"data/{len(files):012d}_{os.path.basename(path)}"
        files[name] = os.path.abspath(path)
        return name

    folder = os.path.dirname(source)
    from ..data_source_loader import FileReader

    with FileReader(source).open(textmode=True) as f:
        try:
            rows = [row for row in csv.reader(f) if row]
        except (csv.Error, UnicodeDecodeError) as error:
            raise FormatError(message("create_tar", "source", f"{source!r} is no csv file: {error}")) from error
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            text = f"row {i + 1} of {source!r} has {len(row)} values, the first one {len(rows[0])}"
            raise FormatError(message("create_tar", "source", text))
    if len(rows) < 2:
        actual = f"{source!r}, which {'has no line below its header' if rows else 'is empty'}"
        raise FormatError(message("create_tar", "source", "a csv file of samples", actual))
    return [rows[0], *([archived(item) for item in row] for row in rows[1:])], files


def upload_command(args: Any) -> None:
    """Say that this cannot be done."""
    why = "nnrs does not send data to Neural Network Console: that is a service of Sony's, with NNabla's own client"
    raise UnsupportedError(message("upload", None, why, hint="`nnrs create_tar` makes the archive to be sent"))


def add_upload_command(subparsers: Any) -> None:
    """Add the command `upload`."""
    parser = add_parser(subparsers, "upload", "not supported: send a data set to Neural Network Console")
    parser.add_argument("-e", "--endpoint", help="address of the service")
    parser.add_argument("token", help="the service's token")
    parser.add_argument("filename", help="csv or tar file")
    parser.set_defaults(func=upload_command)


def add_create_tar_command(subparsers: Any) -> None:
    """Add the command `create_tar`."""
    parser = add_parser(subparsers, "create_tar", "pack a csv data set and the files it names into a tar file")
    parser.add_argument("source", metavar="CSV", help="the data set")
    parser.add_argument("destination", metavar="TAR", help="archive to write")
    parser.set_defaults(func=create_tar_command)
