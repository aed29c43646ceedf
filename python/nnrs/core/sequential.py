"""`Sequential`: modules one after the other."""

from __future__ import annotations

from typing import Any

from .._errors import ArgumentError, ArgumentTypeError, describe, message
from .module import Module, snake_case

__all__ = ["Sequential"]


class Sequential(Module):
    """A chain of modules: each is called with what the one before gave.

    Args:
        *args: Modules, or pairs of a name and a module. Without a name it is the class's and the position.
        **kwargs: Not used; NNabla's.

    >>> import nnrs as nn
    >>> class Double(nn.Module):
    ...     def call(self, x):
    ...         return x * 2
    >>> net = nn.Sequential(Double(), ("last", Double()))
    >>> list(net.submodules)
    ['double_0', 'last']
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del kwargs
        for i, entry in enumerate(args):
            pair = isinstance(entry, tuple) and len(entry) == 2
            module = entry[1] if pair else entry
            if not isinstance(module, Module):
                expected = "Modules, or pairs of a name and a Module"
                raise ArgumentTypeError(message("Sequential", f"args[{i}]", expected, describe(entry)))
            setattr(self, entry[0] if pair else f"{snake_case(type(module).__name__)}_{i}", module)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The first module on the arguments, each other one on the result so far, a tuple as its arguments.

        Raises:
            ValueError: If there is no module.
        """
        if not len(self):
            raise ArgumentError(message("Sequential", "args", "there is no module to call"))
        first, *others = self.submodules.values()
        result = first(*args, **kwargs)
        for module in others:
            result = module(*result) if isinstance(result, tuple) else module(result)
        return result
