"""Sound as NumPy arrays (samples, channels): `.wav` and raw files read and written, and resized.

All is done here, on any Python; pydub (`pip install 'nnrs[audio]'`), where it is installed, decodes compressed `.wav`.
"""

from __future__ import annotations

import importlib.util
import io
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._errors import (
    ArgumentError,
    ArgumentTypeError,
    FileError,
    FormatError,
    MissingPackageError,
    ShapeError,
    check_integer,
    check_type,
    describe,
    failures_as,
    message,
    reason,
)
from .._files import PathOrFile, atomic_path, is_path, write_all
from . import _wav
from ._bytes import ending_of, read_bytes

__all__ = [
    "auload",
    "auread",
    "auresize",
    "ausave",
    "auwrite",
    "get_available_backends",
    "get_backend",
    "minmax_auto_scale",
    "set_backend",
]

_RATE = 48000
_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32}
_chosen: str | None = None


def set_backend(backend: str) -> None:
    """Take one backend for all that follows.

    Args:
        backend: "pydub", or "wave": what is done here, without a package.

    Raises:
        ValueError: There is no such backend.
        ImportError: pydub is not installed.
    """
    global _chosen
    if backend not in ("pydub", "wave"):
        raise ArgumentError(message("set_backend", "backend", "'pydub' or 'wave'", describe(backend)))
    if backend not in get_available_backends():
        hint = "pip install 'nnrs[audio]'"
        raise MissingPackageError(message("set_backend", "backend", "'pydub' needs the package pydub", hint=hint))
    _chosen = backend


def get_backend() -> str:
    """The name of the backend in use.

    >>> set_backend("wave")
    >>> get_backend()
    'wave'
    """
    return _chosen or get_available_backends()[0]


def get_available_backends() -> list[str]:
    """The backends that are there: "pydub" where it is installed, and "wave"."""
    return [*(["pydub"] if importlib.util.find_spec("pydub") is not None else []), "wave"]


def minmax_auto_scale(audio_arr: np.ndarray, out_datatype: Any) -> np.ndarray:
    """Stretch the values over the whole range of a type.

    Args:
        audio_arr: Array of any shape. Where all values are the same they become the type's greatest, zeros its least.
        out_datatype: Type of integers or floats of 4 bytes at most.

    Returns:
        Array of that type; fractions are cut off.

    >>> minmax_auto_scale(np.array([-1.0, 0.0, 1.0]), np.int16).tolist()
    [-32768, 0, 32767]
    """
    _check_samples("minmax_auto_scale", audio_arr, dimensions=None)
    kind = _type_of_samples(out_datatype)
    x = audio_arr.astype(np.float64)
    if not x.size or not np.all(np.isfinite(x)):
        expected = "an array of finite values, at least one"
        raise ArgumentError(message("minmax_auto_scale", "audio_arr", expected, describe(audio_arr)))
    limits: Any = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    least, greatest = float(limits.min), float(limits.max)
    low, high = x.min(), x.max()
    unit = (x / 2 - low / 2) / (high / 2 - low / 2) if low != high else np.full_like(x, float(low != 0))
    return (unit * (greatest - least) + least).astype(kind)


def _type_of_samples(out_datatype: Any) -> np.dtype:
    check_type("minmax_auto_scale", "out_datatype", out_datatype, (np.dtype, type), "a NumPy type")
    kind = np.dtype(out_datatype)
    if kind.kind not in "iuf" or kind.itemsize > 4:
        expected = "integers or floats of 4 bytes at most"
        raise ArgumentError(message("minmax_auto_scale", "out_datatype", expected, str(kind)))
    return kind


def auread(
    path: PathOrFile, channel_first: bool = False, raw_format_param: Mapping[str, int] | None = None, **kwargs: Any
) -> np.ndarray:
    """Read sound.

    Args:
        path: Path of a `.wav` or `.raw` file, or such a file, open for reading in binary mode.
        channel_first: Give (channels, samples).
        raw_format_param: How a `.raw` file is stored: "sample_width" (bytes: 1 to 4), "channels" and "frame_rate".
        kwargs: None is known.

    Returns:
        (samples, channels): uint8 with silence at 128 (8 bits; int8 of a `.raw` file), int16, or int32 (32 bits, and
        24, which are the upper ones), int64; float32 or float64 of a file of floats.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no sound, or compressed, and there is no pydub that can decode it.

    >>> file = io.BytesIO()
    >>> ausave(file, np.int16([[1, 2], [3, 4], [5, 6]]))
    >>> auread(file).tolist()
    [[1, 2], [3, 4], [5, 6]]
    """
    _no_more("auread", kwargs)
    data = read_bytes("auread", path)
    ending = ending_of(path) or (".wav" if data.startswith((b"RIFF", b"RIFX")) else "")
    if ending == ".raw":
        x = _raw(data, raw_format_param)
    elif ending == ".wav":
        x = _decoded(data, path)
    else:
        raise ArgumentError(message("auread", "path", "a file of kind '.wav' or '.raw'", repr(ending)))
    return x.T if channel_first else x


