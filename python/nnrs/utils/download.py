"""Files from the network, kept in the user's folder of data.

>>> import os, pathlib, tempfile
>>> with tempfile.TemporaryDirectory() as d:
...     source = pathlib.Path(d, "a.txt")
...     _ = source.write_text("hello")
...     with download(source.as_uri(), os.path.join(d, "b.txt")) as f:
...         f.read()
b'hello'
"""

from __future__ import annotations

import contextlib
import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import IO, Any

from .._errors import ArgumentError, Error, NetworkError, check_type, failures_as, message
from .._files import atomic_path
from ..logger import logger

_SECONDS = 60  # without a byte, until a server counts as gone
_AT_ONCE = 1 << 20


class UnreachedError(NetworkError, urllib.error.URLError):
    """A server that cannot be reached, refuses or breaks off: `reason` says why."""

    def __init__(self, text: str, reason: Any = None) -> None:
        super().__init__(text)
        self.args, self.reason = (text, reason), reason

    def __str__(self) -> str:
        return str(self.args[0])


def get_data_home() -> str:
    """The folder of downloaded data, `~/nnabla_data` as in NNabla; made if it is not there."""
    folder = os.path.expanduser("~/nnabla_data")
    if folder == "/nnabla_data":
        folder = "./nnabla_data"
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
    return folder


def download(
    url: str, output_file: str | None = None, open_file: bool = True, allow_overwrite: bool = False
) -> IO[bytes] | None:
    """Fetch a file, unless it is there already.

    Args:
        url: Where it is: 'https://..', 'http://..', 'ftp://..' or 'file://..'.
        output_file: Path to write; by default the URL's last part in `get_data_home()`.
        open_file: Whether to return the file, open for binary reading.
        allow_overwrite: Whether to fetch it again where it is there.

    Raises:
        OSError: If the server cannot be reached or breaks off; then no file is left, and an older one stays.
    """
    check_type("download", "url", url, str, "str")
    name = os.path.basename(urllib.parse.urlsplit(url).path)
    if output_file is None and not name:
        hint = "give output_file"
        raise ArgumentError(message("download", "url", "an address that ends in a file's name", repr(url), hint))
    path = os.path.join(get_data_home(), name) if output_file is None else output_file
    if os.path.exists(path) and not allow_overwrite:
        logger.info("download: %s is there already; remove it to fetch it again", path)
    else:
        _fetch(url, path, name)
    return open(path, "rb") if open_file else None


@contextlib.contextmanager
def opened_url(function: str, url: str) -> Iterator[Any]:
    """The open answer of a server; its errors, here and in the block, are UnreachedErrors that name the address."""
    kinds = (OSError, http.client.HTTPException, ValueError)
    with (
        failures_as(lambda error: _unreached(function, url, error), kinds, but=Error),
        urllib.request.urlopen(url, timeout=_SECONDS) as answer,
    ):
        yield answer


def _unreached(function: str, url: str, error: Exception) -> UnreachedError:
    if isinstance(error, urllib.error.HTTPError):
        error.close()  # it is the open answer, too
        return UnreachedError(message(function, "url", f"cannot fetch {url!r}: {error}"), error.reason)
    hint = "is there a network? A file that was fetched elsewhere can be put in place by hand"
    why = getattr(error, "reason", None) or error
    return UnreachedError(message(function, "url", f"cannot fetch {url!r}: {why}", hint=hint), why)


def _fetch(url: str, path: str, name: str) -> None:
    with opened_url("download", url) as answer, atomic_path(path) as temporary, open(temporary, "wb") as f:
        total = int(answer.headers.get("Content-Length") or 0)
        done = 0
        with _bar(total, name) as advance:
            for piece in _pieces(answer, url):
                f.write(piece)
                done += len(piece)
                advance(len(piece))
        if done < total:
            text = f"broke off after {done} of {total} bytes"
            raise UnreachedError(message("download", "url", f"{url!r} {text}"), text)


def _pieces(answer: Any, url: str) -> Iterator[bytes]:
    """What the server sends; its errors are not those of the disk."""
    try:
        while piece := answer.read(_AT_ONCE):
            yield piece
    except (OSError, http.client.HTTPException) as error:
        raise _unreached("download", url, error) from error


@contextlib.contextmanager
def _bar(total: int, name: str) -> Iterator[Callable[[int], object]]:
    """A progress bar, where tqdm is installed."""
    try:
        from tqdm import tqdm  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        yield lambda size: None
        return
    with tqdm(total=total, desc=name, unit="B", unit_scale=True, unit_divisor=1024) as bar:
        yield bar.update
