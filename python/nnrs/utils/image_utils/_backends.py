"""Which backend does what: the one that is set, or one after the other until one can."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from ..._errors import (
    ArgumentError,
    Error,
    FormatError,
    MissingPackageError,
    OutOfMemoryError,
    check_name,
    is_of_user_code,
    message,
)
from . import _dicom, _opencv, _pillow, _pypng
from ._arrays import Image
from ._claims import check_claim

T = TypeVar("T")


@dataclass
class Wanted:
    """How an image shall be read."""

    grayscale: bool
    as_uint16: bool
    num_channels: int
    palette_indices: bool = False


@dataclass(frozen=True)
class Backend:
    """A package for images. `functions` has `read`, `encode`, `resize`, as far as the package can."""

    name: str
    package: str
    to_install: str
    functions: ModuleType


_ALL = [
    Backend("PilBackend", "PIL", "nnrs[image]", _pillow),
    Backend("Cv2Backend", "cv2", "opencv-python-headless", _opencv),
    Backend("PngBackend", "png", "pypng", _pypng),
    Backend("DicomBackend", "pydicom", "pydicom", _dicom),
]
_NAMES = {b.name: b for b in _ALL} | dict(zip(("pil", "cv2", "pypng", "dicom"), _ALL, strict=True))
# Endings for which a backend goes before the others.
_PREFERRED = {".png": "PngBackend"} | dict.fromkeys(
    (".bmp", ".dib", ".ppm", ".pbm", ".pgm", ".sr", ".ras"), "Cv2Backend"
)

_PREFERRED |= dict.fromkeys((".dcm", ".dicom"), "DicomBackend")
# What the first bytes say of a file without a name.
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": ".png", b"BM": ".bmp", b"P4": ".pbm", b"P5": ".pgm", b"P6": ".ppm"}

_chosen: Backend | None = None
_used: Backend | None = None


def is_installed(backend: Backend) -> bool:
    """Whether the package can be found; it is not imported."""
    try:
        return importlib.util.find_spec(backend.package) is not None
    except (ImportError, ValueError):
        return False


def available() -> list[str]:
    return [b.name for b in _ALL if is_installed(b)]


def current() -> str:
    shown = _chosen or _used
    return shown.name if shown else ""


def choose(name: str | None) -> None:
    global _chosen
    if name is None or name == "":
        _chosen = None
        return
    backend = _NAMES.get(check_name("set_backend", "backend", name, "the name of a backend"))
    if backend is None:
        raise ArgumentError(message("set_backend", "backend", "one of " + ", ".join(_NAMES), repr(name)))
    if not is_installed(backend):
        hint = f"pip install '{backend.to_install}'"
        raise MissingPackageError(
            message("set_backend", "backend", f"{backend.name} needs the package {backend.package}", hint=hint)
        )
    _chosen = backend


def read(
    data: bytes, ending: str, wanted: Wanted, name: str = "the file", size: tuple[int, int] | None = None, way: str = ""
) -> Image:
    """The image in `data`, with (width, height) `size` by the same backend if it can; `name` is for errors."""
    check_claim(data)
    kind = ending or next((kind for head, kind in _SIGNATURES.items() if data.startswith(head)), "")
    kind = ".dcm" if not kind and data[128:132] == b"DICM" else kind
    by, img = _first("imread", kind, "read", lambda f: (f, f.read(data, wanted)), name)
    img = np.ascontiguousarray(img)
    if size is None:
        return img
    return resize("imread", img, size, way, by)


def encode(img: Image, ending: str, as_uint16: bool, auto_scale: bool) -> bytes:
    """The bytes of a file of that kind."""
    return _first("imsave", "", "encode", lambda f: f.encode(img, ending, as_uint16, auto_scale))


def resize(function: str, img: Image, size: tuple[int, int], interpolate: str, by: Any = None) -> Image:
    """The image with (width, height) `size`; the backend `by`, which has read it, is asked first."""
    try:  # Pillow makes it row by row, until nothing is left
        np.empty((size[1], size[0], *img.shape[2:]), img.dtype)
    except (MemoryError, ValueError) as error:
        raise OutOfMemoryError(message(function, "size", "an image that fits into memory", size)) from error
    return _first(function, "", "resize", lambda f: f.resize(function, img, size, interpolate), by=by)


def _first(function: str, ending: str, task: str, call: Callable[[Any], T], name: str = "", by: Any = None) -> T:
    """The result of the first backend that can; the errors of all where none can."""
    global _used
    errors: list[tuple[str, Exception]] = []
    for backend in sorted(_candidates(ending, task), key=lambda b: by is not None and b.functions is not by):
        try:
            result = call(backend.functions)
        except MemoryError:
            raise
        except Exception as error:  # decoders raise all kinds, by what the bytes happen to be
            if is_of_user_code(error):
                raise
            errors.append((backend.name, error))
        else:
            _used = _used if by is not None else backend
            return result
    raise _failure(function, errors, name)


def _candidates(ending: str, task: str) -> Iterator[Backend]:
    if _chosen is not None and hasattr(_chosen.functions, task):
        yield _chosen
        return
    able = [b for b in _ALL if hasattr(b.functions, task) and is_installed(b)]
    able = [b for b in able if b.name != "DicomBackend" or b.name == _PREFERRED.get(ending)]
    yield from sorted(able, key=lambda b: b.name != _PREFERRED.get(ending))


def _failure(function: str, errors: list[tuple[str, Exception]], file: str) -> Exception:
    """The error for a `file` that none can read; for what else none can do, if that has no name."""
    if not errors:
        expected = "images need the package Pillow (or opencv-python-headless or pypng)"
        return MissingPackageError(message(function, None, expected, hint="pip install 'nnrs[image]'"))
    ours = [error for _, error in errors if isinstance(error, Error)]
    if ours and not file or len(ours) == len(errors) == 1:
        return ours[0]
    reasons = "; ".join(f"{name}: {_words(error)}" for name, error in errors)
    if file:
        return FormatError(message(function, "path", f"{file} is no image that can be read ({reasons})"))
    return ArgumentError(message(function, "img", f"no backend can do that ({reasons})"))


def _words(error: Exception) -> str:
    """The first line of an error, without what the message around it says already."""
    if type(error).__name__ == "UnidentifiedImageError":  # Pillow's, which names our copy in memory
        return "cannot identify it"
    return re.sub(r"^imread: argument 'path': ", "", (str(error).splitlines() or [type(error).__name__])[0])
