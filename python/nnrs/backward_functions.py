"""Gradient rules for `nn.grad`: the gradient of a function as a graph of other functions.

nnrs knows the rules of its own functions. Register one for a `PythonFunction`, or in place of an own one. A rule that
is built of differentiable functions gives derivatives of any order. `Variable.backward` does not use these rules.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from ._core import Variable
from ._errors import ArgumentTypeError, describe, message
from ._missing import missing_name

Rule = Callable[..., Variable | Sequence[Variable | None] | None]


def _own_rule(class_name: str, name: str, argument_names: list[str]) -> Rule:
    """The rule that comes with a function, as one that can be registered is called."""
    here = f"{name}_backward"

    def rule(
        grad_inputs: Sequence[Variable],
        inputs: Sequence[Variable | None],
        input_shapes: Sequence[tuple[int, ...]],
        outputs: Sequence[Variable | None],
        output_shapes: Sequence[tuple[int, ...]],
        *given: Any,
        **arguments: Any,
    ) -> Any:
        if len(given) > len(argument_names):
            expected = f"at most {len(argument_names)} arguments of the function, {argument_names}"
            raise ArgumentTypeError(message(here, None, f"expected {expected}, got {len(given)}"))
        for argument, value in zip(argument_names, given, strict=False):
            if argument in arguments:
                raise ArgumentTypeError(message(here, argument, "one value", "one by position and one by keyword"))
            arguments[argument] = value
        x = [Variable(s) if v is None else v for v, s in zip(inputs, input_shapes, strict=True)]
        made = _core.own_rule(class_name, list(grad_inputs), x, list(outputs), arguments)
        return made[0] if len(made) == 1 else tuple(made)

    rule.__name__ = rule.__qualname__ = here
    rule.__doc__ = f"The gradient rule of `nnrs.functions.{name}`."
    return rule


_CLASS_NAMES: dict[str, str] = {entry["name"]: entry["class_name"] for entry in _core.registry()}
_OWN: dict[str, Rule] = {
    entry["class_name"]: _own_rule(entry["class_name"], entry["name"], [argument for argument, *_ in entry["args"]])
    for entry in _core.registry()
}


class _Registry(UserDict[str, Rule]):
    """Rules by the names of their functions; the engine hears of those that are not its own."""

    def __setitem__(self, name: str, rule: Rule) -> None:
        if not callable(rule):
            raise ArgumentTypeError(message("register", "func", "a function", describe(rule)))
        if rule is _OWN.get(name):
            _core.unregister_rule(name)
        else:
            _core.register_rule(name, rule)
        super().__setitem__(name, rule)

    def __delitem__(self, name: str) -> None:
        """The own rule, where there is one, takes the place of what is deleted."""
        if self[name] is _OWN.get(name):
            raise KeyError(name)
        if name in _OWN:
            self[name] = _OWN[name]
        else:
            _core.unregister_rule(name)
            super().__delitem__(name)


registry = _Registry(_OWN)
"""The rules by the class names of their functions ("Affine"): their own ones, and those that are registered.

Each is called as `register` says. An own rule may be called from one that is registered in its place.

>>> import nnrs as nn
>>> x, g = nn.Variable.from_numpy_array([2.0]), nn.Variable.from_numpy_array([3.0])
>>> gx = registry["PowScalar"]([g], [x], [x.shape], [None], [(1,)], val=2)
>>> gx.forward()
>>> gx.d.tolist()
[12.0]
"""


def __getattr__(name: str) -> Any:
    if (function := name.removesuffix("_backward")) != name and function in _CLASS_NAMES:
        return _OWN[_CLASS_NAMES[function]]
    raise missing_name(__name__, name)


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
    registry[func_name] = func


def unregister(func_name: str) -> None:
    """Take the rule registered for a name away; the function's own one is used again, if it has one.

    Raises:
        KeyError: No rule is registered for that name.
    """
    del registry[func_name]


def show_registry() -> None:
    """Print the names of all functions that have a gradient rule, and the rules."""
    for name, rule in registry.items():
        print(name, rule)
