"""Files of parameters: NNabla's and `.safetensors`, read whole and written beside, then renamed.

The compiled core reads and writes them: parameters as a whole, the tensors of solver states one by one. Such a tensor
of a `.safetensors` file is a tuple `(name, kind, shape, raw)`: its name, its type as the format spells it ("F32",
"BOOL", ...), its shape as a tuple of int, and its little-endian bytes as a 1-D C-contiguous uint8 NumPy array.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar, Union

import numpy as np

from . import _core
from ._core import NdArray
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    Error,
    FileError,
    FolderError,
    FormatError,
    MissingFileError,
    MissingPackageError,
    describe,
    failures_as,
    message,
    reason,
)

PathOrFile = Union[str, "os.PathLike[str]", IO[bytes]]
T = TypeVar("T")

# Scopes within scopes that a file may ask for. Networks have a dozen; a file with thousands is an attack.
MOST_DEPTH = 100
NNABLA = (".h5", ".protobuf", ".nntxt", ".prototxt", ".nnp")
"""NNabla's kinds of files, all of which may hold parameters."""
_SAFETENSORS_TYPES = {
    "BOOL": "?",
    "U8": "<u1",
    "I8": "<i1",
    "U16": "<u2",
    "I16": "<i2",
    "U32": "<u4",
    "I32": "<i4",
    "U64": "<u8",
    "I64": "<i8",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
}
_SAFETENSORS_NAMES = {np.dtype(d): name for name, d in _SAFETENSORS_TYPES.items()}


Parameter = tuple[str, NdArray, bool]  # name, values, need_grad


def is_path(source: object) -> bool:
    """Whether `source` names a file (else it should be an open file)."""
    return isinstance(source, (str, os.PathLike))


def file_extension(
    function: str,
    source: PathOrFile,
    extension: str | None,
    known: Sequence[str] = (*NNABLA, ".safetensors"),
    argument: str = "path",
) -> str:
    """The format to use, one of `known`: that of the path's name, or `extension` for an open file. Errors name
    `function` and `argument`."""
    if is_path(source):
        ext = os.path.splitext(os.fspath(source))[1].lower()  # type: ignore[arg-type]
    elif hasattr(source, "read") or hasattr(source, "write"):
        ext = extension or ""
    else:
        raise ArgumentTypeError(message(function, argument, "a path or an open binary file", describe(source)))
    if not ext and is_path(source) and os.path.isdir(source):  # type: ignore[arg-type]
        raise ArgumentError(message(function, argument, "a file", f"the folder {os.fspath(source)!r}"))  # type: ignore[arg-type]
    return _known_extension(function, ext, known, argument)


def _known_extension(function: str, ext: str, known: Sequence[str], argument: str) -> str:
    if ext in known:
        return ext
    kinds = ", ".join(map(repr, known[:-1])) + f" or {known[-1]!r}"
    hint = "use a name that ends in one of these (for an open file, give extension='.h5')"
    if not ext:
        raise ArgumentError(message(function, argument, f"a file of kind {kinds}", "a name without a kind", hint))
    raise ArgumentError(message(function, argument, f"a file of kind {kinds}", repr(ext), hint))


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str], *, wait_for_disk: bool = False) -> Iterator[str]:
    """Give a temporary path beside `path`; when the block ends well its file replaces `path`, else nothing changes.

    Whatever ends the program leaves the old file or the new one, never half of one. With `wait_for_disk` so does what
    ends the machine, since the new file is on disk before it gets its name, and its name when the block has ended:
    some milliseconds a file, for parameters, states and networks, which nobody can make again in a moment.

    >>> import os, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as d:
    ...     with atomic_path(os.path.join(d, "a.txt")) as tmp:
    ...         _ = pathlib.Path(tmp).write_text("whole")
    ...     os.listdir(d)
    ['a.txt']
    """
    name = os.fspath(path)

    def unwritable(error: Exception) -> Exception:
        return FileError(f"cannot write {name!r}: {reason(error, path)}")

    with failures_as(unwritable, (OSError, ValueError), but=Error):  # too long a name, a zero byte, no right to look
        target, temporary = map(os.fspath, _core.temporary_beside(path))
        mode = _mode_to_keep(target)
    folder = os.path.dirname(target)

    def unmakeable(error: Exception) -> Exception:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)) and not os.path.isdir(folder or "."):
            return MissingFileError(f"cannot write {name!r}: there is no folder {folder!r}")
        why = f"no file can be made in the folder {folder!r} ({reason(error, path)})"
        return FileError(f"cannot write {name!r}: {why}")

    try:
        with failures_as(unmakeable, OSError):
            open(temporary, "xb").close()
        kinds = (OSError, RuntimeError)  # an h5py.File's are RuntimeErrors, where the disk is full
        with failures_as(unwritable, kinds, but=Error), failures_as(unwritable, FileError):
            yield temporary
            if wait_for_disk:
                _core.flush_file(temporary)
            if mode is not None:
                os.chmod(temporary, mode)
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if wait_for_disk:
        _core.flush_folder(folder)