def _raw(data: bytes, about: Mapping[str, int] | None) -> np.ndarray:
    found: Mapping[str, int] = {} if about is None else about
    check_type("auread", "raw_format_param", found, Mapping, "a dict that says how the '.raw' file is stored")
    try:
        width, channels, rate = (
            check_integer("auread", f"raw_format_param[{name!r}]", found[name], 1)
            for name in ("sample_width", "channels", "frame_rate")
        )
    except KeyError as error:
        expected = "'sample_width', 'channels' and 'frame_rate'"
        raise ArgumentError(message("auread", "raw_format_param", expected, sorted(found))) from error
    if width > 4:
        raise ArgumentError(message("auread", "raw_format_param['sample_width']", "4 bytes at most", width))
    try:
        return _wav.samples(data, _wav.SampleFormat(_wav.PCM, channels, rate, width), unsigned_bytes=False)
    except FormatError as error:
        raise FormatError(message("auread", "path", f"the '.raw' file does not fit: {error}")) from None


def _decoded(data: bytes, path: PathOrFile) -> np.ndarray:
    name = os.fspath(path) if is_path(path) else "the open file"  # type: ignore[arg-type]
    try:
        return _wav.decode(data)[0]
    except _wav.CompressedError as error:
        if get_backend() != "pydub":
            hint = "pip install 'nnrs[audio]', and the program ffmpeg"
            raise FormatError(message("auread", "path", f"cannot read {name}: {error}", hint=hint)) from None
        return _by_pydub(data, str(name))
    except FormatError as error:
        raise FormatError(message("auread", "path", f"cannot read {name}: {error}")) from None


