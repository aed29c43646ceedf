"""Gradient rules for `nn.grad`: the gradient of a function as a graph of other functions.

nnrs knows the rules of its own functions. Register one for a `PythonFunction`, or in place of an own one. A rule that
is built of differentiable functions gives derivatives of any order. `Variable.backward` does not use these rules.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from ._core import Variable
from ._errors import ArgumentTypeError, describe, message

Rule = Callable[..., Variable | Sequence[Variable | None] | None]

# The registered rules, by the names of their functions.
registry: OrderedDict[str, Rule] = OrderedDict()


def register(func_name: str, func: Rule) -> None:
    """Let `nn.grad` use a rule for the functions of a name.

    Args:
        func_name: The name of the function: `name` of a PythonFunction, or NNabla's class name ("Affine").
        func: The rule, called as `func(grad_inputs, inputs, input_shapes, outputs, output_shapes, **arguments)`:
            the gradients of the outputs, the inputs and outputs as Variables (None where a PythonFunction says that its
            gradient does not read them), their shapes, and the arguments of the function. It gives the gradient of
            each input: one Variable, or a tuple with one Variable or None for each input.

    >>> import nnrs as nn, nnrs.functions as F
    >>> def straight_through(grad_inputs, inputs, input_shapes, outputs, output_shapes, **arguments):
    ...     return grad_inputs[0]
    >>> register("Round", straight_through)
    >>> x = nn.Variable.from_numpy_array([0.4, 1.6], need_grad=True)
    >>> (g,) = nn.grad(F.round(x) * 3.0, [x])
    >>> g.forward()
    >>> g.d.tolist()
    [3.0, 3.0]
    >>> unregister("Round")
    """
    if not callable(func):
        raise ArgumentTypeError(message("register", "func", "a function", describe(func)))
    _core.register_rule(func_name, func)
    registry[func_name] = func


def unregister(func_name: str) -> None:
    """Take the rule registered for a name away; the function's own one is used again, if it has one.

    Raises:
        KeyError: No rule is registered for that name.
    """
    del registry[func_name]
    _core.unregister_rule(func_name)


def show_registry() -> None:
    """Print the names of all functions that have a gradient rule, and the rules that were registered."""
    for name, rule in _rules().items():
        print(name, rule)


def _rules() -> dict[str, Any]:
    """The own rules by name, then the registered ones, which hide them."""
    own: dict[str, Any] = {entry["class_name"]: "(own rule)" for entry in _core.registry()}
    return own | registry
