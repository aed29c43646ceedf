"""Networks as objects: a `Module` has parameters of its own, apart from the global ones, and modules within it."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from .. import _files, parameter
from .._borrowed import borrower
from .._core import Variable
from .._errors import ArgumentError, check_type, message
from .._notebooks import ParameterDict

__all__ = ["MetaClass", "Module", "ParamMemo", "insert_parent_name"]

__getattr__ = borrower(__name__)

# Methods that Python calls for the object's sake.
_AS_THEY_ARE = ("__getattribute__", "__getattr__", "__setattr__", "__delattr__", "__del__")


def _in_scope(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with the module's own parameters, whatever the scope is that it is called in."""

    @functools.wraps(method)
    def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
        with parameter.parameter_scope("", scope=self.parameter_scope):
            return method(self, *args, **kwargs)

    return scoped


class MetaClass(type):
    """Wraps the methods of classes that have a base: they run with the instance's own parameters, in `parameter_scope`.

    `Module` does the same for its subclasses without a metaclass, so that they go together with `abc.ABC` and others.

    >>> class Holder:
    ...     parameter_scope = OrderedDict()
    >>> class Doubled(Holder, metaclass=MetaClass):
    ...     def make(self):
    ...         return list(parameter.get_parameters())
    >>> Doubled().make()
    []
    """

    def __new__(meta, classname: str, bases: tuple[type, ...], class_dict: dict[str, Any], **kwargs: Any) -> Any:
        if bases and not any(issubclass(base, Module) for base in bases):
            class_dict = {name: _wrapped(name, member) for name, member in class_dict.items()}
        return super().__new__(meta, classname, bases, class_dict, **kwargs)

    @staticmethod
    def method_wrapper(method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that runs with the parameters of the object that it is called on.

        Args:
            method: Function whose first argument has a `parameter_scope`.
        """
        return _in_scope(method)


def _wrapped(name: str, member: Any) -> Any:
    return _in_scope(member) if isinstance(member, FunctionType) and name not in _AS_THEY_ARE else member


class ParamMemo:
    """Remembers parameters, so that each is listed once.

    >>> memo = ParamMemo()
    >>> w = Variable((2,))
    >>> list(memo.filter_and_update({"w": w})), list(memo.filter_and_update({"again": w}))
    (['w'], [])
    """

    def __init__(self) -> None:
        self._memo: set[Any] = set()

    def filter_and_update(self, params: Mapping[str, Any]) -> OrderedDict[str, Any]:
        """The parameters that were not given before.

        Args:
            params: Parameters by name.
        """
        found: OrderedDict[str, Any] = OrderedDict()
        for name, v in params.items():
            if v not in self._memo:
                self._memo.add(v)
                found[name] = v
        return found


def insert_parent_name(name: str, params: Mapping[str, Any]) -> OrderedDict[str, Any]:
    """Parameters under the names that they have in the module around.

    Args:
        name: The attribute of the module around.
        params: Parameters by name.

    >>> list(insert_parent_name("conv", {"W": None}))
    ['@conv/W']
    """
    return OrderedDict((f"@{name}/{key}", v) for key, v in params.items())


class Module:
    """Base of networks: subclasses give `call`, which makes the graph.

    The parameters that its methods make, `__init__` among them, belong to the module. Modules that are its attributes
    have theirs under "@attribute"; `__init__` need not call this class's.

    >>> import nnrs as nn
    >>> import nnrs.parametric_functions as PF
    >>> class Block(nn.Module):
    ...     def call(self, x):
    ...         return PF.affine(x, 2)
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         self.block = Block()
    ...     def call(self, x):
    ...         return PF.affine(self.block(x), 1, name="out")
    >>> net = Net()
    >>> net(nn.Variable((4, 3))).shape
    (4, 1)
    >>> list(net.get_parameters())
    ['@block/affine/W', '@block/affine/b', 'out/affine/W', 'out/affine/b']
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, member in list(vars(cls).items()):
            wrapped = _wrapped(name, member)
            if wrapped is not member:
                setattr(cls, name, wrapped)

    def __repr__(self) -> str:
        return type(self).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the graph: `call` with this module's parameters."""
        with self._described(args, kwargs), parameter.parameter_scope("", scope=self.parameter_scope):
            return self.call(*args, **kwargs)

    def _described(self, args: Any, kwargs: Any) -> Any:
        """Where the call has ProtoVariables, the place in the network that is being described."""
        graph_def = sys.modules.get("nnrs.core.graph_def")  # without it there are none
        if graph_def is None or not any(isinstance(x, graph_def.ProtoVariable) for x in (*args, *kwargs.values())):
            return contextlib.nullcontext()
        return graph_def.module_scope(graph_def.current_graph_builder(), self)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """The network; subclasses give it.

        Args:
            *args: What the module is called with.
            **kwargs: What the module is called with.

        Raises:
            NotImplementedError: If the subclass does not.
        """
        raise NotImplementedError(f"{type(self).__name__}.call is missing: it makes the network's graph")

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Module):
            self.__dict__.pop(name, None)
            self.submodules[name] = value  # in the old one's place, if there was one
            value.__dict__["_parent"] = self
        else:
            self.submodules.pop(name, None)
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        found = self.__dict__.get("_submodules", {}).get(name)
        if found is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return found

    def __delattr__(self, name: str) -> None:
        if self.submodules.pop(name, None) is None:
            object.__delattr__(self, name)

    def __len__(self) -> int:
        """Number of the modules within this one."""
        return len(self.submodules)

    def __bool__(self) -> bool:
        return True

    @property
    def submodules(self) -> OrderedDict[str, Module]:
        """The modules within this one, by attribute."""
        inner: OrderedDict[str, Module] = self.__dict__.setdefault("_submodules", OrderedDict())
        return inner

    @property
    def parameter_scope(self) -> OrderedDict[str, Any]:
        """The module's own parameters: a dict of Variables and inner scopes."""
        scope: OrderedDict[str, Any] = self.__dict__.setdefault("_parameter_scope", OrderedDict())
        return scope

    @property
    def parent(self) -> Module | None:
        """The module that this one is an attribute of."""
        return self.__dict__.get("_parent")

    @property
    def name(self) -> str:
        """The attribute's name, or the class's in lower case; another one may be set."""
        if "_name" in self.__dict__:
            return str(self.__dict__["_name"])
        own = [key for key, m in self.parent.submodules.items() if m is self] if self.parent is not None else []
        return own[-1] if own else snake_case(type(self).__name__)

    @name.setter
    def name(self, value: str) -> None:
        self.__dict__["_name"] = value

    @property
    def training(self) -> bool:
        """Whether `call` shall make the graph for training. Setting it sets it for all modules within."""
        return bool(self.__dict__.get("_training", True))

    @training.setter
    def training(self, value: bool) -> None:
        self.__dict__["_training"] = bool(value)
        for m in self.submodules.values():
            m.training = value

    def is_root(self) -> bool:
        """True if the module is no other module's attribute."""
        return self.parent is None

    def get_scope_name(self) -> str:
        """The module's part of its parameters' names: "@name"."""
        return f"@{self.name}"

    def get_path_name(self) -> str:
        """The scope names from the outermost module to this one, with "/" between."""
        above = f"{self.parent.get_path_name()}/" if self.parent is not None else ""
        return above + self.get_scope_name()

    def get_parameters(
        self, recursive: bool = True, grad_only: bool = False, memo: Any = None
    ) -> OrderedDict[str, Any]:
        """The parameters by name; one that is there twice is listed once.

        Args:
            recursive: Whether those of the modules within are listed too, first and under "@attribute".
            grad_only: Leave out those with `need_grad=False`.
            memo: Set of parameters that are not listed; all that are listed are added.
        """
        seen: set[Any] = set() if memo is None else memo
        found: OrderedDict[str, Any] = ParameterDict()
        for key, m in self.submodules.items() if recursive else ():
            inner = m.get_parameters(recursive, grad_only, seen)
            found.update((f"@{key}/{name}", v) for name, v in inner.items())
        with parameter.parameter_scope("", scope=self.parameter_scope):
            own = parameter.get_parameters(grad_only=grad_only)
        for name, v in own.items():
            if v not in seen:
                seen.add(v)
                found[name] = v
        return found

    def set_parameter(self, key: str, param: Variable, raise_if_missing: bool = False) -> None:
        """Put a parameter under a name as `get_parameters` gives it.

        Args:
            key: Name, "@attribute/.." for those of the modules within.
            param: Variable.
            raise_if_missing: Whether a module that is not there is an error; else the parameter is left out.

        Raises:
            ValueError: If `raise_if_missing` and `key` names a module that is not there.
        """
        check_type("set_parameter", "key", key, str, "the parameter's name as a str")
        check_type("set_parameter", "param", param, Variable, "a Variable")
        if not key.startswith("@"):
            with parameter.parameter_scope("", scope=self.parameter_scope):
                parameter.set_parameter(key, param)
            return
        name, _, rest = key[1:].partition("/")
        if name in self.submodules:
            self.submodules[name].set_parameter(rest, param, raise_if_missing)
        elif raise_if_missing:
            hint = "give raise_if_missing=False to leave it out"
            what = f"{type(self).__name__} has no module '{name}'"
            raise ArgumentError(message("set_parameter", "key", what, hint=hint))

    def set_parameters(self, params: Mapping[str, Variable], raise_if_missing: bool = False) -> None:
        """`set_parameter` for each entry of a dict.

        Args:
            params: Variables by their names, as `get_parameters` gives them.
            raise_if_missing: Whether a module that is not there is an error.
        """
        for key, param in params.items():
            self.set_parameter(key, param, raise_if_missing)

    def update_parameter(self) -> None:
        """Nothing is left to do: parameters that were set or loaded are used at the next call. NNabla's."""

    def zero_grad(self) -> None:
        """Set the gradients of all parameters to 0."""
        for v in self.get_parameters().values():
            v.grad.zero()

    def save_parameters(self, path: Any, extension: str = ".h5") -> None:
        """Write the parameters to a file, as `nnrs.save_parameters`.

        Args:
            path: Path that ends in '.h5' or '.safetensors', or a file open for binary writing.
            extension: Kind of an open file.
        """
        parameter.save_parameters(path, self.get_parameters(), None if _files.is_path(path) else extension)

    def load_parameters(self, path: Any, extension: str = ".h5", raise_if_missing: bool = True) -> None:
        """Read parameters from a file, as `nnrs.load_parameters`. The module need not have been called before.

        Args:
            path: Path that ends in '.h5' or '.safetensors', or a file open for binary reading.
            extension: Kind of an open file.
            raise_if_missing: Whether parameters of a module that is not there are an error.

        Raises:
            ValueError: If `raise_if_missing` and the file has parameters of a module that is not there.
        """
        scope: OrderedDict[str, Any] = OrderedDict()
        with parameter.parameter_scope("", scope=scope):
            parameter.load_parameters(path, extension=extension)
            loaded = parameter.get_parameters(grad_only=False)
        here = self.get_parameters()
        for key, param in loaded.items():
            if key in here and here[key].shape == param.shape:
                here[key].data.cast(param.data.dtype)[...] = param.d
                here[key].need_grad = param.need_grad
            else:
                self.set_parameter(key, param, raise_if_missing)


def snake_case(name: str) -> str:
    """A class's name in lower case, with "_" before each capital but the first, as NNabla has it in parameters' names.

    >>> snake_case("ConvBN")
    'conv_b_n'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
