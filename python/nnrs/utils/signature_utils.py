"""Signatures of functions that can be changed and written out, for code that writes functions.

>>> def f(x, *, scale=1) -> int: ...
>>> signature = SignatureEx.from_callable(f).add_arg("name", default=None)
>>> signature.format_argument_signature(), signature.format_caller_argument_signature()
('x, name=None, *, scale=1', 'x, name, scale=scale')
"""

from __future__ import annotations

import inspect
from typing import Any

from .._errors import ArgumentError, message

_P = inspect.Parameter
_KINDS = [_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD, _P.VAR_POSITIONAL, _P.KEYWORD_ONLY, _P.VAR_KEYWORD]


class SignatureEx(inspect.Signature):
    """An `inspect.Signature` that gives changed copies of itself, and its parts as text."""

    def drop_arg(self, argname: str, raise_if_not_found: bool = False) -> SignatureEx:
        """A copy without an argument.

        Args:
            argname: Its name.
            raise_if_not_found: Whether it is an error if there is none of that name.

        Raises:
            KeyError: If there is none, and that is an error.
        """
        if raise_if_not_found and argname not in self.parameters:
            raise KeyError(f"'{argname}' not found in {list(self.parameters)}")
        return self.replace(parameters=[p for name, p in self.parameters.items() if name != argname])

    def add_arg(
        self, argname: str, kind: Any = _P.POSITIONAL_OR_KEYWORD, *, default: Any = _P.empty, annotation: Any = _P.empty
    ) -> SignatureEx:
        """A copy with one argument more, behind the others of its kind.

        Args:
            argname: Its name.
            kind: One of the kinds of `inspect.Parameter`.
            default: Its default.
            annotation: Its annotation.

        Raises:
            ValueError: If there is one of that name already, or the order does not allow it.
        """
        given = list(self.parameters.values())
        at = sum(_KINDS.index(p.kind) <= _KINDS.index(kind) for p in given)
        made = inspect.Parameter(argname, kind, default=default, annotation=annotation)
        try:
            return self.replace(parameters=[*given[:at], made, *given[at:]])
        except ValueError as error:
            raise ArgumentError(message("SignatureEx.add_arg", "argname", str(error))) from None

    @property
    def has_return_annotation(self) -> bool:
        """Whether it says what is returned."""
        return self.return_annotation is not self.empty

    def format_argument_signature(self) -> str:
        """The arguments, as between the parentheses of a definition."""
        return str(self.replace(return_annotation=self.empty))[1:-1]

    def format_return_annotation(self) -> str:
        """What is returned, as behind the parentheses: " -> int"; "" if it is not said."""
        if not self.has_return_annotation:
            return ""
        return str(self.replace(parameters=[])).removeprefix("()")

    def format_caller_argument_signature(self) -> str:
        """The arguments, as between the parentheses of a call that hands them on."""
        return ", ".join(_handed_on(name, p) for name, p in self.parameters.items())


def _handed_on(name: str, p: inspect.Parameter) -> str:
    stars: dict[Any, str] = {_P.VAR_POSITIONAL: "*", _P.VAR_KEYWORD: "**"}
    return f"{name}={name}" if p.kind is _P.KEYWORD_ONLY else stars.get(p.kind, "") + name
