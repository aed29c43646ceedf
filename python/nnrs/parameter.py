"""Parameters: Variables that a program finds again by name, in scopes that nest like folders."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from . import _calls, _core, _files
from ._borrowed import borrowed
from ._core import NdArray, Variable, put_in_scope
from ._errors import (
    ArgumentError,
    ArgumentTypeError,
    check_flag,
    check_name,
    check_type,
    describe,
    is_of_user_code,
    message,
)
from ._messages import Message, message_class
from ._modes import ModeScope
from ._modes import no_grad as _no_grad
from ._notebooks import ParameterDict
from ._scope import (
    current,
    find,
    get_current_parameter_scope,
    open_scope,
    parts_of,
    root,
    walk,
)
from .logger import logger

Initializer = Callable[..., Any] | np.ndarray | None

# Of 8 bytes each, as many as an address can name: NumPy's and the engine's own limit.
_MOST_ELEMENTS = (2**63 - 1) // 8

# As in the engine: more is no shape, but an iterator that would not end soon.
_MOST_AXES = 1 << 16

# What NNabla keeps in variables of this module, and programs read there.
_STATE: dict[str, Callable[[], Any]] = {
    "current_no_grad": _core.no_grad_active,
    "current_scope": get_current_parameter_scope,
    "no_grad": lambda: _no_grad,
    "root_scope": root,
}

__all__ = [
    "clear_parameters",
    "get_current_parameter_scope",
    "get_parameter",
    "get_parameter_or_create",
    "get_parameters",
    "load_parameters",
    "parameter_scope",
    "pop_parameter",
    "save_parameters",
    "set_parameter",
    "set_parameter_from_proto",
]


def __getattr__(name: str) -> Any:
    if name in _STATE:
        return _STATE[name]()
    return borrowed(__name__, name)


@dataclass(eq=False)
class VariableInfo:
    """What `info` of a parameter says: how it was made.

    >>> w = get_parameter_or_create("w", (2,), np.ones(2, np.float32))
    >>> get_parameter("w").info.initializer
    array([1., 1.], dtype=float32)
    >>> clear_parameters()
    """

    initializer: Initializer

    def __getstate__(self) -> dict[str, Any]:
        # A function that was made inside another one cannot be found again; the values that it gave are there.
        is_local = isinstance(self.initializer, FunctionType) and "<" in self.initializer.__qualname__
        return {"initializer": None if is_local else self.initializer}


def parameter_scope(name: str, scope: dict[str, Any] | None = None) -> ModeScope[OrderedDict[str, Any]]:
    """Put all parameters that the block makes or asks for under `name`.

    Args:
        name: Name of the scope; "a/b" opens "b" within "a", "" stays where it is.
        scope: Dict to use as the outermost scope, in place of the current one.

    Raises:
        ValueError: If a parameter already has the name of the scope, or `scope` is no dict.
        TypeError: If `name` is not a str.

    >>> with parameter_scope("block/1"):
    ...     w = get_parameter_or_create("W", (2,), np.ones(2, np.float32))
    >>> list(get_parameters())
    ['block/1/W']
    >>> clear_parameters()
    """
    here = "parameter_scope"

    def made() -> tuple[Any, Any]:
        check_name(here, "name", name, "the scope's name as a str")
        if scope is not None and not isinstance(scope, dict):
            raise ArgumentError(message(here, "scope", "a dict of parameters", describe(scope)))
        inner = open_scope(here, get_current_parameter_scope() if scope is None else scope, parts_of(name))
        return inner, inner

    return ModeScope(current.get, current.set, made)


def _key(function: str, name: object) -> list[str]:
    """The parts of a parameter's name; at least one."""
    argument = "key" if function in ("get_parameter", "set_parameter", "pop_parameter") else "name"
    parts = parts_of(check_name(function, argument, name, "the parameter's name as a str"))
    if not parts:
        raise ArgumentError(message(function, argument, "a name with at least one letter", repr(name)))
    return parts