def _mode_to_keep(target: str) -> int | None:
    """The permissions of the file that will be replaced; an error if it is no plain file."""
    try:
        found = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise FolderError(f"cannot write {target!r}: it is a folder")
    if not stat.S_ISREG(found):
        raise ArgumentError(f"{target}: expected a plain file to replace, got a device, pipe or socket")
    return stat.S_IMODE(found)


def write_parameters(function: str, target: PathOrFile, extension: str | None, params: Mapping[str, Any]) -> None:
    """Write parameters in the format that `target` asks for.

    Args:
        function: Name of the calling function, for errors.
        target: Path, or a file open for writing.
        extension: Format of an open file: one of `NNABLA`.
        params: What to write, in order.
    """
    ext = file_extension(function, target, extension)
    if ext in NNABLA:
        write_bytes(function, target, ext, _core.write_nnabla({}, list(params), list(params.values()), ext, ".h5", []))
        return
    if is_path(target):
        with atomic_path(target, wait_for_disk=True) as temporary:  # type: ignore[arg-type]
            _core.write_parameters(temporary, list(params), list(params.values()))
        return
    with _plain_file(b"") as path:
        _core.write_parameters(path, list(params), list(params.values()))
        write_bytes(function, target, ext, Path(path).read_bytes())


@contextlib.contextmanager
def _plain_file(data: bytes) -> Iterator[str]:
    """A file for what reads and writes files alone; it is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "parameters.safetensors")
        path.write_bytes(data)
        yield str(path)


def write_bytes(function: str, target: PathOrFile, ext: str, data: bytes, argument: str = "path") -> None:
    """Write a whole file; an open one is at its beginning afterwards, as NNabla leaves it. Errors name `argument`."""
    if is_path(target):
        with atomic_path(target, wait_for_disk=True) as temporary, open(temporary, "wb") as f:  # type: ignore[arg-type]
            f.write(data)
        return
    if not isinstance(target, io.TextIOBase):
        write_all(target, data)
    elif ext in (".nntxt", ".prototxt"):
        target.write(data.decode())
    else:
        raise ArgumentTypeError(
            message(function, argument, f"a file open in binary mode for {ext!r}", describe(target))
        )
    if hasattr(target, "seek"):
        target.seek(0)


def write_all(file: Any, data: bytes) -> None:
    """Write bytes to an open file; one without a buffer may take a part at a time."""
    written = file.write(data)
    left = memoryview(data)
    while isinstance(file, io.RawIOBase) and written and written < len(left):
        left = left[written:]
        written = file.write(left)


class ReadContents(NamedTuple):
    """What a file has: its message as a dict, its parameters, its solvers' states by the names of their files."""

    message: dict[str, Any]
    parameters: list[Parameter]
    states: list[tuple[str, bytes]]


def read_nnabla(function: str, source: PathOrFile, extension: str | None, argument: str = "path") -> ReadContents:
    """All that one of NNabla's files has; errors as those of `read_parameters`, and they name `argument`."""
    ext = file_extension(function, source, extension, NNABLA, argument)
    data = source if is_path(source) else _bytes_of(function, source, ext, argument)
    return read_whole(function, data, ext, lambda _, data: _read_nnabla(data, ext), argument)


def _read_nnabla(data: Any, ext: str) -> ReadContents:
    read = _core.read_nnabla_file if is_path(data) else _core.read_nnabla
    return ReadContents(*read(data, ext))


