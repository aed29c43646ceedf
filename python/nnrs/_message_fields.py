"""Fields of the messages of NNabla's files, and what they hold."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _protobuf
from ._errors import ArgumentError, ArgumentTypeError, describe, is_of_user_code, message


class FieldInfo(NamedTuple):
    """What a field holds: "int", "float", "flag", "text" or the name of a message."""

    number: int
    name: str
    kind: str
    repeated: bool
    one_of: bool

    @property
    def is_message(self) -> bool:
        return self.kind not in PLAIN

    @property
    def is_map(self) -> bool:
        return self.kind.endswith("Entry")


PLAIN: dict[str, Any] = {"int": 0, "float": 0.0, "flag": False, "text": ""}


def checked(name: str, field: FieldInfo, value: Any) -> Any:
    """A value as the field holds it."""
    if field.kind == "text":
        if isinstance(value, bytes):
            value = value.decode()
        if not isinstance(value, str):
            raise ArgumentTypeError(message(name, field.name, "str", describe(value)))
        return value
    try:
        if field.kind == "int":
            number = int(value)
            if isinstance(value, (float, np.floating)) and number != value:
                raise ValueError
            if not -(2**63) <= number < 2**63:
                raise OverflowError
            return number
        if field.kind == "flag":
            return bool(value)
        is_double = _protobuf.number_kind(name, field.name, field.kind) == "double"
        return float(value) if is_double else float(np.float32(value))
    except OverflowError as error:
        if is_of_user_code(error):
            raise
        raise ArgumentError(message(name, field.name, "a number of 64 bits", describe(value))) from None
    except (TypeError, ValueError) as error:
        if is_of_user_code(error):
            raise
        raise ArgumentTypeError(message(name, field.name, field.kind, describe(value))) from None