def get_parameter(key: str) -> Any:
    """The parameter named `key` in the current scope, or None.

    Args:
        key: Name; "a/W" looks into the scope "a".

    Raises:
        ValueError: If `key` names a scope.

    >>> get_parameter("not/there") is None
    True
    """
    found = find(get_current_parameter_scope(), _key("get_parameter", key))
    if isinstance(found, dict):
        inside = ", ".join(list(found)[:5]) or "nothing"
        hint = f"the scope holds {inside}; open it with parameter_scope('{key}')"
        raise ArgumentError(message("get_parameter", "key", "the name of a parameter", f"the scope '{key}'", hint))
    return found


def set_parameter(key: str, param: Any) -> None:
    """Put `param` under the name `key` in the current scope, in place of what was there.

    Args:
        key: Name; "a/W" puts it into the scope "a".
        param: Variable.

    Raises:
        TypeError: If `param` is not a Variable.
        ValueError: If a part of `key` before the last is a parameter.

    >>> set_parameter("v", Variable((2, 3)))
    >>> get_parameter("v").shape
    (2, 3)
    >>> clear_parameters()
    """
    parts = _key("set_parameter", key)
    if not isinstance(param, Variable):
        text = message("set_parameter", "param", "a Variable", describe(param))
        raise ArgumentTypeError(text + "\n  hint: Variable.from_numpy_array makes one from an array")
    put_in_scope(open_scope("set_parameter", get_current_parameter_scope(), parts[:-1]), parts[-1], param)


def pop_parameter(key: str) -> Any:
    """Take the parameter (or the scope) `key` out of the current scope and return it; None if there is none.

    >>> set_parameter("v", Variable((2, 3)))
    >>> pop_parameter("v").shape, pop_parameter("v")
    ((2, 3), None)
    """
    parts = _key("pop_parameter", key)
    scope = find(get_current_parameter_scope(), parts[:-1])
    return scope.pop(parts[-1], None) if isinstance(scope, dict) else None


def get_parameter_or_create(
    name: str,
    shape: tuple[int, ...] | None = None,
    initializer: Initializer = None,
    need_grad: bool = True,
    as_need_grad: bool | None = None,
) -> Any:
    """The parameter `name` of the current scope, made if it is not there.

    What comes back is a Variable of its own that shares data and grad with the stored one, so each use can have its
    own `need_grad`.

    Args:
        name: Name; "a/W" is "W" in the scope "a".
        shape: Shape; may be left out if `initializer` is an array.
        initializer: Callable that takes `shape`, an array, or None for zeros.
        need_grad: Whether the stored parameter is trained.
        as_need_grad: `need_grad` of the returned Variable; by default as stored. Always False within `no_grad`.

    Raises:
        ValueError: If there is a parameter of this name with another shape, or `initializer` does not fit.

    >>> w = get_parameter_or_create("w", (2, 2), np.eye(2, dtype=np.float32))
    >>> w.d.tolist(), get_parameter_or_create("w", (2, 2)).d.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> clear_parameters()
    """
    here = "get_parameter_or_create"
    _key(here, name)
    need_grad = check_flag(here, "need_grad", need_grad)
    use = need_grad if as_need_grad is None else check_flag(here, "as_need_grad", as_need_grad)
    wanted = _shape(here, shape, initializer)
    if wanted is None:
        wanted = _shape_there(here, name)
    return _core.get_parameter_or_create(name, wanted, initializer, need_grad, use)


def _shape_there(function: str, name: str) -> tuple[int, ...]:
    """The shape of the parameter that is there already."""
    found = find(get_current_parameter_scope(), parts_of(name))
    if found is None:
        hint = "give a shape, or an array as initializer"
        raise ArgumentError(message(function, "shape", f"a shape for the new parameter '{name}'", "none", hint))
    return tuple(getattr(found, "shape", ()))