def _bytes_of(function: str, file: Any, ext: str, argument: str) -> bytes:
    """All that comes of an open file, which may be a pipe or anything else that can only be read."""
    if ext == ".nnp" and getattr(file, "seekable", lambda: hasattr(file, "seek"))():
        file.seek(0)  # an archive is read from its end, wherever the file is
    data = file.read()
    if isinstance(data, str):
        return data.encode()
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise ArgumentTypeError(message(function, argument, "a file whose read() gives bytes", describe(data)))
    return bytes(data)


def read_parameters(function: str, source: PathOrFile, extension: str | None) -> list[Parameter]:
    """Read the whole file; a missing one is FileNotFoundError, a wrong one ValueError (FormatError)."""
    ext = file_extension(function, source, extension)
    if ext in NNABLA:
        return read_nnabla(function, source, ext).parameters
    if is_path(source):
        return read_whole(function, source, ext, lambda _, path: _core.read_parameters(path))
    with _plain_file(_bytes_of(function, source, ext, "path")) as path:
        return read_whole(function, source, ext, lambda *_: _core.read_parameters(path))


def read_whole(function: str, source: Any, ext: str, read: Callable[[str, Any], T], argument: str = "path") -> T:
    """Return `read(function, source)`, of a path as a str or of bytes; whatever it finds wrong is a FormatError."""
    if is_path(source):
        source = os.fspath(source)
        _check_readable(function, source, argument)
    own = (FormatError, FileError, MissingPackageError, MemoryError)
    with failures_as(lambda error: _broken(function, source, ext, error, argument), but=own):
        return read(function, source)


def _broken(function: str, source: Any, ext: str, why: object, argument: str) -> FormatError:
    name = source if is_path(source) else "the open file"
    hint = "the file may be cut short, or of another kind than its name says"
    return FormatError(message(function, argument, f"cannot read {name} as '{ext}': {why}", hint=hint))


def check_depth(name: str) -> None:
    """Refuse the name of a parameter, or of a group of them, that lies in too many scopes."""
    if name.count("/") >= MOST_DEPTH:
        raise ValueError(f"the name {name[:40]!r}... lies in more than {MOST_DEPTH} scopes")


def _check_readable(function: str, path: str, argument: str) -> None:
    """Raise clear errors for what cannot be opened."""

    def told(error: Exception) -> Exception:
        if isinstance(error, (FileNotFoundError, NotADirectoryError, ValueError)):  # ValueErrors are of zero bytes
            hint = f"the current folder is {os.getcwd()}"
            return MissingFileError(message(function, argument, f"there is no file {path!r}", hint=hint))
        return FileError(message(function, argument, f"cannot open {path!r}: {reason(error, path)}"))

    with failures_as(told, (OSError, ValueError), but=Error):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ArgumentError(message(function, argument, "a plain file", f"{path!r}, which is a folder or device"))
        open(path, "rb").close()


# --- HDF5 -------------------------------------------------------------------------------------------------------------


def h5py_module(function: str) -> Any:
    try:
        import h5py
    except ImportError as error:
        text = message(function, None, "an h5py.File needs the package h5py", hint="pip install 'nnrs[hdf5]'")
        raise MissingPackageError(text) from error
    return h5py


def _plain(array: np.ndarray) -> np.ndarray:
    """Types that NumPy and HDF5 do not have themselves (bfloat16) go out as float, which holds each value exactly."""
    return array if array.dtype.kind in "biuf" else array.astype(np.float32)


# --- safetensors ------------------------------------------------------------------------------------------------------


def raw_tensor(name: str, array: np.ndarray) -> tuple[str, str, tuple[int, ...], np.ndarray]:
    shape, array = array.shape, _plain(array)
    kind = _SAFETENSORS_NAMES[array.dtype.newbyteorder("<")]
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return name, kind, shape, little.reshape(-1).view(np.uint8)


def array_of(name: str, kind: str, shape: tuple[int, ...], raw: np.ndarray) -> np.ndarray:
    if kind == "BF16":  # NumPy has no bfloat16; the upper half of a float is one, so this is exact
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if kind not in _SAFETENSORS_TYPES:
        known = ", ".join([*_SAFETENSORS_TYPES, "BF16"])
        raise ValueError(f"parameter '{name}' has elements of type {kind}, expected one of {known}")
    dtype = np.dtype(_SAFETENSORS_TYPES[kind])
    return raw.view(dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
