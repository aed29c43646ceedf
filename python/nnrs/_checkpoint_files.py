"""Files of checkpoints: nested values as one `.safetensors` file, with a checksum over all of it.

Arrays are tensors of the file, named by where they stand; all other values are JSON in its metadata, where an object
with "@" stands for what JSON does not have. Nothing in a file is ever run, as a pickle would be. A file is written
beside, then renamed, and what is cut short, changed or of another kind is told when it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _core, _files
from ._core import NdArray
from ._errors import ArgumentError, ArgumentTypeError, FormatError, describe, failures_as, message

_MARK = "nnrs.checkpoint"
_MOST_DEPTH = 60
_MOST_HEADER = 1 << 28
_HINT = "the file is damaged, or no checkpoint of nnrs: load an older one"


class _Packer:
    """Takes values apart into what JSON holds and arrays."""

    def __init__(self, function: str) -> None:
        self._function = function
        self.arrays: dict[str, np.ndarray] = {}

    def pack(self, value: Any, where: str, depth: int = 0) -> Any:
        if depth > _MOST_DEPTH:
            raise ArgumentError(message(self._function, None, f"values nested {_MOST_DEPTH} deep at most", where))
        if value is None or isinstance(value, (bool, str)) or type(value) in (int, float):
            return value
        if isinstance(value, Mapping):
            return {"@": "dict", "of": self._dict(value, where, depth)}
        if isinstance(value, (list, tuple)):
            items = [self.pack(v, f"{where}/{i}", depth + 1) for i, v in enumerate(value)]
            return items if isinstance(value, list) else {"@": "tuple", "of": items}
        if isinstance(value, NdArray):
            return {"@": "NdArray", "of": self._array(_values(value), where), "type": _type_name(value)}
        if isinstance(value, np.generic):
            return {"@": "scalar", "of": self._array(np.asarray(value), where)}
        if isinstance(value, np.ndarray):
            return {"@": "array", "of": self._array(value, where)}
        expected = "numbers, texts, None, NumPy arrays, NdArrays, and lists, tuples and dicts of them"
        raise ArgumentTypeError(message(self._function, where, expected, describe(value)))

    def _dict(self, value: Mapping[Any, Any], where: str, depth: int) -> dict[str, Any]:
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise ArgumentTypeError(message(self._function, where, "a dict whose keys are str", describe(wrong[0])))
        return {key: self.pack(v, f"{where}/{key}" if where else key, depth + 1) for key, v in value.items()}

    def _array(self, array: np.ndarray, where: str) -> Any:
        """What stands for an array: its tensor's name, and type and shape where the format has no such type."""
        if array.dtype.hasobject or array.dtype.kind == "V":
            expected = "an array of numbers or texts"
            raise ArgumentTypeError(message(self._function, where, expected, f"one of {array.dtype}"))
        name = ascii(where)[1:-1]
        while name in self.arrays:
            name += "'"
        if array.dtype.newbyteorder("<") in _files._SAFETENSORS_NAMES:
            self.arrays[name] = array
            return name
        self.arrays[name] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        return [name, array.dtype.str, list(array.shape)]


def _type_name(array: NdArray) -> str:
    return str(np.dtype(array.dtype)) if array.dtype != "bfloat16" else "bfloat16"


def _values(array: NdArray) -> np.ndarray:
    """The values, which keep their type and place; those in bfloat16 as float, of which it is the upper half."""
    found = array.get_data("r")
    if found.dtype.kind != "V":
        return found
    return (found.view("<u2").astype(np.uint32) << 16).view(np.float32)


def digest(array: NdArray | float) -> list[float]:
    """Three numbers, below 2**16, that stand for an array's type, shape and values, or for a number."""
    found = hashlib.blake2b(digest_size=6)
    if isinstance(array, NdArray):
        found.update(f"{_type_name(array)} {array.shape}".encode())
        found.update(np.ascontiguousarray(_values(array)).reshape(-1).view(np.uint8).data)
    else:
        found.update(repr(array).encode())
    return [float(v) for v in np.frombuffer(found.digest(), np.uint16)]


def names_number(names: Iterable[Any]) -> int:
    """The same for the same names in one order."""
    return int.from_bytes(hashlib.blake2b(repr(list(names)).encode(), digest_size=7).digest(), "big")