def _shape(function: str, shape: Any, initializer: Initializer) -> tuple[int, ...] | None:
    """The wanted shape from the arguments; None if they do not say."""
    if shape is None:
        return tuple(initializer.shape) if isinstance(initializer, np.ndarray) else None
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    wanted: tuple[int, ...] | None = None
    if not isinstance(shape, (Variable, NdArray)):  # however many elements they have
        try:
            wanted = tuple(int(n) for n in itertools.islice(shape, _MOST_AXES + 1))
        except (TypeError, ValueError, OverflowError) as error:
            if is_of_user_code(error):
                raise
    if wanted is None or len(wanted) > _MOST_AXES:
        raise ArgumentTypeError(message(function, "shape", "a tuple of integers", describe(shape)))
    if any(n < 0 for n in wanted):
        raise ArgumentError(message(function, "shape", "sizes of 0 or more", wanted))
    if math.prod(max(n, 1) for n in wanted) > _MOST_ELEMENTS:
        raise ArgumentError(message(function, "shape", "a size that fits into memory", wanted))
    return wanted


def _note_initializer(param: Any, initializer: Initializer) -> None:
    """Note how a new parameter was made."""
    param._note_info(VariableInfo(initializer))


def _usual_initializer(name: str, numbers: tuple[float, ...], rng: Any) -> Initializer:
    """The initializer of this name; `rng` is what random ones draw from, None for `nnrs.random.prng`."""
    from . import initializer  # which names this module

    make = getattr(initializer, name)
    if name == "ConstantInitializer":
        return make(*numbers)  # type: ignore[no-any-return]
    return make(*numbers, rng=rng) if len(numbers) == 1 else make(numbers, rng=rng)  # type: ignore[no-any-return]


def _is_initializer(given: Any) -> bool:
    """Whether it is a callable (a class is none: it has not been made yet), an array or None."""
    return given is None or isinstance(given, np.ndarray) or (callable(given) and not isinstance(given, type))


def _initial(initializer: Initializer, shape: tuple[int, ...]) -> Any:
    """A new Variable with the initial values, in the type that they have."""
    if initializer is None:
        param = Variable(shape)
        param.data.zero()
        return param
    values = initializer(shape=shape) if callable(initializer) else initializer
    return Variable.from_numpy_array(np.asarray(values))


def get_parameters(
    params: dict[str, Any] | None = None, path: str = "", grad_only: bool = True
) -> OrderedDict[str, Any]:
    """All parameters of the current scope by their full names, in the order they were made.

    Args:
        params: Dict to add them to; by default a new one.
        path: Put before each name, with a "/" between.
        grad_only: Leave out those with `need_grad=False`.

    >>> with parameter_scope("a"):
    ...     set_parameter("w", Variable((2,), need_grad=True))
    ...     set_parameter("mean", Variable((2,)))
    >>> list(get_parameters()), list(get_parameters(grad_only=False))
    (['a/w'], ['a/w', 'a/mean'])
    >>> clear_parameters()
    """
    if params is not None:
        check_type("get_parameters", "params", params, dict, "a dict to add to")
    found: OrderedDict[str, Any] = ParameterDict() if params is None else params  # type: ignore[assignment]
    for name, param in walk(get_current_parameter_scope(), path):
        if param.need_grad or not grad_only:
            found[name] = param
    return found


def clear_parameters() -> None:
    """Remove all parameters of the current scope.

    >>> clear_parameters()
    >>> len(get_parameters())
    0
    """
    scope = get_current_parameter_scope()
    for key in list(scope):
        scope.pop(key, None)


def save_parameters(path: Any, params: dict[str, Any] | None = None, extension: str | None = None) -> None:
    """Write parameters to a file, in the format that its name says.

    '.h5' and '.safetensors' keep types; '.protobuf' and '.nntxt' hold floats; '.nnp' is an archive with an '.h5'. The
    file is written beside and renamed when it is whole, so a failure leaves an old file as it was.

    Args:
        path: Path that ends in '.h5', '.safetensors', '.protobuf', '.nntxt', '.prototxt' or '.nnp', or a file open for
            binary writing, which is at its beginning afterwards.
        params: Dict from names to Variables; by default all of the current scope.
        extension: The format, needed for an open file.

    Raises:
        ValueError: If the file's kind is not known.
        OSError: If the file cannot be written.
    """
    here = "save_parameters"
    ext = _files.file_extension(here, path, extension)
    chosen = get_parameters(grad_only=False) if params is None else params
    check_type(here, "params", chosen, dict, "a dict from names to Variables")
    for name, v in chosen.items():
        check_name(here, "params", name, "names as str")
        check_type(here, f"params['{name}']", v, Variable, "a Variable")
    _core.check_parameter_names(here, "params", list(chosen))
    _files.write_parameters(here, path, ext, chosen)
    logger.info("Parameter save (%s): %s", ext, path)


