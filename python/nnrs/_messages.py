"""Messages of NNabla's files (`NNablaProtoBuf`, `Network`, `Executor`, ...), with the members that protobuf's have.

The fields are the core's (`_core.message_fields`), which also reads and writes bytes and text; protobuf is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, ClassVar

import numpy as np

from . import _core, _protobuf
from ._errors import ArgumentError, ArgumentTypeError, describe, is_of_user_code, message
from ._message_fields import PLAIN, FieldInfo, checked


class Repeated(list[Any]):
    """The values of a field that is a list."""

    def __init__(self, field: FieldInfo, values: Iterable[Any] = ()) -> None:
        super().__init__(values)
        self._field = field

    def add(self, **fields: Any) -> Any:
        """Append an empty message, or one with these fields, and return it."""
        if not self._field.is_message:
            raise AttributeError(f"'{self._field.name}' is a list of plain values: append them")
        made = message_class(self._field.kind)(**fields)
        super().append(made)
        return made

    def append(self, value: Any) -> None:
        """Append a value, or a message."""
        super().append(_item(self._field, value))

    def insert(self, index: Any, value: Any) -> None:
        """Insert a value, or a message, before that at `index`."""
        super().insert(index, _item(self._field, value))

    def extend(self, values: Iterable[Any]) -> None:
        """Append several values, or messages."""
        super().extend(_items(self._field, values))

    def MergeFrom(self, other: Iterable[Any]) -> None:
        """Append what another list has."""
        self.extend(other)


class MessageMap(dict[str, Any]):
    """Messages by name; one that is asked for is made."""

    def __init__(self, field: FieldInfo) -> None:
        super().__init__()
        self._entry = message_class(field.kind)
        self._make = message_class(self._entry._fields["value"].kind)

    def GetEntryClass(self) -> type[Message]:
        """The class of the messages that have a name and its message."""
        return self._entry

    def __missing__(self, key: str) -> Any:
        made = self[key] = self._make()
        return made


class _Described:
    """The attribute `DESCRIPTOR`: the class's descriptor of the package protobuf."""

    def __get__(self, instance: object, owner: type) -> Any:
        return _protobuf.descriptor(owner.__name__)


