"""Members of Variable and NdArray that are written in Python: filling by a mask, networks without gradients."""

from __future__ import annotations

from typing import Any

from . import _core
from ._core import NdArray, Variable
from ._errors import ArgumentTypeError, check_type, describe, message
from ._modes import no_grad as no_grad_scope


def bool_fill(x: Any, mask: Any, value: Any) -> Any:
    """Fill the memory of x with `value` where `mask` is not zero, when the result is computed.

    Args:
        x: Variable or NdArray.
        mask: Variable, NdArray or NumPy array of a shape that broadcasts to x's.
        value: Number.

    Returns:
        A Variable over the memory of x, whose own place in the graph stays; x itself if it is an NdArray.
    """
    from . import functions as F

    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(message("bool_fill", "value", "a number", describe(value))) from None
    if isinstance(x, NdArray):
        return F.bool_fill(x, as_array(mask), number, outputs=[x])
    return F.bool_fill(x, as_variable(mask), number, outputs=[x._raw_data().view(x.shape)])


def replace(x: Variable, new: Variable) -> None:
    """Give x the value `new`, which was computed from it: whatever reads x sees the new value."""
    if new.parent is not None:
        x._supersede(new)
    else:  # computed at once, without history
        x.parent = None
        x.data = new.data


def as_variable(a: Any) -> Variable:
    """`a` as a Variable: itself, one over an NdArray's memory, or a constant."""
    if isinstance(a, Variable):
        return a
    if isinstance(a, NdArray):
        v = Variable(a.shape, need_grad=False)
        v.data = a
        return v
    return Variable.from_numpy_array(a, need_grad=False)


def as_array(a: Any) -> NdArray:
    """`a` as an NdArray."""
    if isinstance(a, (Variable, NdArray)):
        return a if isinstance(a, NdArray) else a.data
    return NdArray.from_numpy_array(a)


def no_grad(y: Variable) -> Variable:
    """The network that computes y, built again under `nnrs.no_grad`: its parameters are there, but need no gradient.

    Args:
        y: Variable; its own network stays as it is.
    """
    from .parameter import get_parameters

    check_type("no_grad", "y", y, Variable, "a Variable")
    parameters = set(get_parameters(grad_only=False).values())
    made: dict[Any, Variable] = {}

    def copied(v: Variable) -> Variable:
        if v.parent is not None:
            return made[(v.parent, v)]
        return v.get_unlinked_variable(need_grad=False) if v in parameters else v

    def again(f: Any) -> None:
        outputs = _core.apply_again(f, [copied(v) for v in f.inputs])
        made.update({(f, old): new for old, new in zip(f.outputs, outputs, strict=True)})

    if y.parent is None:
        return y.get_unlinked_variable(need_grad=False if y in parameters else None)
    with no_grad_scope():
        y.visit(again)
    return copied(y)