def load_parameters(path: Any, proto: Any = None, needs_proto: bool = False, extension: str = ".nntxt") -> Any:
    """Read parameters from a file into the current scope.

    Parameters that are there already keep their Variables and get the file's values, type and `need_grad`; others are
    made. If anything is wrong with the file, no parameter changes.

    Args:
        path: Path that ends in '.h5', '.safetensors', '.protobuf', '.nntxt', '.prototxt' or '.nnp', or a file open for
            binary reading.
        proto: A message to add to; by default a new one.
        needs_proto: Whether the message has the parameters of an '.h5', too.
        extension: The format, needed for an open file.

    Returns:
        All that the file says besides (networks, executors), as the message `NNablaProtoBuf`.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If its content is not what it should be, or a parameter has another shape than the file says.
    """
    here = "load_parameters"
    kind = message_class("NNablaProtoBuf")
    if proto is not None and not isinstance(proto, kind):
        raise ArgumentTypeError(message(here, "proto", "a message NNablaProtoBuf", describe(proto)))
    ext = _files.file_extension(here, path, extension)
    if ext in _files.NNABLA:
        said, records, _ = _files.read_nnabla(here, path, ext)
    else:
        said, records = {}, _files.read_parameters(here, path, ext)
    _core.check_parameter_names(here, "path", [name for name, *_ in records])
    _core.set_parameters(here, records)
    logger.info("Parameter load: %s", path)
    result = kind() if proto is None else proto
    result.MergeFrom(kind._of(said))
    if ext in (".protobuf", ".nntxt", ".prototxt") or needs_proto and ext in _files.NNABLA:
        _note_parameters(result, records)
    return result


def _note_parameters(proto: Any, records: list[_files.Parameter]) -> None:
    """Add parameters to a message, as floats."""
    for name, values, need_grad in records:
        p = proto.parameter.add(variable_name=name, need_grad=need_grad)
        p.shape.dim.extend(values.shape)
        p._values["data"] = np.asarray(values.data, np.float32).ravel()


def set_parameter_from_proto(proto: Any) -> None:
    """Put the parameters of a message into the current scope: those that are there get its values, others are made.

    Args:
        proto: A message `NNablaProtoBuf`, as `load_parameters` returns it.

    Raises:
        ValueError: If a parameter's values do not fit its shape; then no parameter changes.

    >>> proto = message_class("NNablaProtoBuf")()
    >>> w = proto.parameter.add(variable_name="w", data=[1.0, 2.0], need_grad=True)
    >>> w.shape.dim.append(2)
    >>> set_parameter_from_proto(proto)
    >>> get_parameter("w").d.tolist()
    [1.0, 2.0]
    >>> clear_parameters()
    """
    here = "set_parameter_from_proto"
    if not hasattr(proto, "parameter") or not hasattr(proto, "SerializeToString"):
        raise ArgumentTypeError(message(here, "proto", "a message NNablaProtoBuf", describe(proto)))
    whole = message_class("NNablaProtoBuf")()
    whole.parameter.extend(p if isinstance(p, Message) else _own(p) for p in proto.parameter)
    records = _files.ReadContents(*_core.read_nnabla(whole.SerializeToString(), ".protobuf")).parameters
    _core.check_parameter_names(here, "proto", [name for name, *_ in records])
    _core.set_parameters(here, records)


def _own(parameter: Any) -> Message:
    """A parameter's message of the package protobuf as one of ours."""
    return message_class("Parameter").FromString(parameter.SerializeToString())


_calls.check_functions(globals())
