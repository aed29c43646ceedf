"""What a data set's files hold, as arrays: images, sounds, tables, `.npy`; from disk, HTTP(S) or S3.

>>> import io
>>> load(".csv")(io.BytesIO(b"1,2\\n3,4\\n")).tolist()
[[1.0, 2.0], [3.0, 4.0]]
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import importlib.util
import io
import os
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, Optional

import numpy as np

from .._borrowed import borrower
from .._errors import (
    ArgumentError,
    FormatError,
    ShapeError,
    describe,
    is_of_user_code,
    message,
)
from . import _wav
from ._file_reader import FileReader
from ._npy import read_array
from .download import download, get_data_home
from .progress import callback_module

__all__ = [
    "FileReader",
    "ResourceFileReader",
    "download",
    "get_data_home",
    "get_file_extension",
    "load",
    "load_audio",
    "load_audio_pydub",
    "load_csv",
    "load_image",
    "load_image_imread",
    "load_npy",
    "load_wav",
]

__getattr__ = borrower(__name__)

_Shape = Optional[Sequence[int]]  # noqa: UP045 (evaluated at run time)


_SIGNATURES = (
    (".bmp", b"BM", 0),
    (".pgm", b"P5\n", 0),
    (".jpg", b"\xff\xd8\xff", 0),
    (".png", b"\x89PNG\r\n\x1a\n", 0),
    (".tiff", b"II*\0", 0),
    (".tiff", b"MM\0*", 0),
    (".tiff", b"I I", 0),
    (".eps", b"\xc5\xd0\xd3\xc6", 0),
    (".gif", b"GIF87a", 0),
    (".gif", b"GIF89a", 0),
    (".ico", b"\0\0\1\0", 0),
    (".dcm", b"DICM", 0x80),
    (".wav", b"RIFF", 0),
)


def get_file_extension(source: Any) -> str:
    """The kind of a file as '.png' and so on: by its name, or by its first bytes where it has none; "" if unknown.

    Args:
        source: Path, or a file open for binary reading, which is rewound.
    """
    if isinstance(source, str):
        return os.path.splitext(source)[1].lower()
    if not hasattr(source, "read"):
        return ""
    if isinstance(getattr(source, "name", None), str):
        return os.path.splitext(source.name)[1].lower()
    source.seek(0)
    head = source.read(0x84)
    source.seek(0)
    return next((ext for ext, magic, at in _SIGNATURES if head[at:].startswith(magic)), "")


class ResourceFileReader:
    """A file that knows its kind, whether it is named by a path or URL or given open.

    Args:
        source: Path or URL, or a file open for binary reading that can seek.

    >>> import io
    >>> ResourceFileReader(io.BytesIO(b"GIF89a")).ext
    '.gif'
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self.handler: Any = None
        if isinstance(source, str):
            self.handler = FileReader(source)
            self.ext = self.handler.base_ext or self._ext_of_content()
        elif _is_binary(source):
            self.handler = source
            self.ext = get_file_extension(source)
        else:
            text = message("ResourceFileReader", "source", "a path or an open binary file", describe(source))
            raise ArgumentError(text)

    def _ext_of_content(self) -> str:
        with self.handler.open() as f:
            return get_file_extension(io.BytesIO(f.read(0x84)))

    @contextlib.contextmanager
    def open(self) -> Iterator[Any]:
        """The file at its beginning, with its kind as `ext`."""
        if isinstance(self.handler, FileReader):
            with self.handler.open() as f:
                f.ext = f.ext or self.ext
                yield f
            return
        self.handler.seek(0)
        with contextlib.suppress(AttributeError):  # not every file takes another attribute
            self.handler.ext = self.ext
        yield self.handler
        self.handler.seek(0)


def _is_binary(source: Any) -> bool:
    if not (hasattr(source, "read") and hasattr(source, "seek") and getattr(source, "seekable", lambda: True)()):
        return False
    source.seek(0)
    first = source.read(1)
    source.seek(0)
    return isinstance(first, bytes)


# --- images -----------------------------------------------------------------------------------------------------------


def load_image_imread(file: Any, shape: _Shape = None, max_range: float = 1.0) -> np.ndarray:
    """An image as an array of shape (colours, height, width).

    Args:
        file: Path or open file.
        shape: Shape to resize to; the number of colours must be the image's.
        max_range: What white becomes, as float; below 0 the values stay as they are.
    """
    images = importlib.import_module(".image_utils", __package__)
    image = images.imread(file)
    image = image[..., None] if image.ndim == 2 else image
    colours, height, width = shape if shape is not None else (image.shape[2], *image.shape[:2])
    if colours != image.shape[2]:
        raise ShapeError(message("load_image", "shape", f"{image.shape[2]} colours, as the image has", colours))
    if (height, width) != image.shape[:2]:
        plain = image[..., 0] if colours == 1 else image
        image = images.imresize(plain, (width, height)).reshape(height, width, colours)
    image = image.transpose(2, 0, 1)
    most = 65535.0 if image.dtype == np.uint16 else 255.0
    return image if max_range < 0 or max_range == most else image * (max_range / most)


