"""Files by path, over HTTP(S) or of S3, opened by their names beside one of them."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import shutil
import tempfile
import urllib.parse
from collections.abc import Iterator
from typing import Any

from .._errors import (
    FileError,
    FormatError,
    MissingFileError,
    MissingPackageError,
    check_type,
    failures_as,
    message,
    reason,
)
from .._files import h5py_module
from .._interrupts import is_of_handler
from .download import opened_url


class FileReader:
    """Opens the files of a data set, which are named relative to one of them.

    Args:
        base_uri: Path, 'http://..', 'https://..' or 's3://bucket/key' (with the package boto3) of the data set's file
            or folder.
    """

    def __init__(self, base_uri: str) -> None:
        check_type("FileReader", "base_uri", base_uri, (str, os.PathLike), "a path or URL")
        self._base_uri = os.fspath(base_uri)
        self.base_ext = os.path.splitext(self._base_uri)[1].lower()
        scheme = self._base_uri.split("://", 1)[0].lower() if "://" in self._base_uri else ""
        self._file_type = {"s3": "s3", "http": "http", "https": "http"}.get(scheme, "file")
        if self._file_type == "s3":
            bucket, _, self._s3_base_key = self._base_uri[5:].partition("/")
            self._s3_bucket = _boto3().session.Session().resource("s3").Bucket(bucket)

    def read_s3_object(self, key: str) -> bytes:
        """The bytes of an object of the bucket."""
        try:
            found: bytes = self._s3_bucket.Object(key).get()["Body"].read()
        except Exception as error:  # boto3's own kinds
            if is_of_handler(error):
                raise
            raise FileError(message("FileReader", None, f"cannot read {key!r} of the S3 bucket: {error}")) from error
        return found

    @contextlib.contextmanager
    def open(self, filename: str | None = None, textmode: bool = False, encoding: str = "utf-8-sig") -> Iterator[Any]:
        """The open file, with its extension in lower case as `ext`; closed at the end of the block.

        Args:
            filename: Name relative to the folder of the base; by default the base itself.
            textmode: Whether to read text.
            encoding: That of the text.
        """
        name = self._base_uri if filename is None else self._beside(filename.replace("\\", "/"))
        with self._binary(name) as raw:
            f: Any = io.TextIOWrapper(raw, encoding, newline="") if textmode else raw
            f.ext = os.path.splitext(name)[1].lower()
            yield f

    @contextlib.contextmanager
    def open_cache(self, cache_name: str) -> Iterator[Any]:
        """An `.h5` file of the base, which is a folder, as an open `h5py.File`."""
        h5py = h5py_module("FileReader")
        folder = FileReader(self._base_uri.rstrip("/") + "/")
        with contextlib.ExitStack() as stack:
            path = folder._beside(cache_name.replace("\\", "/"))
            if self._file_type != "file":
                temporary = stack.enter_context(tempfile.NamedTemporaryFile(suffix=".h5"))
                with folder._binary(path) as f:
                    shutil.copyfileobj(f, temporary)
                temporary.flush()
                path = temporary.name
            with failures_as(lambda error: _unopened(error, path), (OSError, ValueError)):
                os.stat(path)
            text = message("FileReader", None, f"{cache_name!r} is no HDF5 file: ")
            with failures_as(lambda error: FormatError(f"{text}{error}")):  # h5py's, by what the bytes happen to be
                h5 = stack.enter_context(h5py.File(path, "r"))
            yield h5

    def listdir(self) -> list[str] | None:
        """Sorted names of the `.h5` files in the folder; None over HTTP, which does not list."""
        if self._file_type == "http":
            return None
        if self._file_type == "s3":
            objects = self._s3_bucket.objects.filter(Prefix=self._s3_base_key.rstrip("/") + "/", Delimiter="/")
            return sorted(os.path.basename(o.key) for o in objects)

        def told(error: Exception) -> Exception:
            text = f"cannot list the folder {self._base_uri!r}: {reason(error, self._base_uri)}"
            kind = MissingFileError if isinstance(error, FileNotFoundError) else FileError
            return kind(message("FileReader", None, text))

        with failures_as(told, OSError):
            names = os.listdir(self._base_uri)
        return [name for name in sorted(names) if os.path.splitext(name)[1].lower() == ".h5"]

    def _beside(self, name: str) -> str:
        if self._file_type == "file":
            return os.path.abspath(os.path.join(os.path.dirname(self._base_uri.replace("\\", "/")), name))
        scheme, _, rest = self._base_uri.partition("://")  # urljoin does not know S3
        return urllib.parse.urljoin(f"http://{rest}", name).replace("http", scheme, 1)

    @contextlib.contextmanager
    def _binary(self, name: str) -> Iterator[Any]:
        if self._file_type == "s3":
            yield io.BytesIO(self.read_s3_object(name.split("://", 1)[1].partition("/")[2]))
        elif self._file_type == "http":
            with opened_url("FileReader", name) as answer:
                yield io.BufferedReader(_WholeAnswer(answer))
        else:
            with failures_as(lambda error: _unopened(error, name), (OSError, ValueError)):
                f = open(name, "rb")
            with f:
                yield f


class _WholeAnswer(io.RawIOBase):
    """A server's answer, which has to come to its end: http.client takes a shorter one for the whole, line by line."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._answer.readinto(buffer)
        if not count and len(buffer) and self._answer.length:
            raise ConnectionError(f"the answer broke off {self._answer.length} bytes before its end")
        return count


def _unopened(error: Exception, path: str) -> Exception:
    if isinstance(error, FileNotFoundError):
        return MissingFileError(message("FileReader", None, f"there is no file {path!r}"))
    return FileError(message("FileReader", None, f"cannot open {path!r}: {reason(error, path)}"))


def _boto3() -> Any:
    try:
        return importlib.import_module("boto3")
    except ImportError as error:
        text = message("FileReader", None, "'s3://' needs the package boto3", hint="pip install 'nnrs[s3]'")
        raise MissingPackageError(text) from error
