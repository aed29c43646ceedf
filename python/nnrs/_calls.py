"""Calls with wrong arguments (an unknown keyword, a missing or surplus argument) are errors of nnrs as well.

Python itself refuses them with a plain TypeError, before the function sees anything. `checked` turns that into an
`nnrs.Error` that is still a TypeError and shows how the function is called. Right calls only pay for one call more.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from . import _core
from ._core import Error
from ._errors import ArgumentError, ArgumentTypeError, message

if TYPE_CHECKING:
    import inspect

C = TypeVar("C", bound=Callable[..., Any])


def checked(function: C, is_whole: bool = False) -> C:
    """`function` itself, but for the errors of calls with wrong arguments.

    With `is_whole` the errors of functions that it is made of are told as its own, too: see `tell`.

    >>> @checked
    ... def twice(x: int) -> int:
    ...     return 2 * x
    >>> twice(y=3)
    Traceback (most recent call last):
    nnrs._errors.ArgumentTypeError: twice: missing a required argument: 'x'
      hint: twice(x)
    """

    if isinstance(function, _core.Checked):
        return function
    return cast(C, functools.update_wrapper(_core.Checked(function, is_whole), function))


_TOLD = re.compile(r"(?P<function>\w+): (?P<within>in \w+: )?(?:argument '(?P<argument>\w+))?")


def tell(function: Callable[..., Any], error: Error) -> None:
    """Let the error of a part of `function` be told as that of `function`, which is what was called.

    A wrong argument that `function` has too is told as its own, another one as the part's.

    >>> def attend(x: int, dropout: float) -> None: ...
    >>> error = ArgumentError("dropout: argument 'p': expected a number below 1, got 2")
    >>> tell(attend, error)
    >>> print(error)
    attend: in dropout: argument 'p': expected a number below 1, got 2
    """
    import inspect  # here, since it is only needed for errors

    text = str(error.args[0]) if len(error.args) == 1 else ""
    found = _TOLD.match(text)
    if found is None or found["function"] == function.__name__:
        return
    is_own = found["argument"] in inspect.signature(function).parameters
    part = "" if is_own or found["within"] else f"in {found['function']}: "
    error.args = (f"{function.__name__}: {part}{text[found.end('function') + 2 :]}",)


class _Text(str):
    """A type as it is written: `help` shows it without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def shown_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function with its types as text; the type variable of inputs and outputs is written out.

    >>> def same(x: A, axis: int | None = None) -> A: ...
    >>> shown_signature(same)
    <Signature (x: Variable | NdArray, axis: int | None = None) -> Variable | NdArray>
    """
    import inspect  # here, since only help and editors ask for signatures

    def text(annotation: Any) -> Any:
        is_text = isinstance(annotation, str)
        return _Text(re.sub(r"\bA\b", "Variable | NdArray", annotation)) if is_text else annotation

    signature = inspect.signature(function)
    parts = [p.replace(annotation=text(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=parts, return_annotation=text(signature.return_annotation))


def checked_new(new: C) -> C:
    """As `checked`, for the `__new__` of a class: messages name the class, and leave `cls` out."""

    @functools.wraps(new)
    def call(cls: type, *args: Any, **kw: Any) -> Any:
        try:
            return new(cls, *args, **kw)
        except TypeError as error:
            refused = None if isinstance(error, Error) else misfit(new, cls.__name__, (cls, *args), kw, skip=1)
            if refused is None:
                raise
        raise refused

    return cast(C, call)


def misfit(
    function: Callable[..., Any], name: str, args: tuple[Any, ...], kw: dict[str, Any], skip: int = 0
) -> ArgumentTypeError | None:
    """The error for a call whose arguments do not fit the signature; None if they do.

    Args:
        function: What was called.
        name: Its name, for the message.
        args: Arguments by position.
        kw: Arguments by keyword.
        skip: How many arguments of the signature the caller does not write (`self`, `cls`).
    """
    import inspect  # here, since it is only needed for errors

    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kw)
    except TypeError as error:
        parts = list(signature.parameters.values())[skip:]
        shown = ", ".join(str(p.replace(annotation=p.empty)) for p in parts)
        return ArgumentTypeError(message(name, None, str(error), hint=f"{name}({shown})"))
    return None


def check_methods(cls: type) -> None:
    """Let the compiled methods of a class raise errors of nnrs for arguments of a wrong number, name or type."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if isinstance(member, staticmethod):
            setattr(cls, name, staticmethod(_native(member.__func__, f"{cls.__name__}.{name}", 0)))
        elif type(member).__name__ == "method_descriptor":
            setattr(cls, name, _native(member, f"{cls.__name__}.{name}", 1))


def check_functions(module: dict[str, Any], are_whole: bool = False) -> None:
    """Let the public functions that are made in a module (its `globals()`) raise errors of nnrs for wrong calls."""
    import inspect

    for name, member in list(module.items()):
        if inspect.isfunction(member) and member.__module__ == module["__name__"] and not name.startswith("_"):
            module[name] = (
                _context(member) if inspect.isgeneratorfunction(inspect.unwrap(member)) else checked(member, are_whole)
            )


def _context(manager: Callable[..., Any]) -> Callable[..., Any]:
    """As `checked`, for a function that makes a context manager: calling it does no more than bind the arguments."""

    @functools.wraps(manager)
    def call(*args: Any, **kw: Any) -> Any:
        try:
            return manager(*args, **kw)
        except TypeError:
            refused = misfit(manager, manager.__name__, args, kw)
            if refused is None:
                raise
        raise refused

    return call


def _native(method: Callable[..., Any], name: str, skip: int) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kw: Any) -> Any:
        try:
            return method(*args, **kw)
        except (TypeError, OverflowError, UnicodeError) as error:
            # An error with a Python frame of its own comes from a hook of the user's.
            if isinstance(error, Error) or error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            refused: Error | None = misfit(method, name, args, kw, skip)
            if refused is None:
                kind = ArgumentTypeError if isinstance(error, TypeError) else ArgumentError
                notes = " ".join(getattr(error, "__notes__", ()))  # "while processing 'x'": from Python 3.11 on
                argument = notes.split("'")[1] if notes.count("'") == 2 else None
                refused = kind(message(name, argument, str(error)))
        raise refused

    return call
