"""Functions as messages of NNabla's files."""

from __future__ import annotations

from typing import Any

from .._errors import ArgumentError, describe, message
from .._messages import message_class
from ..core._proto_parts import _argument_field, _fill_arguments
from ..function import maker_of

__all__: list[str] = []


def _create_function_nntxt(f: Any, name: str, function: Any) -> None:
    """Put a function into a message.

    Args:
        f: A message `Function`, of nnrs or of the package protobuf.
        name: The function's name.
        function: A dict, or a `ProtoFunction`, with `type`, `inputs`, `outputs` and `args`.

    Raises:
        ValueError: If NNabla has no function of that type.

    >>> f = message_class("Function")()
    >>> given = {"type": "LeakyReLU", "inputs": ["x"], "outputs": ["y"], "args": {"alpha": 0.5, "inplace": False}}
    >>> _create_function_nntxt(f, "leaky", given)
    >>> f.name, f.leaky_relu_param.alpha
    ('leaky', 0.5)
    """
    kind = function["type"]
    if maker_of(kind) is None:
        raise ArgumentError(message("_create_function_nntxt", "function", "a type of NNabla's", describe(kind)))
    made = message_class("Function")(name=name, type=kind, input=function["inputs"], output=function["outputs"])
    field = _argument_field(kind)
    if field is not None:
        _fill_arguments(getattr(made, field), function["args"] or {})
    f.MergeFromString(made.SerializeToString())
