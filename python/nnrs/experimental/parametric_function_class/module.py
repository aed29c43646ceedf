"""`Module`: what layers and networks as objects have in common, names and files of their parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from ... import parameter
from ..._core import Variable
from ..._errors import ArgumentError, ShapeError, describe, message

__all__ = ["Module"]


def _initial(function: str, argument: str, initializer: Any, usual: Any, shape: tuple[int, ...]) -> Variable:
    """A variable with the values of an initializer or array, or where that is None of the usual initializer."""
    if not parameter._is_initializer(initializer):
        expected = "a callable that takes a shape (see nnrs.initializer), or a NumPy array"
        raise ArgumentError(message(function, argument, expected, describe(initializer)))
    v: Variable = parameter._initial(usual if initializer is None else initializer, shape)
    if v.shape != shape:
        raise ShapeError(message(function, argument, f"values of shape {shape}", v.shape))
    return v


class Module:
    """Base of networks: its parameters are the Variables among its attributes, and those of Modules among them.

    >>> import nnrs as nn
    >>> from nnrs.experimental.parametric_function_class.affine import Affine
    >>> class Net(Module):
    ...     def __init__(self):
    ...         self.fc1, self.fc2 = Affine(3, 5), Affine(5, 2)
    ...     def __call__(self, x):
    ...         return self.fc2(self.fc1(x))
    >>> net = Net()
    >>> net(nn.Variable((4, 3))).shape
    (4, 2)
    >>> list(net.get_parameters())
    ['fc1/W', 'fc1/b', 'fc2/W', 'fc2/b']
    """

    def __init__(self) -> None:
        """A module without parameters."""

    def _variables(self) -> Iterator[tuple[str, Variable]]:
        for prefix, module in self.get_modules():
            yield from ((f"{prefix}/{k}", v) for k, v in vars(module).items() if isinstance(v, Variable))

    def get_parameters(self, grad_only: bool = True) -> OrderedDict[str, Variable]:
        """The parameters by name, which is the way to them: "conv/W" is `module.conv.W`, and "/W" is `module.W`.

        Args:
            grad_only: Leave out those with `need_grad=False`.
        """
        return OrderedDict((name, v) for name, v in self._variables() if v.need_grad or not grad_only)

    def get_modules(self, memo: set[Any] | None = None, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and those within it, each once, with the way to it as its name.

        Args:
            memo: Modules that are left out; those that are found come to it.
            prefix: The name of this one.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in list(vars(self).items()):
            if isinstance(module, Module):
                yield from module.get_modules(memo, f"{prefix}/{name}" if prefix else name)

    def save_parameters(self, path: Any, grad_only: bool = False) -> None:
        """Save the parameters to a file, as `nnrs.save_parameters` does.

        Args:
            path: Where to.
            grad_only: Leave out those with `need_grad=False`.
        """
        parameter.save_parameters(path, self.get_parameters(grad_only=grad_only))

    def load_parameters(self, path: Any) -> None:
        """Set the parameters to those of a file. The global ones stay as they are.

        Args:
            path: The file, which may have others too.

        Raises:
            ValueError: If one is not in the file or has another shape there; then all stay as they were.
        """
        with parameter.parameter_scope("", scope=OrderedDict()):
            parameter.load_parameters(path)
            there = parameter.get_parameters(grad_only=False)
        found = [(v, self._of_file(there, name, v, path)) for name, v in self._variables()]
        for v, saved in found:
            v.d = saved.d

    @staticmethod
    def _of_file(there: dict[str, Variable], name: str, v: Variable, path: Any) -> Variable:
        saved = there.get(name.strip("/"))
        if saved is None:
            raise ArgumentError(message("load_parameters", "path", f"a file with the parameter '{name}'", path))
        if saved.shape != v.shape:
            expected = f"a file with the parameter '{name}' of shape {v.shape}"
            raise ShapeError(message("load_parameters", "path", expected, saved.shape))
        return saved
