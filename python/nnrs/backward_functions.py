"""Gradient rules for `nn.grad`: the gradient of a function as a graph of other functions.

nnrs knows the rules of its own functions. Register one for a `PythonFunction`, or in place of an own one. A rule that
is built of differentiable functions gives derivatives of any order. `Variable.backward` does not use these rules.
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Sequence
from typing import Any

from . import _core
from ._core import Variable
from ._errors import ArgumentTypeError, describe, message
from ._gradient_rules import ARGUMENT_NAMES, CLASS_NAMES, OTHERS, gradient_rules, named
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
        arguments = named(here, argument_names, given, arguments)
        x = [Variable(s) if v is None else v for v, s in zip(inputs, input_shapes, strict=True)]
        made = _core.own_rule(class_name, list(grad_inputs), x, list(outputs), arguments)
        return made[0] if len(made) == 1 else tuple(made)

    rule.__name__ = rule.__qualname__ = here
    rule.__doc__ = f"The gradient rule of `nnrs.functions.{name}`."
    return rule


_OWN: dict[str, Rule] = {
    class_name: _own_rule(class_name, name, ARGUMENT_NAMES[name]) for name, class_name in CLASS_NAMES.items()
}
# Those that nnrs does not use itself, and that are called by their names alone.
_FURTHER: dict[str, Rule] = {**gradient_rules(), **OTHERS}


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


def _names_of(module: str) -> list[str]:
    """The rules of a module of `nnrs.backward_function`: that of its function, and those of this one's gradients."""
    own = [f"{module}_backward"] if module in CLASS_NAMES else []
    return own + [
        f"{name}_backward" for name in _FURTHER if re.fullmatch(f"{module}(_data_grad|_filter_grad|_backward)?", name)
    ]


def __getattr__(name: str) -> Any:
    if (function := name.removesuffix("_backward")) != name:
        if function in CLASS_NAMES:
            return _OWN[CLASS_NAMES[function]]
        if function in _FURTHER:
            return _FURTHER[function]
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