class _Unpacker:
    """Puts values together again; wrong ones raise any exception, which becomes a FormatError."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays

    def unpack(self, packed: Any) -> Any:
        if isinstance(packed, list):
            return [self.unpack(v) for v in packed]
        if not isinstance(packed, dict):
            return packed
        kind, of = packed["@"], packed["of"]
        if kind == "dict":
            return {key: self.unpack(v) for key, v in of.items()}
        if kind == "tuple":
            return tuple(self.unpack(v) for v in of)
        array = self._array(of)
        if kind == "NdArray":
            return NdArray._from_pickle(array, packed["type"])
        if kind == "scalar":
            return array[()]
        if kind == "array":
            return array
        raise ValueError(f"a value of the unknown kind {kind!a}")

    def _array(self, of: Any) -> np.ndarray:
        if isinstance(of, str):
            return self._arrays[of].copy()
        name, dtype, shape = of
        kind = np.dtype(dtype)
        if kind.hasobject or kind.kind == "V":
            raise ValueError(f"an array of {kind}")
        return np.frombuffer(self._arrays[name].tobytes(), kind).reshape(shape).copy()


def write(function: str, path: str, contents: Mapping[str, Any], stamp: Mapping[str, Any]) -> int:
    """Write a file.

    Args:
        function: Name of the calling function, for errors.
        path: Where to.
        contents: The values.
        stamp: Values that `read_stamp` reads without the others.

    Returns:
        The checksum.
    """
    packer = _Packer(function)
    text = json.dumps(packer.pack(contents, ""))
    tensors = [_files.raw_tensor(name, array) for name, array in packer.arrays.items()]
    checksum = _checksum(text, json.dumps(dict(stamp)), tensors)
    head = {_MARK: json.dumps({"stamp": stamp, "crc": checksum}), f"{_MARK}.values": text}
    with _files.atomic_path(path, wait_for_disk=True) as temporary:
        _core.save_safetensors(temporary, tensors, head)
    return checksum


def _checksum(text: str, stamp: str, tensors: Any) -> int:
    crc = zlib.crc32(stamp.encode(), zlib.crc32(text.encode()))
    for name, kind, shape, raw in sorted(tensors, key=lambda tensor: tensor[0]):
        crc = zlib.crc32(f"{name}:{kind}:{tuple(shape)}".encode(), crc)
        crc = zlib.crc32(raw, crc)
    return crc


def read(function: str, path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Any], int]:
    """The values of a file, its stamp and its checksum.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is damaged or of another kind.
    """
    return _files.read_whole(function, os.fspath(path), ".safetensors", _read)


def _read(function: str, path: str) -> tuple[dict[str, Any], dict[str, Any], int]:
    def told(error: Exception) -> Exception:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
        return _broken(function, path, why)

    with failures_as(told, but=(OSError, MemoryError)):
        tensors, metadata = _core.load_safetensors(path)
        head, text = json.loads(metadata[_MARK]), metadata[f"{_MARK}.values"]
        if _checksum(text, json.dumps(head["stamp"]), tensors) != head["crc"]:
            raise ValueError("its checksum is another one")
        arrays = {name: _files.array_of(name, kind, shape, raw) for name, kind, shape, raw in tensors}
        values = _Unpacker(arrays).unpack(json.loads(text))
        if not isinstance(values, dict):
            raise ValueError("it holds no dict")
        return values, head["stamp"], head["crc"]


def _broken(function: str, path: str, why: object) -> FormatError:
    return FormatError(message(function, "path", f"cannot read {path!r} as a checkpoint: {why}", hint=_HINT))


def read_stamp(function: str, path: str) -> tuple[dict[str, Any], int]:
    """The stamp of a file and its checksum, without its values (which are not proved to be whole)."""
    with failures_as(lambda error: _broken(function, path, error), but=(OSError, MemoryError)), open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        if length > min(_MOST_HEADER, os.path.getsize(path)):
            raise ValueError("its header is longer than the file")
        head = json.loads(json.loads(f.read(length))["__metadata__"][_MARK])
        return dict(head["stamp"]), int(head["crc"])