def _by_pydub(data: bytes, name: str) -> np.ndarray:
    def told(error: Exception) -> Exception:  # no ffmpeg, no audioop (Python 3.13), or bytes that it cannot decode
        return FormatError(message("auread", "path", f"pydub cannot decode {name}: {error}"))

    with failures_as(told, but=MemoryError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for ffmpeg, and imports audioop
        from pydub import AudioSegment

        sound = AudioSegment.from_file(io.BytesIO(data), format="wav")
    return np.array(sound.get_array_of_samples()).reshape(-1, sound.channels)


def ausave(
    path: PathOrFile, audio_arr: np.ndarray, channel_first: bool = False, frame_rate: int = _RATE, **kwargs: Any
) -> None:
    """Write sound as `.wav`; missing folders are made, an old file is replaced once the new one is whole.

    Args:
        path: Path that ends in '.wav', or a file open for writing in binary mode.
        audio_arr: Integers of 4 bytes at most, (samples, channels): uint8 has its silence at 128, others at 0.
        channel_first: `audio_arr` is (channels, samples).
        frame_rate: Samples a second.
        kwargs: None is known.

    Raises:
        ValueError: The array is none that a `.wav` file can hold.
        OSError: The file cannot be written.
    """
    _no_more("ausave", kwargs)
    rate = check_integer("ausave", "frame_rate", frame_rate, 1)
    _check_samples("ausave", audio_arr)
    x = audio_arr.T if channel_first else audio_arr
    if x.shape[1] not in range(1, 1 << 16) or x.shape[1] * 4 * rate >= 1 << 32 or x.nbytes >= (1 << 32) - 64:
        raise ShapeError(message("ausave", "audio_arr", "shape (samples, channels) of a '.wav' file", x.shape))
    data = _wav.encode(_signed(x), rate)
    if not is_path(path):
        write_all(path, data)
        return
    if ending_of(path) != ".wav":
        raise ArgumentError(message("ausave", "path", "a name that ends in '.wav'", repr(os.fspath(path))))  # type: ignore[arg-type]
    _make_folder(os.path.dirname(os.path.abspath(path)))  # type: ignore[type-var,arg-type]
    with atomic_path(path) as temporary, open(temporary, "wb") as f:  # type: ignore[arg-type]
        f.write(data)


def _make_folder(folder: str) -> None:
    text = message("ausave", "path", f"cannot make the folder {folder!r}: ")
    with failures_as(lambda error: FileError(text + reason(error, folder)), OSError):
        os.makedirs(folder, exist_ok=True)


def _signed(x: np.ndarray) -> np.ndarray:
    """The samples in a type that `.wav` files have: uint8, int16 or int32."""
    if x.dtype.kind == "f" or x.dtype.itemsize > 4:
        hint = "minmax_auto_scale makes integers of any numbers"
        raise ArgumentError(message("ausave", "audio_arr", "integers of 4 bytes at most", f"dtype {x.dtype}", hint))
    if x.dtype == np.int8:
        return (x.astype(np.int16) + 128).astype(np.uint8)
    if x.dtype.itemsize == 1:
        return x.astype(np.uint8)
    signed = _SIGNED[x.dtype.itemsize]
    if x.dtype.kind == "u" and x.size and x.max() > np.iinfo(signed).max:
        expected = f"values up to {np.iinfo(signed).max}, as '.wav' has"
        raise ArgumentError(message("ausave", "audio_arr", expected, int(x.max())))
    return x.astype(signed)


def auresize(audio_arr: np.ndarray, size: Sequence[int], channel_first: bool = False, **kwargs: Any) -> np.ndarray:
    """Change the number of samples, by straight lines between them, and of channels.

    Args:
        audio_arr: (samples, channels).
        size: (samples, channels) of the result; channels stay, become one (their mean), or one becomes several.
        channel_first: Arrays are (channels, samples).
        kwargs: None is known.

    Returns:
        Array of `audio_arr`'s type (float32 of any floats). Of the line behind the last sample it repeats the end.

    >>> auresize(np.int16([[0], [10], [20], [30]]), (2, 2)).tolist()
    [[0, 0], [19, 19]]
    """
    _no_more("auresize", kwargs)
    _check_samples("auresize", audio_arr)
    length, channels = _size(size)
    x = audio_arr.T if channel_first else audio_arr
    if not x.size:
        raise ShapeError(message("auresize", "audio_arr", "at least one sample", f"shape {audio_arr.shape}"))
    if x.shape[1] != channels and 1 not in (x.shape[1], channels):
        expected = f"{x.shape[1]} channels as before, or 1"
        raise ArgumentError(message("auresize", "size", expected, channels))
    x = x.astype(np.float32 if x.dtype.kind == "f" else np.int8 if x.dtype.kind == "b" else x.dtype)
    y = _with_channels(_at_rate(x, length), channels)
    return y.T if channel_first else y


def _size(size: Any) -> tuple[int, int]:
    check_type("auresize", "size", size, (list, tuple), "(samples, channels)")
    if len(size) != 2:
        raise ArgumentError(message("auresize", "size", "(samples, channels)", f"{len(size)} numbers"))
    return check_integer("auresize", "size", size[0], 1), check_integer("auresize", "size", size[1], 1)


def _at_rate(x: np.ndarray, length: int) -> np.ndarray:
    """`length` samples, as the rate changes from 48,000 to the whole number above what would give that many."""
    rate = _RATE * length // len(x) + 1
    # Output k lies before input `after`, by `back` parts of `rate`.
    k = np.arange(length, dtype=np.int64)
    after = -(-k * _RATE // rate)
    after = after[after < len(x)]
    back = (after * rate - k[: len(after)] * _RATE)[:, None].astype(np.float64)
    fine = _fine(x)
    y = (fine[np.maximum(after - 1, 0)] * back + fine[after] * (rate - back)) / rate
    return np.pad(_coarse(y, x.dtype), ((0, length - len(after)), (0, 0)), mode="edge")


def _fine(x: np.ndarray) -> np.ndarray:
    """Integers in units of a 32-bit one, the grid on which sound is computed."""
    return x.astype(np.float64) * (1.0 if x.dtype.kind == "f" else 2.0 ** max(0, 32 - 8 * x.dtype.itemsize))


def _coarse(y: np.ndarray, kind: np.dtype) -> np.ndarray:
    if kind.kind == "f":
        return y.astype(kind)
    return np.floor(np.trunc(y) / 2.0 ** max(0, 32 - 8 * kind.itemsize)).astype(kind)


def _with_channels(x: np.ndarray, channels: int) -> np.ndarray:
    if x.shape[1] == channels:
        return x
    if x.shape[1] == 1:
        return np.repeat(x, channels, axis=1)
    if x.dtype.kind == "f" or x.shape[1] == 2:
        mean = x.mean(axis=1, keepdims=True, dtype=np.float64)
        return (mean if x.dtype.kind == "f" else np.floor(mean)).astype(x.dtype)
    return (x // x.dtype.type(x.shape[1])).sum(axis=1, keepdims=True).astype(x.dtype)


def _check_samples(function: str, x: Any, dimensions: int | None = 2) -> None:
    check_type(function, "audio_arr", x, np.ndarray, "a NumPy array")
    if x.dtype.kind not in "biuf":
        raise ArgumentTypeError(message(function, "audio_arr", "an array of real numbers", f"dtype {x.dtype}"))
    if dimensions is not None and x.ndim != dimensions:
        raise ShapeError(message(function, "audio_arr", "shape (samples, channels)", f"shape {x.shape}"))


def _no_more(function: str, kwargs: Mapping[str, Any]) -> None:
    if kwargs:
        raise ArgumentTypeError(message(function, next(iter(kwargs)), "there is no such argument"))


auload = auread
auwrite = ausave
