"""The messages of NNabla's files as descriptors of the package protobuf, for its `text_format` and `json_format`.

These go by a message's `DESCRIPTOR` and its members, which ours have: so they read and write `_messages.Message`. The
descriptors are made of the core's table when one is asked for, in a pool of their own: NNabla's may be there, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from . import _core
from ._errors import Error, MissingPackageError, message

_FIXED_64 = 1  # protobuf's way to write doubles


@cache
def number_kind(message_name: str, field: str, kind: str) -> str:
    """What numbers a field holds: "double" or "float", "int" (64 bits) or "count" (32 bits without a sign).

    The core says it by how it writes them.

    >>> number_kind("ELUParameter", "alpha", "float"), number_kind("SgdParameter", "lr", "float")
    ('double', 'float')
    """
    try:
        written = _written(message_name, field, -1.0 if kind == "float" else -1)
    except Error:
        return "count"
    return "double" if kind == "float" and written[0] & 7 == _FIXED_64 else kind


def _written(message_name: str, field: str, value: Any) -> bytes:
    repeated = next(f[3] for f in _core.message_fields(message_name) if f[1] == field)
    return _core.encode_message(message_name, {field: [value] if repeated else value})


@cache
def descriptor(name: str) -> Any:
    """The descriptor of a message.

    Raises:
        ImportError: If the package protobuf is not installed.
    """
    return _descriptors()[name]


@cache
def file_descriptor() -> Any:
    """The descriptor of all messages together, `nnabla.proto`."""
    return descriptor("NNablaProtoBuf").file


def field_descriptors(name: str) -> dict[str, Any] | None:
    """The descriptors of a message's fields by name; None without the package protobuf."""
    try:
        return dict(descriptor(name).fields_by_name)
    except MissingPackageError:
        return None


@cache
def _descriptors() -> dict[str, Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool
    except ImportError as error:
        text = message("DESCRIPTOR", None, "this needs the package protobuf", hint="pip install 'nnrs[protobuf]'")
        raise MissingPackageError(text) from error
    file = descriptor_pb2.FileDescriptorProto(name="nnabla.proto", syntax="proto3")
    for name in _core.message_names():
        if not name.endswith("Entry"):
            _fill(file.message_type.add(name=name), name)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    top = dict(pool.FindFileByName("nnabla.proto").message_types_by_name)
    return top | {inner.name: inner for outer in top.values() for inner in outer.nested_types}


def _fill(to: Any, name: str) -> None:
    """Put a message's fields into protobuf's message about it."""
    for number, field, kind, repeated, one_of in _core.message_fields(name):
        made = to.field.add(name=field, number=number, label=3 if repeated else 1, type=_type(name, field, kind))
        if one_of:
            if not to.oneof_decl:
                to.oneof_decl.add(name="parameter")
            made.oneof_index = 0
        if kind.endswith("Entry"):
            made.type_name = f".{name}.{kind}"
            entry = to.nested_type.add(name=kind)
            entry.options.map_entry = True
            _fill(entry, kind)
        elif made.type == made.TYPE_MESSAGE:
            made.type_name = f".{kind}"


_TYPES = {"double": 1, "float": 2, "int": 3, "flag": 8, "text": 9, "count": 13}
_MESSAGE = 11


def _type(name: str, field: str, kind: str) -> int:
    return _TYPES.get(number_kind(name, field, kind) if kind in ("int", "float") else kind, _MESSAGE)


def names() -> Iterator[str]:
    """The names of all messages, but for entries of maps."""
    return (name for name in _core.message_names() if not name.endswith("Entry"))