class Message:
    """A message. Fields that were not set are 0, "", False, empty lists and empty messages.

    >>> network = message_class("Network")(name="main")
    >>> network.variable.add(name="x").shape.dim.extend([16, 3])
    >>> print(network, end="")
    name: "main"
    variable {
      name: "x"
      shape {
        dim: 16
        dim: 3
      }
    }
    """

    __slots__ = ("__weakref__", "_present", "_values")
    _fields: ClassVar[dict[str, FieldInfo]]
    _values: dict[str, Any]
    _present: bool
    DESCRIPTOR = _Described()

    def __init__(self, **fields: Any) -> None:
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_present", False)
        for name, value in fields.items():
            if name not in self._fields:
                raise ArgumentError(message(type(self).__name__, name, "there is no such field"))
            if value is not None:
                self._put(name, value)

    @classmethod
    def _of(cls, values: dict[str, Any]) -> Message:
        """The message of a dict as the core gives it."""
        made = cls()
        for name, value in values.items():
            made._values[name] = _from_core(cls._fields[name], value)
        object.__setattr__(made, "_present", True)
        return made

    def _dict(self) -> dict[str, Any]:
        """What is set, as the core takes it."""
        self._settle()
        set_ = ((name, value) for name, value in self._values.items() if _is_set(value))
        return {name: _to_core(self._fields[name], value) for name, value in set_}

    def _field(self, name: str) -> FieldInfo:
        if name not in self._fields:
            raise AttributeError(f"'{type(self).__name__}' has no field '{name}'")
        return self._fields[name]

    def __getattr__(self, name: str) -> Any:
        field = self._field(name)
        if field.one_of:
            self._settle()
            if name in self._values:  # if it gets set now, it is the last one
                self._values[name] = self._values.pop(name)
        value = self._values.get(name)
        if isinstance(value, np.ndarray):
            value = self._values[name] = Repeated(field, value.tolist())
        if value is not None:
            return value
        if not field.repeated and not field.is_message:
            return PLAIN[field.kind]
        made: Any = (
            MessageMap(field) if field.is_map else Repeated(field) if field.repeated else message_class(field.kind)()
        )
        self._values[name] = made
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        field = self._field(name)
        if field.repeated or field.is_message:
            kind = "list" if field.repeated else "message"
            raise AttributeError(f"'{name}' is a {kind}, which is changed in place (extend, CopyFrom), not assigned")
        self._values[name] = checked(type(self).__name__, field, value)

    def _settle(self) -> None:
        """Of the fields of which a message has one, keep the last that was set."""
        several = [name for name, value in self._values.items() if self._fields[name].one_of and _is_set(value)]
        for name in several[:-1]:
            del self._values[name]

    def _put(self, name: str, value: Any) -> None:
        field = self._field(name)
        if field.is_map:
            for key, inner in value.items():
                getattr(self, name)[key].CopyFrom(inner)
        elif field.repeated:
            getattr(self, name).extend(value)
        elif field.is_message:
            getattr(self, name).CopyFrom(_item(field, value))
        else:
            setattr(self, name, value)

    def HasField(self, name: str) -> bool:
        """Whether a field is set; of a message, whether anything in it was."""
        self._field(name)
        self._settle()
        return _is_set(self._values.get(name))

    def ClearField(self, name: str) -> None:
        """Make a field what it is in a new message."""
        self._field(name)
        self._values.pop(name, None)

    def Clear(self) -> None:
        """Make all fields what they are in a new message."""
        self._values.clear()

    def SetInParent(self) -> None:
        """Count as set, even when empty."""
        object.__setattr__(self, "_present", True)

    def WhichOneof(self, group: str) -> str | None:
        """The field that is set of those of which a message has one."""
        if group != "parameter":
            raise ArgumentError(message("WhichOneof", "group", "'parameter'", describe(group)))
        self._settle()
        found = (name for name, value in self._values.items() if self._fields[name].one_of and _is_set(value))
        return next(found, None)

    def ListFields(self) -> list[tuple[Any, Any]]:
        """All fields that are set, with their values, by number. With the package protobuf its descriptors of them."""
        self._settle()
        names = [name for name in self._fields if _is_set(self._values.get(name))]
        about: Any = _protobuf.field_descriptors(type(self).__name__) or self._fields
        return [(about[name], getattr(self, name)) for name in names]

    def ByteSize(self) -> int:
        """How many bytes `SerializeToString` gives."""
        return len(self.SerializeToString())

    def IsInitialized(self) -> bool:
        """Whether nothing is missing that must be there: always, as nothing must."""
        return True

    def MergeFrom(self, other: Message) -> None:
        """Take over what another message of this kind has; lists grow."""
        self._check_kind("MergeFrom", other)
        self.MergeFromString(other.SerializeToString())

    def CopyFrom(self, other: Message) -> None:
        """Become like another message of this kind."""
        self._check_kind("CopyFrom", other)
        copy = type(self)._of(_copied(other._dict()))
        object.__setattr__(self, "_values", copy._values)
        self.SetInParent()

    def _check_kind(self, function: str, other: Any) -> None:
        if type(other) is not type(self):
            raise ArgumentTypeError(message(function, "other", f"a message '{type(self).__name__}'", describe(other)))

    def SerializeToString(self) -> bytes:
        """The message as protobuf's bytes."""
        return _core.encode_message(type(self).__name__, self._dict())

    SerializePartialToString = SerializeToString

    def FindInitializationErrors(self) -> list[str]:
        """What is missing that must be there: nothing."""
        return []

    def MergeFromString(self, serialized: bytes) -> int:
        """Take over what is in protobuf's bytes; returns how many there were."""
        name = type(self).__name__
        both = self.SerializeToString() + bytes(serialized)
        merged = type(self)._of(_core.decode_message(name, both))
        object.__setattr__(self, "_values", merged._values)
        self.SetInParent()
        return len(serialized)

    def ParseFromString(self, serialized: bytes) -> int:
        """Become what is in protobuf's bytes."""
        self.Clear()
        return self.MergeFromString(serialized)

    @classmethod
    def FromString(cls, serialized: bytes) -> Message:
        """The message of protobuf's bytes."""
        made = cls()
        made.MergeFromString(serialized)
        return made

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, Message):
            return NotImplemented
        return self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return _core.print_message(type(self).__name__, self._dict())

    __repr__ = __str__

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_bytes, (type(self).__name__, self.SerializeToString())

    def __deepcopy__(self, memo: Any) -> Message:
        return type(self)._of(_copied(self._dict()))

    def __dir__(self) -> Iterator[str]:
        yield from object.__dir__(self)
        yield from self._fields