def load_image(file: Any, shape: _Shape = None, normalize: bool = False) -> np.ndarray:
    """An image as an array of shape (colours, height, width).

    Args:
        file: Path or open file.
        shape: Shape to resize to.
        normalize: Whether values go from 0 to 1 instead of those of the file.
    """
    return load_image_imread(file, shape, 1.0 if normalize else -1)


# --- tables and arrays ------------------------------------------------------------------------------------------------


def load_csv(file: IO[bytes], shape: _Shape = None, normalize: bool = False) -> np.ndarray:
    """The numbers of a csv file, a row for each line that is not empty, as float64.

    Args:
        file: File open for binary reading.
        shape: Shape of the result.
        normalize: Ignored.
    """
    name = getattr(file, "name", "the open file")
    rows: list[list[float]] = []
    data = file.read()
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig")))
        for row in reader:
            if row:
                rows.append(list(map(float, row)))
        if len({len(row) for row in rows}) > 1:
            raise ValueError(f"rows have {sorted({len(row) for row in rows})} columns")
    except (ValueError, csv.Error) as error:
        if is_of_user_code(error):
            raise
        raise FormatError(message("load_csv", "file", f"cannot read {name}: {error}")) from error
    return _shaped("load_csv", np.array(rows), shape)


def _shaped(function: str, array: np.ndarray, shape: _Shape) -> np.ndarray:
    if shape is None:
        return array
    try:
        return array.reshape(shape)
    except ValueError as error:
        if is_of_user_code(error):
            raise
        text = message(function, "shape", f"a shape of {array.size} elements", tuple(shape))
        raise ShapeError(text) from None


def load_npy(path: Any, shape: _Shape = None, normalize: bool = False) -> np.ndarray:
    """The array of a `.npy` file; one of Python objects is refused, since reading it would run code.

    Args:
        path: Path or file open for binary reading.
        shape: Shape of the result.
        normalize: Ignored.
    """
    with _opened(path) as f:
        return _shaped("load_npy", read_array("load_npy", f), shape)


@contextlib.contextmanager
def _opened(path: Any) -> Iterator[Any]:
    if hasattr(path, "read"):
        yield path
        return
    with FileReader(path).open() as f:
        yield f


# --- sounds -----------------------------------------------------------------------------------------------------------


def load_wav(path: Any, shape: _Shape = None, normalize: bool = False) -> np.ndarray:
    """The sound of a `.wav` file as an array of shape (samples, channels), in the file's own type.

    Args:
        path: Path or file open for binary reading.
        shape: Shape of the result.
        normalize: Ignored.

    Raises:
        ValueError: If the file is of another kind, or compressed, or the shape does not fit. One that is cut short is a
            RuntimeWarning, as in NNabla.
    """
    with _opened(path) as f:
        data = f.read()
    try:
        sound = _wav.decode(data, whole=False)[0]
    except FormatError as error:
        raise FormatError(message("load_wav", "path", f"this is no sound that can be read: {error}")) from None
    return _shaped("load_wav", sound, shape)


def load_audio_pydub(path: Any, shape: _Shape = None, normalize: bool = False) -> np.ndarray:
    """The sound of a file of any kind that the package pydub reads.

    Args:
        path: Path or open file.
        shape: Shape to resize to.
        normalize: Ignored.
    """
    sounds = importlib.import_module(".audio_utils", __package__)
    found: np.ndarray = sounds.auread(path)
    return sounds.auresize(found, shape) if shape else found


def load_audio(file: Any, shape: _Shape = None, normalize: bool = False) -> np.ndarray:
    """The sound of a `.wav` file: `load_audio_pydub` where pydub is installed, else `load_wav`."""
    has_pydub = importlib.util.find_spec("pydub") is not None
    return (load_audio_pydub if has_pydub else load_wav)(file, shape, normalize)


_IMAGES = (".bmp", ".jpg", ".jpeg", ".png", ".gif", ".tif", ".tiff", ".dcm")
_LOADERS: dict[str, Callable[..., np.ndarray]] = {
    **dict.fromkeys(_IMAGES, load_image),
    ".csv": load_csv,
    ".npy": load_npy,
    ".wav": load_audio,
}


def kinds() -> tuple[str, ...]:
    """The kinds of files that `load` knows, an own module of callbacks aside."""
    return tuple(_LOADERS)


def load(ext: str) -> Callable[..., Any]:
    """The function that reads files of a kind: `load('.png')(file, shape=None, normalize=False)`.

    Raises:
        ValueError: If no function reads that kind.
    """
    callback = callback_module()
    own = callback.get_load_image_func(ext) if callback is not None else None
    if own is not None:
        return own  # type: ignore[no-any-return]
    if ext not in _LOADERS:
        raise ArgumentError(message("load", "ext", f"one of {', '.join(kinds())}", repr(ext)))
    return _LOADERS[ext]
