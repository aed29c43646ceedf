"""Functions of messages of NNabla's files."""

from __future__ import annotations

from typing import Any

from .. import function as functions
from .._core import Context
from .._errors import ArgumentError, check_type, describe, message
from .._messages import message_class
from ..core._proto_parts import _arguments_of

__all__: list[str] = []


def _create_function_instance(ctx: Context, f: Any) -> functions.FunctionCall:
    """The function of a message, to be called with its inputs.

    Args:
        ctx: The context that it runs in.
        f: A message `Function`, of nnrs or of the package protobuf.

    Raises:
        ValueError: If NNabla has no function of that type.

    >>> import nnrs as nn
    >>> f = message_class("Function")(type="LeakyReLU")
    >>> f.leaky_relu_param.alpha = 0.5
    >>> y = _create_function_instance(nn.get_current_context(), f)(nn.Variable.from_numpy_array([-2.0, 2.0]))
    >>> y.forward()
    >>> y.d.tolist()
    [-1.0, 2.0]
    """
    here = "_create_function_instance"
    check_type(here, "ctx", ctx, Context, "a Context")
    own = message_class("Function").FromString(f.SerializeToString())
    maker = functions.maker_of(own.type)
    if maker is None:
        raise ArgumentError(message(here, "f", "a function of a type of NNabla's", describe(own.type)))
    return maker(ctx, **_arguments_of(own))