def _from_bytes(name: str, serialized: bytes) -> Message:
    return message_class(name).FromString(serialized)


@cache
def message_class(name: str) -> type[Message]:
    """The class of the messages of this name.

    Raises:
        ValueError: If NNabla's files have no such message.
    """
    fields = [FieldInfo(*field) for field in _core.message_fields(name)]
    numbers = {f"{f.name.upper()}_FIELD_NUMBER": f.number for f in fields}
    members = numbers | {
        "__slots__": (),
        "_fields": {f.name: f for f in fields},
        "__doc__": f"NNabla's message `{name}`.",
    }
    return type(name, (Message,), members)


def parse_text(name: str, text: str) -> Message:
    """The message of this name in protobuf's text format.

    >>> parse_text("Network", "name: 'main'").name
    'main'
    """
    return message_class(name)._of(_core.parse_message(name, text))


def _is_set(value: Any) -> bool:
    if isinstance(value, Message):
        return value._present or any(_is_set(v) for v in value._values.values())
    if isinstance(value, (list, dict, np.ndarray)):
        return len(value) > 0
    return value is not None


def _from_core(field: FieldInfo, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value
    if field.is_map:
        made = MessageMap(field)
        for entry in value:
            made[entry.get("key", "")] = made._make._of(entry.get("value", {}))
        return made
    if field.repeated:
        return Repeated(field, (message_class(field.kind)._of(v) for v in value) if field.is_message else value)
    return message_class(field.kind)._of(value) if field.is_message else value


def _to_core(field: FieldInfo, value: Any) -> Any:
    if field.is_map:
        return [{"key": key, "value": v._dict()} for key, v in value.items()]
    if field.is_message:
        return [v._dict() for v in value] if field.repeated else value._dict()
    return value


def _copied(value: Any) -> Any:
    """A copy of a dict of the core's, but for its texts and numbers."""
    if isinstance(value, dict):
        return {key: _copied(v) for key, v in value.items()}
    return [_copied(v) for v in value] if isinstance(value, list) else value


def _item(field: FieldInfo, value: Any) -> Any:
    """An element of a list, or a message of a field: a message may be given as a dict."""
    if not field.is_message:
        return checked(field.name, field, value)
    kind = message_class(field.kind)
    if isinstance(value, dict):
        return kind(**value)
    if not isinstance(value, kind):
        raise ArgumentTypeError(message(field.name, None, f"expected a message '{field.kind}', got {describe(value)}"))
    return value


def _items(field: FieldInfo, values: Iterable[Any]) -> Iterable[Any]:
    """Elements of a list. Floats are many: they are converted at once."""
    if field.kind == "float" and isinstance(values, (list, tuple, np.ndarray)):
        try:
            with np.errstate(over="ignore"):
                numbers = np.asarray(values, np.float32)
        except (TypeError, ValueError) as error:
            if is_of_user_code(error):
                raise
            raise ArgumentTypeError(message(field.name, None, "expected numbers, got something else")) from None
        if numbers.ndim != 1:
            raise ArgumentError(message(field.name, None, f"expected numbers in a row, got an array {numbers.shape}"))
        return numbers.tolist()  # type: ignore[no-any-return]
    return [_item(field, value) for value in values]
