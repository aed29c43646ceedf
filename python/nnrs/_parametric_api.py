"""The decorator that makes a function parametric: scope, argument `name`, documentation, undoing on error."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from . import initializer as initializer  # not with the first parameter: a child forked beside an import cannot import
from ._calls import misfit
from ._core import Error, NdArray, Variable, call_in_scope
from ._errors import ArgumentError, check_type, message
from ._param_init import sieve
from ._scope import parts_of
from ._stand_ins import handler_of
from .parameter import get_parameter_or_create

# An NdArray is computed at once and gives an NdArray. The types tell of Variables: the decorator cannot tell which.
Input: TypeAlias = Variable | NdArray
Initializer: TypeAlias = Callable[..., Any] | np.ndarray | None
Apply: TypeAlias = Callable[[Variable], Variable] | None
Rng: TypeAlias = np.random.RandomState | None
Level: TypeAlias = float | Variable
ParamInit: TypeAlias = dict[str, Initializer] | None
R = TypeVar("R")
ParamDesc = Sequence[tuple[str, str, str, bool]]


def parametric_function_api(
    scope_name: str | None = None, param_desc: ParamDesc | None = None
) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Decorator that makes a function parametric: it runs in the parameter scope `scope_name`.

    The function gets one more argument, `name=None`: with it, `scope_name` lies within the scope `name`. If a call
    raises, the parameters that it made are removed again.

    Args:
        scope_name: Scope in which the function runs; None for none of its own.
        param_desc: Parameters as (name, description, shape, need_grad), for the documentation.

    >>> from nnrs import Variable
    >>> from nnrs.parameter import clear_parameters, get_parameter_or_create, get_parameters
    >>> @parametric_function_api("shift", [("b", "What is added.", "x.shape[1:]", True)])
    ... def shift(x, fix_parameters=False):
    ...     return x + get_parameter_or_create("b", (1, *x.shape[1:]), as_need_grad=not fix_parameters)
    >>> y = shift(Variable((2, 3)), name="first")
    >>> y.shape, list(get_parameters())
    ((2, 3), ['first/shift/b'])
    >>> clear_parameters()
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        signature = _with_name(function)
        at_most = _positional_count(signature)
        own = parts_of(scope_name or "")
        is_ours = param_desc is not None and (function.__module__ or "").startswith(f"{__package__}.")
        sifted = sieve(function, [row[0] for row in param_desc or ()]) if is_ours else None

        @functools.wraps(function)
        def call(*args: Any, name: str | None = None, **kw: Any) -> R:
            handler = handler_of(args, kw)
            if handler is not None:
                return cast(R, handler(call, args, kw if name is None else {"name": name, **kw}))
            given = args
            if len(args) == at_most:
                *args, name = args  # type: ignore[assignment]
            if sifted is not None:
                args, kw = sifted(args, kw)  # type: ignore[assignment]
            parts = own if name is None else _name_parts(function, name) + own
            try:
                return cast(R, call_in_scope(function.__name__, "/".join(parts), lambda: function(*args, **kw)))
            except TypeError as error:
                refused = None if isinstance(error, Error) else misfit(call, function.__name__, given, kw)
                if refused is None:
                    raise
            raise refused

        call.__signature__ = signature  # type: ignore[attr-defined]
        call.__doc__ = _documented(function, scope_name, param_desc)
        call.__parametric_function_api_base__ = function  # type: ignore[attr-defined]
        call.__scope_name__ = scope_name  # type: ignore[attr-defined]
        return call

    return decorate


def own_parameter(function: str, argument: str, *given: Any) -> Any:
    """`get_parameter_or_create(*given)` for `function`, whose `argument` the initializer is: errors say so."""
    try:
        return get_parameter_or_create(*given)
    except Error as error:
        head, told, rest = str(error).partition("get_parameter_or_create: ")
        if told and not head:
            own = rest.replace("argument 'initializer'", f"argument '{argument}'", 1)
            error.args = (f"{function}: {own}",)
        raise


def _with_name(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of the decorated function: `name` comes last of those that can be given by position."""
    signature = inspect.signature(function)
    if "name" in signature.parameters:
        hint = "the decorator adds it"
        text = message("parametric_function_api", None, f"'{function.__name__}' must not have an argument 'name'")
        raise ArgumentError(f"{text}\n  hint: {hint}")
    before = [p for p in signature.parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    after = [p for p in signature.parameters.values() if p.kind > p.POSITIONAL_OR_KEYWORD]
    by_keyword = any(p.kind is p.VAR_POSITIONAL for p in after) or any(p.default is p.empty for p in before[-1:])
    kind = inspect.Parameter.KEYWORD_ONLY if by_keyword else inspect.Parameter.POSITIONAL_OR_KEYWORD
    name = inspect.Parameter("name", kind, default=None, annotation="str | None")
    at = len(before) if not by_keyword else len(after) - any(p.kind is p.VAR_KEYWORD for p in after)
    parts = [*before, name, *after] if not by_keyword else [*before, *after[:at], name, *after[at:]]
    return signature.replace(parameters=parts)


def _positional_count(signature: inspect.Signature) -> int:
    """How many positional arguments a call has when `name` is given by position; -1 if it cannot be."""
    if signature.parameters["name"].kind is inspect.Parameter.KEYWORD_ONLY:
        return -1
    return list(signature.parameters).index("name") + 1


def _name_parts(function: Callable[..., Any], name: str) -> list[str]:
    check_type(function.__name__, "name", name, str, "the scope's name as a str")
    return parts_of(name)


def _documented(function: Callable[..., Any], scope_name: str | None, param_desc: ParamDesc | None) -> str | None:
    """The docstring with the parameters and `name` explained."""
    doc = inspect.cleandoc(function.__doc__ or "")
    rows = [
        f"    * {name} (``need_grad={need_grad}``) : {text} (shape: ``{shape}``)"
        for name, text, shape, need_grad in param_desc or ()
    ]
    if rows:
        doc += f'\n\nParameters, in the scope ``"{scope_name}"``:\n' + "\n".join(rows)
    return doc + f"\n\nWith ``name``, as in ``with parameter_scope(name): {function.__name__}(...)``."
